package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/postgres/outofrange"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// copied is which copy of a table is compared.
type copied struct {
	generation uint32
	finished   time.Time
}

func copiedAt(t *catalog.Table) copied { return copied{t.Generation, t.Backfill.FinishedAt} }

// tables lists those to compare, and returns the end of the log as it is now.
func (c *Comparer) tables(p *catalog.Pipeline, named []catalog.SelectedTable, s *sides) (known segment.SliceRef, err error) {
	snap := c.Catalog.Snapshot()
	defer snap.Close()
	offset, err := snap.Offset(p.ID)
	if err != nil {
		return known, err
	}
	all := snap.Tables(p.ID)
	wanted := map[change.TableID]bool{}
	for _, n := range named {
		t, err := catalog.NamedTable(all, n)
		if errors.Is(err, catalog.ErrTableNotFound) {
			return known, &Refusal{
				Kind: NoSuchTable, Message: strings.TrimSuffix(err.Error(), ": "+catalog.ErrTableNotFound.Error()) + " is not part of the pipeline",
				Hint: "DISCOVER PIPELINE …; says which tables there are.", Cause: err,
			}
		}
		if err != nil {
			return known, err
		}
		wanted[t.ID] = true
	}
	for _, t := range all {
		if len(named) > 0 && !wanted[t.ID] {
			continue
		}
		s.tables = append(s.tables, tableOf(t, outofrange.RuleOf(p.Options)))
		s.copies[t.ID] = copiedAt(t)
	}
	return segment.SliceRef{Seq: offset.Seq, Start: offset.End}, nil
}

// tableOf is what both sides are asked of a table.
func tableOf(t *catalog.Table, rule outofrange.Rule) *Table {
	v := &Table{
		Name: t.Schema + "." + t.Name, ID: t.ID, Schema: t.SourceSchema, SourceName: t.SourceName, OID: t.SourceOID,
	}
	for _, f := range t.Current.Fields {
		v.Columns = append(v.Columns, f.Name)
		if len(t.Current.Key) > 0 && t.Current.Key[0] == f.ID {
			v.IntegerKey = slices.Contains([]uint32{schema.OIDInt2, schema.OIDInt4, schema.OIDInt8}, f.OID)
		}
	}
	for _, id := range t.Current.Key {
		v.Key = append(v.Key, slices.IndexFunc(t.Current.Fields, func(f schema.Field) bool { return f.ID == id }))
	}
	v.Replaced = replaced(t.Current, rule)
	if t.State != catalog.TableReady {
		v.Skip = "its state is " + string(t.State)
		if t.Reason != "" {
			v.Skip += ": " + t.Reason
		}
	} else if t.Away != "" { // it keeps what it has
		v.Skip = t.Away
	}
	return v
}

// rangeKinds are the types that do not hold all values of the source's.
var rangeKinds = map[schema.Kind]RangeKind{
	schema.Date: RangeDate, schema.Timestamp: RangeTimestamp, schema.TimestampTZ: RangeTimestampTZ,
	schema.Decimal: RangeDecimal,
}

// replaced are the columns in which values out of range are replaced.
func replaced(t *schema.Table, rule outofrange.Rule) map[string]Replacement {
	out := map[string]Replacement{}
	for _, f := range t.Fields {
		kind, ranged := rangeKinds[f.Type.Kind]
		if !ranged || slices.Contains(t.Key, f.ID) {
			continue
		}
		switch {
		case rule == outofrange.Clamp:
			out[f.Name] = Replacement{Kind: kind, Clamp: true}
		case rule == outofrange.Null && !f.NotNull:
			out[f.Name] = Replacement{Kind: kind}
		}
	}
	return out
}

// lettersMost is with how many open dead letters a table is compared.
const lettersMost = 10_000

// setAside lists the rows of a table that wait as dead letters.
func setAside(snap *catalog.Snapshot, t *Table) error {
	letters, err := snap.OpenDeadLetters(t.ID)
	if err != nil || len(letters) == 0 {
		return err
	}
	if len(t.Key) == 0 || len(letters) > lettersMost {
		t.Skip = fmt.Sprintf("it has open dead letters (%d): RETRY DEAD LETTERS, or RESYNC TABLE, comes first", len(letters))
		return nil
	}
	t.SetAside = map[string]string{}
	for _, l := range letters {
		var key []*string
		if err := json.Unmarshal([]byte(l.Key), &key); err != nil || len(key) != len(t.Key) {
			t.Skip = "it has an open dead letter without a key"
			return nil
		}
		cells := make(Cells, len(key))
		for i, k := range key {
			if k != nil {
				cells[i] = []byte(*k)
			}
		}
		t.SetAside[string(AppendRecord(nil, cells))] = l.Reason
	}
	return nil
}

// keptMost is how long a comparison may keep the log from being reclaimed.
const keptMost = time.Hour

// keeper keeps the log that our side reads for as long as the comparison goes on.
type keeper struct {
	hold  LogHold // nil: it needs none
	from  segment.Seq
	began time.Time
}

// keep goes on holding the log, up to a limit.
func (k *keeper) keep(now time.Time) {
	if k.hold != nil && now.Sub(k.began) < keptMost {
		k.hold.Move(k.from)
	}
}

func (k *keeper) end() {
	if k.hold != nil {
		k.hold.Release()
	}
}

// changed says why a table cannot be compared any more that was listed before the
// position, "" when it can.
func changed(now *catalog.Table, t *Table, then copied) string {
	switch {
	case now.State != catalog.TableReady:
		return "its state became " + string(now.State)
	case now.Away != "":
		return now.Away
	case copiedAt(now) != then:
		return "it was copied anew meanwhile: run it again"
	case now.Current.HasKey() != (len(t.Key) > 0), now.SourceOID != t.OID:
		return "its key has changed meanwhile: run it again"
	}
	return ""
}

// pin pins our side; tables that have changed since they were listed are left out.
func (c *Comparer) pin(ctx context.Context, p *catalog.Pipeline, s *sides, at Moment) error {
	snap := c.Catalog.Snapshot()
	defer snap.Close()
	k := &keeper{from: segment.Seq(math.MaxUint64), began: c.Clock.Now()}
	for _, t := range s.tables {
		if t.Skip != "" {
			continue
		}
		now, err := snap.TableByID(t.ID)
		if err != nil {
			t.Skip = "it was dropped meanwhile"
			continue
		}
		if t.Skip = changed(now, t, s.copies[t.ID]); t.Skip != "" {
			continue
		}
		live, err := snap.LiveSlices(t.ID)
		if err != nil {
			return err
		}
		for _, slice := range live {
			k.from = min(k.from, slice.Ref.Seq)
		}
		*t = *tableOf(now, outofrange.RuleOf(p.Options))
		if err := setAside(snap, t); err != nil {
			return err
		}
	}
	if k.from != segment.Seq(math.MaxUint64) {
		k.hold = c.Lake.HoldLog(p.ID, k.from)
	}
	here, err := c.Mirror.Pin(ctx, snap, s.tables, at)
	if err != nil {
		k.end()
		return err
	}
	s.here, s.keeper = here, k
	return nil
}
