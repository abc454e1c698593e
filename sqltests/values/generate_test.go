package values

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// column is a column of a drawn table.
type column struct {
	name    string
	typ     typ
	notNull bool
	key     bool
}

// table is a drawn table as it is at the source now.
type table struct {
	name    string // at the source
	here    string // the name it came with, which it keeps here; "" when it is not known yet
	names   []string
	columns []column
	full    bool // replica identity
	parts   int
	made    []string // what made it
	added   int      // columns that ever were
}

// generator draws tables and what happens to them. Everything it draws follows from its
// seed: the statements of a run are the same whatever their timing.
type generator struct {
	r      *rand.Rand
	types  []typ
	keys   []typ
	tables []*table
	names  int
	// beyond says that values come that the types here do not hold.
	beyond bool
	// labels are those that the enum got later.
	labels []string
}

func newGenerator(seed uint64) *generator {
	g := &generator{r: rand.New(rand.NewPCG(seed, 24)), types: everyType()}
	for _, t := range g.types {
		if t.key && t.draw != nil {
			g.keys = append(g.keys, t, t, t)
		} else if t.key {
			g.keys = append(g.keys, t)
		}
	}
	return g
}

// one in n.
func (g *generator) one(n int) bool { return g.r.IntN(n) == 0 }

func pick[T any](g *generator, of []T) T { return of[g.r.IntN(len(of))] }

// value draws a value of a column: as often one at an extreme as an ordinary one.
func (g *generator) value(c column) string {
	nullable := !c.notNull && !c.key && c.typ.sql != "amount"
	if nullable && g.one(8) {
		return "NULL"
	}
	if g.beyond && len(c.typ.refused) > 0 && !isList(c.typ) && g.one(5) {
		return pick(g, c.typ.refused)
	}
	if c.typ.sql == "mood" && len(g.labels) > 0 && g.one(2) {
		return quote.Literal(pick(g, g.labels)) + "::mood"
	}
	if c.typ.draw != nil && g.one(2) {
		return c.typ.draw(g.r)
	}
	return pick(g, c.typ.values)
}

// newTable draws a table with one to eight columns.
func (g *generator) newTable() *table {
	g.names++
	t := &table{name: fmt.Sprintf("t%d", g.names)}
	if g.one(6) {
		t.name = fmt.Sprintf("T %d \"ä\"", g.names)
	}
	t.names = []string{t.name}
	keyless := g.one(7)
	for range 1 + g.r.IntN(2)*g.r.IntN(3) {
		t.add(column{typ: pick(g, g.keys), key: !keyless})
	}
	for range g.r.IntN(7) {
		t.add(column{typ: pick(g, g.types), notNull: g.one(4)})
	}
	g.r.Shuffle(len(t.columns), func(i, j int) { t.columns[i], t.columns[j] = t.columns[j], t.columns[i] })
	t.full = keyless || g.one(4)
	if g.one(5) {
		t.parts = 1 + g.r.IntN(3)
	}
	t.made = g.create(t)
	return t
}

func (t *table) add(c column) {
	t.added++
	c.name = fmt.Sprintf("c%d", t.added)
	if t.added%5 == 4 {
		c.name = fmt.Sprintf("C \"%d\"", t.added)
	}
	t.columns = append(t.columns, c)
}

func (t *table) keyNames() []string {
	var out []string
	for _, c := range t.columns {
		if c.key {
			out = append(out, quote.Name(c.name))
		}
	}
	return out
}

// hashed says that a table can be partitioned by the hash of a type.
func hashed(t typ) bool {
	return !strings.HasSuffix(t.name, "]") && !slices.Contains([]string{"money", "bit", "bit(67)", "varbit", "tsvector", "tsquery", "ltree"}, t.name)
}

func (g *generator) create(t *table) []string {
	var columns []string
	split := ""
	for _, c := range t.columns {
		def := quote.Name(c.name) + " " + c.typ.sql
		if c.notNull {
			def += " NOT NULL"
		}
		columns = append(columns, def)
		if c.key && hashed(c.typ) && split == "" {
			split = quote.Name(c.name)
		}
	}
	if keys := t.keyNames(); len(keys) > 0 {
		columns = append(columns, "PRIMARY KEY ("+strings.Join(keys, ", ")+")")
	}
	if split == "" {
		t.parts = 0
	}
	sql := fmt.Sprintf("CREATE TABLE %s (%s)", quote.Name(t.name), strings.Join(columns, ", "))
	if t.parts > 0 {
		sql += " PARTITION BY HASH (" + split + ")"
	}
	out := []string{sql}
	leaves := []string{t.name}
	for p := range t.parts {
		leaf := fmt.Sprintf("%s_%d", t.name, p)
		leaves = append(leaves, leaf)
		out = append(out, fmt.Sprintf("CREATE TABLE %s PARTITION OF %s FOR VALUES WITH (MODULUS %d, REMAINDER %d)", quote.Name(leaf), quote.Name(t.name), t.parts, p))
	}
	for _, leaf := range leaves {
		for _, c := range t.columns {
			if slices.Contains([]string{"text", "bytea", "jsonb", "citext", "varchar"}, c.typ.sql) && g.one(2) {
				out = append(out, fmt.Sprintf("ALTER TABLE %s ALTER %s SET STORAGE EXTERNAL", quote.Name(leaf), quote.Name(c.name)))
			}
		}
		if t.full {
			out = append(out, fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL", quote.Name(leaf)))
		}
	}
	return out
}

// rows is a condition that names n rows from a place in an order of the rows.
func (g *generator) rows(t *table, n int) string {
	return fmt.Sprintf(`(tableoid, ctid) IN (SELECT tableoid, ctid FROM %s x ORDER BY x::text COLLATE "C" OFFSET %d LIMIT %d)`,
		quote.Name(t.name), g.r.IntN(30), n)
}

func (g *generator) insert(t *table, rows int) string {
	var names, tuples []string
	for _, c := range t.columns {
		names = append(names, quote.Name(c.name))
	}
	for range rows {
		var values []string
		for _, c := range t.columns {
			values = append(values, g.value(c))
		}
		tuples = append(tuples, "("+strings.Join(values, ", ")+")")
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s ON CONFLICT DO NOTHING", quote.Name(t.name), strings.Join(names, ", "), strings.Join(tuples, ", "))
}

func (g *generator) update(t *table) string {
	var sets []string
	for _, c := range t.columns {
		if one := g.one(3); one && !c.key || one && g.one(4) {
			sets = append(sets, quote.Name(c.name)+" = "+g.value(c))
		}
	}
	n := 1 + g.r.IntN(4)
	if len(sets) == 0 {
		c := t.columns[0]
		sets = []string{quote.Name(c.name) + " = " + quote.Name(c.name)}
	}
	return fmt.Sprintf("UPDATE %s SET %s WHERE %s", quote.Name(t.name), strings.Join(sets, ", "), g.rows(t, n))
}

// newLabel draws a further label of the enum.
func (g *generator) newLabel() string {
	g.names++
	label := fmt.Sprintf("l'%d", g.names)
	g.labels = append(g.labels, label)
	return "ALTER TYPE mood ADD VALUE " + quote.Literal(label) + " BEFORE 'ok'"
}

// change draws a change of a table's rows.
func (g *generator) change(t *table) string {
	switch n := g.r.IntN(20); {
	case n < 8:
		return g.insert(t, 1+g.r.IntN(6))
	case n < 15:
		return g.update(t)
	case n < 19:
		return fmt.Sprintf("DELETE FROM %s WHERE %s", quote.Name(t.name), g.rows(t, 1+g.r.IntN(3)))
	case g.one(3):
		other := pick(g, g.tables)
		if other != t {
			return fmt.Sprintf("TRUNCATE %s, %s", quote.Name(t.name), quote.Name(other.name))
		}
	}
	return fmt.Sprintf("TRUNCATE %s", quote.Name(t.name))
}

// alter draws a change of a table's columns or name; done is called when it has happened.
func (g *generator) alter(t *table) (sql string, done func()) {
	at := g.r.IntN(len(t.columns))
	c := &t.columns[at]
	table := "ALTER TABLE " + quote.Name(t.name) + " "
	switch n := g.r.IntN(12); {
	case n < 4:
		return g.addColumn(t)
	case n < 6 && !c.key && len(t.columns) > 1:
		return table + "DROP COLUMN " + quote.Name(c.name), func() { t.columns = slices.Delete(t.columns, at, at+1) }
	case n < 8:
		g.names++
		to := fmt.Sprintf("r%d", g.names)
		return table + "RENAME COLUMN " + quote.Name(c.name) + " TO " + to, func() { c.name = to }
	case n < 10 && c.typ.widens != "" && !c.key:
		i := slices.IndexFunc(g.types, func(o typ) bool { return o.sql == c.typ.widens })
		to := c.typ
		to.sql, to.name, to.widens = c.typ.widens, c.typ.widens, ""
		if i >= 0 {
			to = g.types[i]
		}
		return table + "ALTER COLUMN " + quote.Name(c.name) + " TYPE " + to.sql, func() { c.typ = to }
	case n == 10 && !c.key && c.notNull:
		return table + "ALTER COLUMN " + quote.Name(c.name) + " DROP NOT NULL", func() { c.notNull = false }
	case n == 11:
		g.names++
		to := fmt.Sprintf("n%d", g.names)
		return table + "RENAME TO " + to, func() { t.name, t.names = to, append(t.names, to) }
	}
	return table + "ALTER COLUMN " + quote.Name(c.name) + " SET STATISTICS 10", func() {}
}

func (g *generator) addColumn(t *table) (sql string, done func()) {
	c := column{typ: pick(g, g.types)}
	sql = ""
	if g.one(2) && !strings.Contains(c.typ.sql, "amount") {
		v := pick(g, c.typ.values)
		if !strings.Contains(v, "SELECT") && !strings.HasPrefix(c.typ.name, "domain") { // a domain's constraint makes a rewrite
			sql = " DEFAULT " + v
			if g.one(3) {
				sql += " NOT NULL"
				c.notNull = true
			}
		}
	}
	next := &table{added: t.added}
	next.add(c)
	c.name = next.columns[0].name
	sql = "ALTER TABLE " + quote.Name(t.name) + " ADD COLUMN " + quote.Name(c.name) + " " + c.typ.sql + sql
	return sql, func() { t.added, t.columns = next.added, append(t.columns, c) }
}
