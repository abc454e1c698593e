package sim

import (
	"fmt"
	"math"
	"strings"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// commitOpen ends the script's open transaction. What does not fit to the source's rows, as
// an insert of a key that is there, becomes what fits, so that every script has a meaning.
func (w *World) commitOpen(r script.Record) {
	s := newShadow(w)
	var changes []source.Change
	for _, c := range w.open {
		w.rng = random{w.cfg.Seed ^ uint64(c.Arg)<<16 ^ uint64(c.Rand) ^ 0xc4a9}
		changes = append(changes, s.directed(c, r.Arg == endAbort)...)
	}
	w.open = nil
	for _, c := range changes {
		if c.Truncate {
			w.mark("truncate")
		}
	}
	switch {
	case r.Arg == endAbort:
		w.db.Abort(changes)
		w.mark("aborted transaction")
		return
	case r.Arg == endParts:
		w.mark("huge transaction")
	}
	t := w.db.Commit(changes, r.Arg == endParts)
	w.say("  transaction %d, %d changes", t.LSN, len(changes))
	w.mark("transaction")
}

// How a script ends a transaction.
const (
	endParts = 1
	endAbort = 2
)

// directed makes the changes of one line of a script.
func (s *shadow) directed(r script.Record, aborts bool) (out []source.Change) {
	kind, shape, n, first, last := r.Change()
	t := s.w.tables[n%len(s.w.tables)]
	switch kind {
	case "insert", "update", "delete":
		for key := first; key <= last; key++ {
			out = append(out, s.directedRow(t, kind, shape, key)...)
		}
		return out
	case "move":
		return s.directedMove(t, shape, first, last)
	case "truncate":
		return s.truncate(t)
	}
	if !aborts { // nobody sees a change of the shape that was taken back
		s.reshape(t, kind)
	}
	return nil
}

func (s *shadow) directedRow(t *source.Table, kind, shape string, key int) []source.Change {
	v := t.Current()
	c := source.Change{Table: t, Version: v, Op: change.Insert, New: s.w.shaped(t, key, shape)}
	if v.WholeRow {
		row := s.w.row(&s.w.rng, t, key)
		if shape == "refused" || shape == "computes_refused" {
			s.w.refuseWhole(v, row)
		}
		return s.directedWhole(c, kind, row, s.w.row(&s.w.rng, t, key+1))
	}
	if len(v.Key) == 0 {
		if kind != "insert" {
			return nil
		}
		s.w.mark("change without a key")
		return []source.Change{c}
	}
	old, name, found := s.find(t, c.New)
	switch {
	case !found && kind != "insert":
		return nil
	case kind == "delete":
		c.Op, c.Old, c.New = change.Delete, old, nil
	case found:
		c.Op, c.Old = change.Update, old
		if source.Refused(c.New) && !source.Refused(old) { // see World.refuse
			c.New = s.w.shaped(t, key, "plain")
		}
		switch shape {
		case "same":
			c.New = old
		case "kept":
			s.w.leaveOut(&c, s.w.keptColumns(v))
		}
	}
	s.rows[name] = c.New
	s.w.mark(kind)
	return []source.Change{c}
}

func (s *shadow) directedMove(t *source.Table, shape string, from, to int) []source.Change {
	v := t.Current()
	moved := s.w.shaped(t, to, shape)
	if len(v.Key) == 0 {
		return nil
	}
	old, name, found := s.find(t, s.w.shaped(t, from, "plain"))
	_, toName, taken := s.find(t, moved)
	if !found || taken {
		return nil
	}
	s.rows[name], s.rows[toName] = nil, moved
	s.w.mark("key update")
	c := source.Change{Table: t, Version: v, Op: change.Update, Old: old, New: moved}
	if shape == "kept" {
		s.w.leaveOut(&c, s.w.keptColumns(v))
	}
	return []source.Change{c}
}

// keptColumns are all but the key and the first that is not of it.
func (w *World) keptColumns(v *source.Version) uint64 {
	for i := range v.Columns {
		if !isKey(v, i) {
			return ^uint64(0) &^ (1 << i)
		}
	}
	return 0
}

func (s *shadow) truncate(t *source.Table) []source.Change {
	s.gone[t], s.bags[t] = true, nil
	for key := range s.rows { // a set
		if strings.HasPrefix(key, t.Name+"\x00") {
			delete(s.rows, key)
		}
	}
	return []source.Change{{Table: t, Version: t.Current(), Truncate: true}}
}

// reshape changes the shape of a table within the transaction.
func (s *shadow) reshape(t *source.Table, kind string) {
	w, from := s.w, t.Current()
	column := -1
	for i, c := range from.Columns {
		if fits := reshapes[kind]; fits != nil && !isKey(from, i) && fits(c) && (kind == "drop_column" || kind == "rename_column" || !from.Bound(i)) {
			column = i // the last one
		}
	}
	switch {
	case kind == "add_column":
		w.serial++
		w.db.AddColumn(t, source.Column{Name: fmt.Sprintf("c%d", w.serial), Type: int32Type, OID: oidInt4, TypMod: -1})
		w.mark("column added")
	case column < 0:
		return
	case kind == "drop_column":
		w.db.DropColumn(t, column)
		w.mark("column dropped")
	case kind == "rename_column":
		w.serial++
		w.db.RenameColumn(t, column, fmt.Sprintf("r%d", w.serial))
		w.mark("column renamed")
	case kind == "widen_column":
		w.db.RetypeColumn(t, column, int64Type, oidInt8)
		w.mark("column widened")
	default:
		w.db.RetypeColumn(t, column, int64Type, oidInt8)
		w.mark("column retyped")
	}
	for key, row := range s.rows { // a map of its own values: the order is no matter
		if row != nil && strings.HasPrefix(key, t.Name+"\x00") {
			s.rows[key] = w.db.Upgrade(t, from, row)
		}
	}
	for i, row := range s.bags[t] {
		s.bags[t][i] = w.db.Upgrade(t, from, row)
	}
}

// reshapes are the columns that a change of the shape can be about.
var reshapes = map[string]func(source.Column) bool{
	"drop_column": func(source.Column) bool { return true }, "rename_column": func(source.Column) bool { return true },
	"widen_column":  func(c source.Column) bool { return c.Type == int32Type },
	"retype_column": func(c source.Column) bool { return c.Type == stringType },
}

// shaped makes a row whose values have a shape.
func (w *World) shaped(t *source.Table, key int, shape string) source.Row {
	v := t.Current()
	row := w.row(&w.rng, t, key)
	for i, c := range v.Columns {
		if isKey(v, i) {
			continue
		}
		w.serial++
		row[i] = shapedValue(c.Type, shape, key, w.serial)
	}
	source.Fill(v, row)
	return row
}

const longText = 700

func shapedValue(t schema.Type, shape string, key int, serial int64) any {
	odd := map[string]int{"least": 0, "most": 1, "odd": key}
	switch n, isOdd := odd[shape]; {
	case shape == "null":
		return nil
	case shape == "empty" && t == stringType:
		return ""
	case shape == "long" && t == stringType:
		return strings.Repeat("long ", longText/5) + fmt.Sprint(serial)
	case shape == "refused" && t == stringType:
		return fmt.Sprintf("%sv%d", source.RefusedPrefix, serial)
	case shape == "computes_refused" && t == stringType:
		return fmt.Sprintf("%sv%d", source.ComputesRefused, serial)
	case isOdd && t == stringType:
		return oddTexts[n%len(oddTexts)]
	case isOdd && t == float64Type:
		return oddFloats[n%len(oddFloats)]
	case isOdd && t == int32Type:
		return []int64{math.MinInt32, math.MaxInt32, 0, -1}[n%4]
	case isOdd && t == int64Type:
		return []int64{math.MinInt64, math.MaxInt64, 0, -1}[n%4]
	case t == stringType:
		return fmt.Sprintf("v%d", serial)
	case t == float64Type:
		return float64(serial) / 4
	}
	return serial
}
