package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// row makes a row whose key is the n-th.
func (w *World) row(r *random, t *source.Table, n int) source.Row {
	v := t.Current()
	out := make(source.Row, len(v.Columns))
	for i, c := range v.Columns {
		if c.From != 0 {
			continue
		}
		if v.WholeRow {
			out[i] = wholeValue(c.Type, n)
		} else if slices.Contains(v.Key, c.Name) {
			out[i] = keyValue(c.Type, n)
		} else {
			out[i] = w.value(r, c.Type)
		}
	}
	source.Fill(v, out)
	return out
}

func keyValue(t schema.Type, n int) any {
	if t.Kind == schema.String {
		return oddTexts[n%len(oddTexts)] + fmt.Sprint(n/len(oddTexts))
	}
	if n == 0 {
		return int64(math.MinInt32) // every integer type has it
	}
	return int64(n)
}

// oddTexts are values that encodings trip over.
var oddTexts = []string{"", "a", "NULL", "\\N", "'\"\\\n\t", "ünï😀", "\x01", " lead and trail "}

var oddFloats = []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 0.1, math.MaxFloat64, 5e-324}

// value makes a value, often one of its own.
func (w *World) value(r *random, t schema.Type) any {
	if r.one(8) {
		return nil
	}
	w.serial++
	odd := r.one(6)
	switch t.Kind {
	case schema.Int32:
		if odd {
			return int64([]int32{math.MinInt32, math.MaxInt32, 0, -1}[r.n(4)])
		}
		return w.serial
	case schema.Int64:
		if odd {
			return []int64{math.MinInt64, math.MaxInt64, 0, -1}[r.n(4)]
		}
		return w.serial
	case schema.Float64:
		if odd {
			return oddFloats[r.n(len(oddFloats))]
		}
		return float64(w.serial) / 4
	case schema.Bool:
		return r.one(2)
	default:
		if odd {
			if r.one(4) {
				return strings.Repeat("x", 1+r.n(600))
			}
			return oddTexts[r.n(len(oddTexts))]
		}
		return fmt.Sprintf("v%d", w.serial)
	}
}

// txn makes the changes of a transaction that fits to the source's rows; shadow are rows as
// the transaction sees them.
func (w *World) txn(r *random, arg uint8) (changes []source.Change, huge bool) {
	n := 1 + r.n(4)
	huge = arg&0x0f == 0x0f
	if huge {
		n = 20 + r.n(60)
		w.mark("huge transaction")
	}
	s := newShadow(w)
	for range n {
		t := w.tables[r.n(len(w.tables))]
		if arg&0x30 == 0x10 {
			t = w.tables[int(arg>>6)%len(w.tables)]
		}
		changes = append(changes, s.change(r, t, arg)...)
	}
	return changes, huge
}

// shadow is the rows of the source as an open transaction sees them.
type shadow struct {
	w    *World
	rows map[string]source.Row // nil: deleted here
	gone map[*source.Table]bool
	bags map[*source.Table][]source.Row // the rows of tables that have whole rows, once touched
}

func newShadow(w *World) *shadow {
	return &shadow{w: w, rows: map[string]source.Row{}, gone: map[*source.Table]bool{}, bags: map[*source.Table][]source.Row{}}
}

func (s *shadow) find(t *source.Table, r source.Row) (source.Row, string, bool) {
	key := t.Name
	for _, i := range t.Current().KeyIndexes() {
		key += "\x00" + string(source.AppendValue(nil, r[i]))
	}
	if row, ok := s.rows[key]; ok {
		return row, key, row != nil
	}
	if s.gone[t] {
		return nil, key, false
	}
	row, ok := s.w.db.Find(t, r)
	return row, key, ok
}

func (s *shadow) change(r *random, t *source.Table, arg uint8) []source.Change {
	w, v := s.w, t.Current()
	base := source.Change{Table: t, Version: v}
	if arg&0x40 != 0 && r.one(12) {
		w.mark("truncate")
		base.Truncate = true
		s.gone[t], s.bags[t] = true, nil
		for key := range s.rows { // a set
			if strings.HasPrefix(key, t.Name+"\x00") {
				delete(s.rows, key)
			}
		}
		return []source.Change{base}
	}
	row := w.row(r, t, r.n(w.cfg.keys()))
	if v.WholeRow {
		return s.wholeChange(r, base, row)
	}
	if len(v.Key) == 0 {
		base.Op, base.New = change.Insert, row
		w.refuse(&base)
		w.mark("change without a key")
		return []source.Change{base}
	}
	old, key, found := s.find(t, row)
	switch {
	case !found:
		base.Op, base.New = change.Insert, row
		w.mark("insert")
	case r.one(3):
		base.Op, base.Old = change.Delete, old
		w.mark("delete")
		s.rows[key] = nil
		return []source.Change{base}
	case r.one(4):
		moved := w.row(r, t, r.n(w.cfg.keys()))
		if _, to, taken := s.find(t, moved); !taken {
			base.Op, base.Old, base.New = change.Update, old, moved
			w.leaveOut(&base, w.leaves())
			w.refuse(&base)
			w.mark("key update")
			s.rows[key], s.rows[to] = nil, moved
			return []source.Change{base}
		}
		fallthrough
	default:
		base.Op, base.Old, base.New = change.Update, old, row
		w.leaveOut(&base, w.leaves())
		w.mark("update")
	}
	w.refuse(&base)
	s.rows[key] = base.New
	return []source.Change{base}
}

// leaves says which columns an update leaves as they are, a bit each; often none. It is no
// draw of its own, so that what else is drawn stays the same.
func (w *World) leaves() uint64 {
	h := uint64(w.serial) * 0x9E3779B97F4A7C15
	if h>>60 >= 6 {
		return 0
	}
	return h >> 20
}

// leaveOut has an update leave columns as they are, which the source then does not send.
func (w *World) leaveOut(c *source.Change, which uint64) {
	for i := range c.Version.Columns {
		if text, ok := c.Old[i].(string); ok && (strings.HasPrefix(text, source.RefusedPrefix) || strings.HasPrefix(text, source.ComputesRefused)) {
			continue // so that it can be told from what the table has
		}
		if which>>(i%40)&1 == 0 || isKey(c.Version, i) || c.Version.Columns[i].From != 0 {
			continue
		}
		c.New[i] = c.Old[i]
		c.Left = append(c.Left, i)
	}
	source.Fill(c.Version, c.New)
	if len(c.Left) > 0 {
		w.mark("value left out")
	}
}

// refuse makes some rows ones that cannot be taken in, in worlds that have them; no draw of
// its own either. A row that was taken in stays one while it keeps its key: what its table
// shows then is the last that could be, which the oracle does not know of copies.
func (w *World) refuse(c *source.Change) {
	if !w.cfg.refuses() || uint64(w.serial)*0xD1B54A32D192ED03>>60 > 3 || c.New == nil {
		return
	}
	moved := c.Old != nil && !sameKey(c.Version, c.Old, c.New)
	if c.Old != nil && !moved && !source.Refused(c.Old) {
		return
	}
	for i, v := range c.New {
		if text, ok := v.(string); ok && !isKey(c.Version, i) && !slices.Contains(c.Left, i) && c.Version.Columns[i].From == 0 {
			c.New[i] = w.refusing(c.Version, i, uint64(w.serial)>>2) + text
			source.Fill(c.Version, c.New)
			w.mark("refused row")
			return
		}
	}
}

// refusing begins a text of a column that has its row refused: by itself, or half the time by
// what is computed from it. No draw of its own.
func (w *World) refusing(v *source.Version, i int, half uint64) string {
	if v.Bound(i) && half%2 == 0 {
		return source.ComputesRefused
	}
	return source.RefusedPrefix
}

func sameKey(v *source.Version, a, b source.Row) bool {
	for _, i := range v.KeyIndexes() {
		if string(source.AppendValue(nil, a[i])) != string(source.AppendValue(nil, b[i])) {
			return false
		}
	}
	return true
}

// wholeValues is how many rows a table with whole rows has that differ: few, so that many
// are equal.
const wholeValues = 4

// wholeValue is a column's value in the n-th of the rows that a table with whole rows has.
func wholeValue(t schema.Type, n int) any {
	n %= wholeValues
	switch {
	case n == wholeValues-1:
		return nil
	case t.Kind == schema.String:
		return []string{"", "a", "NULL"}[n]
	case t.Kind == schema.Float64:
		return []float64{0, math.Copysign(0, -1), math.NaN()}[n]
	}
	return int64(n)
}

// refuseWhole makes some contents ones that cannot be taken in, so that refused rows have
// equals, too; no draw of its own.
func (w *World) refuseWhole(ver *source.Version, row source.Row) {
	for i, v := range row {
		if v == "NULL" {
			row[i] = w.refusing(ver, i, w.cfg.Seed) + "NULL"
			source.Fill(ver, row)
			w.mark("refused whole row")
			return
		}
	}
}

// bag is the rows of a table with whole rows as the transaction sees them.
func (s *shadow) bag(t *source.Table) []source.Row {
	if s.bags[t] == nil && !s.gone[t] {
		s.bags[t] = slices.Clone(s.w.db.Rows(t))
	}
	return s.bags[t]
}

// wholeChange makes a change of a table with whole rows.
func (s *shadow) wholeChange(r *random, c source.Change, row source.Row) []source.Change {
	rows := s.bag(c.Table)
	if s.w.cfg.refuses() {
		s.w.refuseWhole(c.Version, row)
	}
	switch n := len(rows); {
	case n > 0 && r.one(3):
		c.Op, c.Old = change.Delete, rows[r.n(n)]
	case n > 0 && r.one(4):
		c.Op, c.Old, c.New = change.Update, rows[r.n(n)], row
	default:
		c.Op, c.New = change.Insert, row
	}
	return s.whole(c)
}

// directedWhole makes a change of a script: the rows of two neighbouring keys stand for
// themselves, an update makes the first the second. One that finds no row is left out.
func (s *shadow) directedWhole(c source.Change, kind string, row, next source.Row) []source.Change {
	found := slices.ContainsFunc(s.bag(c.Table), func(r source.Row) bool { return source.SameRow(r, row) })
	switch {
	case kind == "insert":
		c.Op, c.Old, c.New = change.Insert, nil, row
	case !found:
		return nil
	case kind == "delete":
		c.Op, c.Old, c.New = change.Delete, row, nil
	default:
		c.Op, c.Old, c.New = change.Update, row, next
	}
	return s.whole(c)
}

// whole applies a change to the rows as the transaction sees them.
func (s *shadow) whole(c source.Change) []source.Change {
	rows := s.bag(c.Table)
	equal := 0
	for _, r := range rows {
		if c.Old != nil && source.SameRow(r, c.Old) {
			equal++
		}
	}
	if c.Old != nil {
		i := slices.IndexFunc(rows, func(r source.Row) bool { return source.SameRow(r, c.Old) })
		rows = slices.Delete(rows, i, i+1)
	}
	if c.New != nil {
		rows = append(rows, c.New)
	}
	s.bags[c.Table] = rows
	if equal > 1 {
		s.w.mark("one of equal rows")
	}
	s.w.mark(fmt.Sprintf("whole row %s", map[change.Op]string{change.Insert: "insert", change.Update: "update", change.Delete: "delete"}[c.Op]))
	return []source.Change{c}
}
