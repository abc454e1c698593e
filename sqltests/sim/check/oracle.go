package check

import (
	"slices"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// oracle is the deliberately naive answer to every query: it folds the changes that the
// source admitted, one after the other, and knows nothing of logs and lakes. Tables are
// folded on demand, and no further than asked.
type oracle struct {
	tables map[admitted]*oracleTable
}

// admitted says which changes we take in: those of a table after an LSN, which is 0 when
// its rows were copied.
type admitted struct {
	oid   uint32
	after int64
	// healed says that rows which were refused have been taken in since.
	healed bool
}

func newOracle() *oracle { return &oracle{tables: map[admitted]*oracleTable{}} }

// oracleTable is a table as of an LSN.
type oracleTable struct {
	admitted
	lsn  int64
	next int // of History.Txns
	// rows by key; of a table without one under running numbers.
	rows map[string]*oracleRow
	bag  []*oracleRow
	// digest is that of the rows under shape, kept as rows come and go.
	shape  *schema.Table
	digest query.Digest
	key    []byte // scratch
}

type oracleRow struct {
	version *source.Version
	row     source.Row
	text    []byte // under the table's shape
}

// at is a table as of an LSN, under the columns of a schema version of ours.
func (o *oracle) at(h *source.History, a admitted, lsn int64, shape *schema.Table) *oracleTable {
	t := o.tables[a]
	if t == nil || lsn < t.lsn {
		t = &oracleTable{admitted: a, rows: map[string]*oracleRow{}}
		o.tables[a] = t
	}
	t.show(shape)
	t.advance(h, lsn)
	return t
}

// show renders the rows under another shape.
func (t *oracleTable) show(shape *schema.Table) {
	if t.shape == shape {
		return
	}
	t.shape, t.digest = shape, query.Digest{}
	t.each(func(r *oracleRow) {
		r.text = renderRow(shape, r.version, r.row)
		t.digest.Add(r.text)
	})
}

func (t *oracleTable) each(f func(*oracleRow)) {
	for _, r := range t.rows {
		f(r)
	}
	for _, r := range t.bag {
		f(r)
	}
}

func (t *oracleTable) advance(h *source.History, lsn int64) {
	for t.next < len(h.Txns) && h.Txns[t.next].LSN <= lsn {
		txn := h.Txns[t.next]
		for i := range txn.Changes {
			if c := &txn.Changes[i]; c.Table.OID == t.oid && txn.LSN > t.after {
				t.fold(c)
			}
		}
		t.next++
	}
	t.lsn = lsn
}

// fold applies one change.
func (t *oracleTable) fold(c *source.Change) {
	switch {
	case c.Truncate:
		clear(t.rows)
		t.bag, t.digest = nil, query.Digest{}
	case len(c.Version.Key) == 0:
		if c.Old != nil && c.Version.WholeRow {
			t.removeOne(c.Version, c.Old)
		}
		if (c.Op == change.Insert || c.New != nil && c.Version.WholeRow) && !t.refuses(c) {
			r := t.make(c)
			t.bag = append(t.bag, r)
		}
	default:
		if c.Old != nil {
			t.remove(c.Version, c.Old)
		}
		if c.New != nil {
			t.remove(c.Version, c.New)
		}
		if c.New != nil && !t.refuses(c) {
			t.rows[string(t.keyOf(c.Version, c.New))] = t.make(c)
		}
	}
}

// refuses says whether a change cannot be taken in: it leaves nothing of its row.
func (t *oracleTable) refuses(c *source.Change) bool {
	return !t.healed && source.Refused(c.New)
}

func (t *oracleTable) make(c *source.Change) *oracleRow {
	r := &oracleRow{version: c.Version, row: c.New}
	r.text = renderRow(t.shape, c.Version, c.New)
	t.digest.Add(r.text)
	return r
}

func (t *oracleTable) remove(v *source.Version, row source.Row) {
	key := t.keyOf(v, row)
	if old := t.rows[string(key)]; old != nil {
		t.digest.Remove(old.text)
		delete(t.rows, string(key))
	}
}

// removeOne removes one of the rows that equal a row in the columns of a version.
func (t *oracleTable) removeOne(v *source.Version, row source.Row) {
	i := slices.IndexFunc(t.bag, func(r *oracleRow) bool {
		now := make(source.Row, len(v.Columns))
		for i, c := range v.Columns {
			at := slices.IndexFunc(r.version.Columns, func(o source.Column) bool { return o.AttNum == c.AttNum })
			if at >= 0 {
				now[i] = source.Convert(r.row[at], c.Type)
			}
		}
		return source.SameRow(now, row)
	})
	if i >= 0 {
		t.digest.Remove(t.bag[i].text)
		t.bag = slices.Delete(t.bag, i, i+1)
	}
}

// keyOf renders a key. It is valid until the next call.
func (t *oracleTable) keyOf(v *source.Version, row source.Row) []byte {
	t.key = t.key[:0]
	for _, i := range v.KeyIndexes() {
		t.key = append(query.AppendValue(t.key, row[i]), '|')
	}
	return t.key
}

// sorted are the rendered rows.
func (t *oracleTable) sorted() []string {
	var out []string
	t.each(func(r *oracleRow) { out = append(out, string(r.text)) })
	slices.Sort(out)
	return out
}

// renderRow shows a row of the source under a schema version of ours: columns by the
// source's permanent numbers; what the row does not have has its initial value.
func renderRow(shape *schema.Table, v *source.Version, row source.Row) []byte {
	values := make([]any, len(shape.Fields))
	for i := range shape.Fields {
		f := &shape.Fields[i]
		at := slices.IndexFunc(v.Columns, func(c source.Column) bool { return c.AttNum == f.AttNum })
		if at >= 0 && at < len(row) {
			values[i] = source.Convert(row[at], f.Type)
		}
	}
	return query.AppendRow(nil, values)
}
