package own

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// reader is the role that is granted the right to read tables.
const reader = "reader"

// definitions is what there is beside rows, by tables' names.
type definitions map[string]definition

// definition is what clients change of a table beside its rows.
type definition struct {
	id      change.TableID
	columns string
	// unique are what has values of columns be unique; restart is how often its sequence was
	// given another start.
	unique string
	read   bool // a role may
	// foreign says that the grandchild's rows must refer to children that are there.
	foreign bool
}

// definitionsOf are those of a moment of a catalog.
func definitionsOf(snap *catalog.Snapshot) definitions {
	out := definitions{}
	book := snap.Rights()
	role := book.Named(reader)
	for _, t := range snap.AllTables() {
		d := definition{id: t.ID}
		var columns []string
		for _, f := range t.Current.Fields {
			columns = append(columns, fmt.Sprintf("%s:%d", f.Name, f.AttNum))
		}
		d.columns = strings.Join(columns, " ")
		var unique []string
		for _, x := range t.Indexes {
			if f, ok := t.Current.Field(x.Fields[0]); ok && x.Unique {
				unique = append(unique, f.Name)
			}
		}
		slices.Sort(unique)
		d.unique = strings.Join(unique, " ")
		d.foreign = t.Name == grandTable && slices.ContainsFunc(t.Foreign, func(f catalog.ForeignKey) bool { return f.Deferrable })
		d.read = role != nil && book.Has(role.OID, right.Table(uint32(t.Face())), right.Select) != 0
		out[t.Name] = d
	}
	return out
}

func columnsText(v *source.Version) string {
	var out []string
	for _, c := range v.Columns {
		out = append(out, fmt.Sprintf("%s:%d", c.Name, c.AttNum))
	}
	return strings.Join(out, " ")
}

// edit is what a statement changes of definitions.
type edit struct {
	// at is how many changes of rows of its transaction precede it.
	at int
	do func(definitions)
	// version is the next one of a table, and step turns rows into its.
	table   *source.Table
	version *source.Version
	step    func(source.Row) source.Row
	// made is a table that it makes, under one of some numbers, dropped one that it drops.
	made, dropped *source.Table
	ids           []change.TableID
	// restarts: a sequence begins elsewhere.
	restarts bool
}

// changing is an edit of one table.
func changing(name string, f func(*definition)) func(definitions) {
	return func(d definitions) {
		if t, ok := d[name]; ok {
			f(&t)
			d[name] = t
		}
	}
}

// over is what definitions become by a transaction.
func (t *Txn) over(d definitions) definitions {
	out := maps.Clone(d)
	for _, e := range t.edits {
		if e.do != nil {
			e.do(out)
		}
	}
	return out
}

// next is the version behind one, with the same key.
func next(t *source.Table, v *source.Version, number int, change func(*source.Version)) *source.Version {
	out := &source.Version{Number: number, Columns: slices.Clone(v.Columns), Key: slices.Clone(v.Key), WholeRow: v.WholeRow}
	change(out)
	return out
}

// view is a table as the client's next statement finds it, with what its transaction has defined;
// nil: there is none, or nobody knows.
func (c *Client) view(name string) (*source.Table, *source.Version) {
	t, v := c.server.table(name), (*source.Version)(nil)
	if t != nil {
		v = c.server.version(t)
	}
	if c.txn == nil {
		return t, v
	}
	for _, e := range c.txn.edits {
		switch {
		case e.made != nil && e.made.Name == name:
			t, v = e.made, e.made.Versions[0]
		case e.dropped != nil && e.dropped.Name == name:
			t, v = nil, nil
		case e.version != nil && e.table == t:
			v = e.version
		}
	}
	return t, v
}

// newest is the newest version of a table that there is, or will be with the client's transaction,
// and the greatest number that a column ever had.
func (c *Client) newest(t *source.Table) (number int, att int16) {
	see := func(v *source.Version) {
		number = max(number, v.Number)
		for _, col := range v.Columns {
			att = max(att, col.AttNum)
		}
	}
	for _, v := range t.Versions {
		see(v)
	}
	if c.txn != nil {
		for _, e := range c.txn.edits {
			if e.table == t && e.version != nil {
				see(e.version)
			}
		}
	}
	return number, att
}

// editOf is what a statement changes of definitions, now that it does. The table is the client's
// alone.
func (c *Client) editOf(s *statement) (out edit) {
	t, v := c.view(s.table)
	if c.txn != nil {
		out.at = len(c.txn.changes)
	}
	switch s.kind {
	case create:
		return c.creation(out, s)
	case drop:
		out.dropped = t
		out.do = func(d definitions) { delete(d, s.table) }
	case grant, revoke:
		out.do = changing(s.table, func(d *definition) { d.read = s.kind == grant })
	case unique:
		out.do = changing(s.table, func(d *definition) { d.unique = uniqueColumn(s.table) })
	case notUnique:
		out.do = changing(s.table, func(d *definition) { d.unique = "" })
	case restartWith:
		out.restarts = true
	case foreign, notForeign:
		out.do = changing(grandTable, func(d *definition) { d.foreign = s.kind == foreign })
	case addColumn, dropColumn:
		if t == nil {
			return out
		}
		number, att := c.newest(t)
		out.table = t
		out.version = next(t, v, number+1, func(n *source.Version) {
			if s.kind == addColumn {
				n.Columns = append(n.Columns, source.Column{
					Name: s.column, AttNum: att + 1, Type: schema.Type{Kind: schema.Int32}, OID: int4OID, TypMod: -1,
				})
				return
			}
			n.Columns = slices.DeleteFunc(n.Columns, func(c source.Column) bool { return c.Name == s.column })
		})
		out.step = stepTo(v, out.version)
		text := columnsText(out.version)
		out.do = changing(s.table, func(d *definition) { d.columns = text })
	}
	return out
}

const int4OID = 23

// stepTo turns rows of a version into ones of another, by the columns' numbers.
func stepTo(from, to *source.Version) func(source.Row) source.Row {
	return func(r source.Row) source.Row {
		out := make(source.Row, len(to.Columns))
		for i, c := range to.Columns {
			if at := slices.IndexFunc(from.Columns, func(f source.Column) bool { return f.AttNum == c.AttNum }); at >= 0 {
				out[i] = r[at]
			}
		}
		return out
	}
}

// creation is the edit of a CREATE TABLE of the spare table.
func (c *Client) creation(out edit, s *statement) edit {
	v := c.ledger.spareVersion()
	made := &source.Table{Schema: "public", Name: spare, Versions: []*source.Version{v}}
	out.made, out.ids = made, s.reserved
	out.do = func(d definitions) {
		d[spare] = definition{id: s.reserved[0], columns: columnsText(v)}
	}
	return out
}

// uniqueColumn is the column of a table that an index has be unique.
func uniqueColumn(table string) string {
	if table == "log" {
		return "at"
	}
	return "n"
}

// uniques are the places of columns whose values are to be unique.
func uniquesIn(d definition, v *source.Version) (out []int) {
	for _, name := range strings.Fields(d.unique) {
		if i := slices.IndexFunc(v.Columns, func(c source.Column) bool { return c.Name == name }); i >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// uniques are those of a table as the client's next statement finds it.
func (c *Client) uniques(name string, v *source.Version) []int {
	d := c.ledger.definitions
	if c.txn != nil {
		d = c.txn.over(d)
	}
	return uniquesIn(d[name], v)
}

// repeated says whether two rows have the same value in a column that is to be unique.
func repeated(rows []source.Row, columns []int) bool {
	for _, i := range columns {
		seen := map[any]bool{}
		for _, r := range rows {
			if r[i] == nil {
				continue
			}
			if seen[r[i]] {
				return true
			}
			seen[r[i]] = true
		}
	}
	return false
}

// Observe is told what the catalog of a server that counts has, as soon as it has it, and up to
// which token it has rows.
func (l *Ledger) Observe(by *Server, c *catalog.Catalog, at int64) {
	snap := c.Snapshot()
	defer snap.Close()
	if l.seen == (seenCatalog{c, snap.Version()}) {
		l.Durable(at)
		return
	}
	l.seen = seenCatalog{c, snap.Version()}
	l.bind(snap)
	seen := definitionsOf(snap)
	t := l.committed(by, seen, at)
	switch {
	case t != nil:
		l.adopt(t, seen)
	case !maps.Equal(seen, l.definitions):
		l.Fail(labelCommit, fmt.Sprintf("the catalog defines %v, was %v, and no transaction did that", seen, l.definitions))
		l.definitions = seen
	}
	l.Durable(at)
}

// seenCatalog is a moment of a catalog.
type seenCatalog struct {
	of      *catalog.Catalog
	version uint64
}

// committed finds the transaction that was committed by what is seen for the first time, nil for
// none.
func (l *Ledger) committed(by *Server, seen definitions, at int64) *Txn {
	_, whole := l.attempts[at] // the log has committed that
	for _, t := range l.defining {
		if t.held && t.token != 0 && t.token == at && !t.done && !whole &&
			(t.server == by || maps.Equal(t.over(l.definitions), seen)) {
			return t
		}
	}
	if maps.Equal(seen, l.definitions) {
		return nil
	}
	for _, refused := range []bool{false, true} {
		for _, t := range l.defining {
			if !t.done && t.refused == refused && (!t.held || t.server == by) && maps.Equal(t.over(l.definitions), seen) {
				return t
			}
		}
	}
	return nil
}

// adopt takes the definitions of a transaction, and the rows that became visible with them, for
// committed.
func (l *Ledger) adopt(t *Txn, seen definitions) {
	want := t.over(l.definitions)
	switch {
	case t.refused:
		l.Fail(labelCommit, fmt.Sprintf("definitions %v are committed, and their client was told that nothing of them takes place", seen))
	case !maps.Equal(want, seen):
		l.Fail(labelCommit, fmt.Sprintf("the rows of transaction %d are committed, and not its definitions: %v, not %v", t.token, seen, want))
	}
	t.done, l.definitions = true, seen
	for _, o := range l.defining {
		o.so = o.so || maps.Equal(o.over(seen), seen)
	}
	switch {
	case t.held:
		l.Durable(t.token - 1)
		l.durable, l.Held = t.token, t.token
		l.enter(t.token, t)
	case t.lsn == 0 && l.moves(t):
		l.Fail(labelCommit, fmt.Sprintf("definitions %v are committed, and not the rows of their transaction", seen))
	default:
		l.reshape(t, false)
	}
	l.defining = slices.DeleteFunc(l.defining, func(o *Txn) bool { return o == t })
	for _, of := range l.DB.Tables {
		if repeated(l.rows(of), uniquesIn(seen[of.Name], of.Current())) {
			l.Fail(labelUnique, fmt.Sprintf("table %s has a unique index on %s, and rows %q", of.Name, seen[of.Name].unique, l.rows(of)))
		}
	}
}

// moves says whether a transaction leaves other rows than there are.
func (l *Ledger) moves(t *Txn) bool {
	done := map[*source.Table]bool{}
	for _, c := range t.settled() {
		if done[c.Table] {
			continue
		}
		done[c.Table] = true
		before := l.rows(c.Table)
		if !sameRows(t.rows(c.Table, before, false), t.rows(c.Table, before, true)) {
			return true
		}
	}
	return false
}

func sameRows(a, b []source.Row) bool {
	a = slices.Clone(a)
	for _, r := range b {
		i := slices.IndexFunc(a, func(o source.Row) bool { return source.SameRow(o, r) })
		if i < 0 {
			return false
		}
		a = slices.Delete(a, i, i+1)
	}
	return len(a) == 0
}

// bind gives tables that transactions make the numbers that they have in a catalog, also as
// drafts.
func (l *Ledger) bind(snap *catalog.Snapshot) {
	for _, t := range l.defining {
		for _, e := range t.edits {
			if e.made == nil || e.made.OID != 0 {
				continue
			}
			for _, of := range snap.EveryTable() {
				if slices.Contains(e.ids, of.ID) {
					e.made.OID = of.SourceOID
					l.tables[of.SourceOID] = e.made
					l.DB.AddTable(e.made)
				}
			}
		}
	}
}

// reshape gives tables the versions that a transaction has made; made: only those that it makes.
func (l *Ledger) reshape(t *Txn, made bool) {
	for _, e := range t.edits {
		if e.version == nil || e.table.OID == 0 || slices.Contains(e.table.Versions, e.version) {
			continue
		}
		if !made || t.makes(e.table) {
			l.DB.Reshape(e.table, e.version, e.step)
		}
	}
}

func (t *Txn) makes(table *source.Table) bool {
	return slices.ContainsFunc(t.edits, func(e edit) bool { return e.made == table })
}

// settled are its changes, without those of tables that it drops.
func (t *Txn) settled() []source.Change {
	return slices.DeleteFunc(slices.Clone(t.changes), func(c source.Change) bool {
		return slices.ContainsFunc(t.edits, func(e edit) bool { return e.dropped != nil && e.dropped == c.Table })
	})
}

// begins notes that a transaction that changes definitions may be committed from now on.
func (l *Ledger) begins(t *Txn) {
	if !slices.Contains(l.defining, t) {
		l.defining = append(l.defining, t)
	}
	t.so = t.so || maps.Equal(t.over(l.definitions), l.definitions)
}
