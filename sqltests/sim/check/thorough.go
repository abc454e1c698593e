package check

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/skipprd/skipprd/catalog"
)

// Thorough has the suite read at every step all that it otherwise knows from the steps before,
// and compare: a difference is a violation of the suite's own making. It takes its time.
func (s *Suite) Thorough() { s.facts.thorough = &thorough{live: map[*catalog.Slice][]catalog.Slice{}} }

// thorough compares what is kept from step to step with what is read anew.
type thorough struct {
	// live has copies of the lists of live slices that were seen, by their first member.
	live map[*catalog.Slice][]catalog.Slice
}

// log reads a log anew.
func (t *thorough) log(l *logBytes, b Bytes) error {
	fresh := logBytes{dir: l.dir}
	if _, err := fresh.update(b, l.dir, true); err != nil {
		return err
	}
	if !slices.Equal(fresh.seqs, l.seqs) || fresh.last != l.last || len(fresh.segs) != len(l.segs) {
		return fmt.Errorf("the log has segments %v and ends at %v, known are %v and %v", fresh.seqs, fresh.last, l.seqs, l.last)
	}
	for seq, s := range fresh.segs {
		if !reflect.DeepEqual(s, l.segs[seq]) {
			return fmt.Errorf("segment %d is not what is known of it", seq)
		}
	}
	return nil
}

// catalog reads a catalog anew.
func (t *thorough) catalog(f *facts, hf *hostFacts, c *catalog.Catalog) error {
	fresh, err := readCatalog(c, nil)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(fresh.pipelines, hf.now.pipelines) || len(fresh.tables) != len(hf.now.tables) {
		return fmt.Errorf("the catalog has pipelines %v, known are %v", fresh.pipelines, hf.now.pipelines)
	}
	for i, now := range fresh.tables {
		was := hf.now.tables[i]
		if now.table != was.table || now.lake != was.lake || !slices.Equal(now.live, was.live) || !slices.Equal(now.planned, was.planned) {
			return fmt.Errorf("table %d is not what is known of it", now.table.ID)
		}
		for j := range now.live {
			s := &now.live[j]
			if _, known := hf.known[now.table.ID].refs[s.Ref]; !known || f.lived[owedKey{now.table.Pipeline, s.Ref}] != s.Generation {
				return fmt.Errorf("live slice %s of table %d was not noted", s.Ref, now.table.ID)
			}
		}
		if err := t.keeps(was.live); err != nil {
			return fmt.Errorf("table %d: %w", now.table.ID, err)
		}
	}
	return nil
}

// keeps makes sure that a list of live slices is only appended to.
func (t *thorough) keeps(live []catalog.Slice) error {
	if len(live) == 0 {
		return nil
	}
	had := t.live[&live[0]]
	if n := min(len(had), len(live)); !slices.Equal(had[:n], live[:n]) {
		return fmt.Errorf("a live slice has changed in its list")
	}
	if len(live) > len(had) {
		t.live[&live[0]] = slices.Clone(live)
	}
	return nil
}
