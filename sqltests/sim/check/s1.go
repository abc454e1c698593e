package check

import (
	"bytes"
	"fmt"
	"math"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
)

// s1 checks "S1 A schema change takes its place in the log like any change; field ids are
// never reused": versions of a table never change once seen and give new columns new ids;
// the streamed slices of a table follow each other in the order of their versions.
type s1 struct {
	tables map[change.TableID]*schemaFacts
	last   map[change.TableID]lastVersion // version of the latest streamed slice
}

// lastVersion is that of the slice of a table that is furthest in the log.
type lastVersion struct {
	at      place
	version uint32
}

// schemaFacts is what was seen of a table's versions.
type schemaFacts struct {
	current  *schema.Table
	versions map[uint32]*schema.Table
	attNums  map[int32]int16 // by field id
	lastID   int32
}

func newS1() *s1 {
	return &s1{map[change.TableID]*schemaFacts{}, map[change.TableID]lastVersion{}}
}

// Label implements Checker.
func (*s1) Label() string { return "S1" }

// Check implements Checker.
func (c *s1) Check(v *View) error {
	for _, e := range v.Events {
		switch x := e.(type) {
		case Crashed:
			if x.Lost {
				clear(c.tables)
			}
		case Committed:
			if partial(x.Group.State) {
				continue // a new version in it goes with the part when that is given up
			}
			for i := range x.Group.Slices {
				if err := c.slice(&x.Group.Slices[i]); err != nil {
					return err
				}
			}
		case PinTaken:
			for i := range x.Pin.Tables {
				if err := c.table(x.Pin.Tables[i].Table); err != nil {
					return fmt.Errorf("table %d: %w", x.Pin.Tables[i].Table.ID, err)
				}
			}
		}
	}
	return nil
}

// partial says that a group is a part of a transaction that it does not end.
func partial(state []byte) bool {
	return bytes.Contains(state, []byte(`"part":`))
}

func (c *s1) slice(s *wal.Slice) error {
	if s.Backfill || s.Rows == 0 {
		return nil
	}
	last, here := c.last[s.Table], place{s.Ref.Seq, s.Ref.Start}
	if here.less(last.at) { // a superseded writer answers late what came before
		if s.SchemaVersion > last.version {
			return fmt.Errorf("slice %s of table %d has schema version %d, one behind it had %d", s.Ref, s.Table,
				s.SchemaVersion, last.version)
		}
		return nil
	}
	if s.SchemaVersion < last.version {
		return fmt.Errorf("slice %s of table %d has schema version %d, one before it had %d", s.Ref, s.Table,
			s.SchemaVersion, last.version)
	}
	c.last[s.Table] = lastVersion{here, s.SchemaVersion}
	return nil
}

func (c *s1) table(t *catalog.Table) error {
	f := c.tables[t.ID]
	if f == nil {
		f = &schemaFacts{versions: map[uint32]*schema.Table{}, attNums: map[int32]int16{}}
		c.tables[t.ID] = f
	}
	if f.current == t.Current {
		return nil
	}
	f.current = t.Current
	for _, s := range append(t.Versions[:len(t.Versions):len(t.Versions)], t.Current) {
		if err := f.version(s); err != nil {
			return fmt.Errorf("schema version %d: %w", s.Version, err)
		}
	}
	return nil
}

func (f *schemaFacts) version(s *schema.Table) error {
	if old := f.versions[s.Version]; old != nil {
		if !old.Equal(s) {
			return fmt.Errorf("has changed since it was seen first")
		}
		return nil
	}
	if s.LastFieldID < f.lastID {
		return fmt.Errorf("the last field id is %d, and was %d", s.LastFieldID, f.lastID)
	}
	for _, field := range s.Fields {
		had, known := f.attNums[field.ID]
		switch {
		case known && had != field.AttNum:
			return fmt.Errorf("field %d is column %d, and was column %d", field.ID, field.AttNum, had)
		case !known && field.ID <= f.lastID:
			return fmt.Errorf("new column %q has field id %d, ids up to %d were given out", field.Name, field.ID, f.lastID)
		case field.ID > s.LastFieldID || field.ID == math.MaxInt32:
			return fmt.Errorf("field id %d is beyond the last, %d", field.ID, s.LastFieldID)
		}
	}
	for _, field := range s.Fields {
		f.attNums[field.ID] = field.AttNum
	}
	f.versions[s.Version], f.lastID = s, s.LastFieldID
	return nil
}
