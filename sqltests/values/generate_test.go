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
	split   bool // its partitions are by the hash of this one
}

// table is a drawn table as it is at the source now.
type table struct {
	schema, name string // at the source
	here         string // the name it has here; "" when it is not here, as far as we know
	columns      []column
	identity     string // replica identity, as ALTER TABLE has it
	key          string // name of its primary key, "" for none that we know
	parts        int    // the modulus of its partitions, 0 for a plain table
	leaves       []leaf
	made         []string // what made it
	added        int      // columns that ever were
	// from is the table that it was a partition of, and place where.
	from  *table
	place int
	// restless: what became of it comes by a look at the source, or stops it, so that it
	// need not be equal at once. silent: the source may not have told of its columns.
	// again: it was copied anew since the last comparison.
	restless, silent, again bool
	// undeclared: it was a partition, and PostgreSQL does not write to one how many dimensions
	// its arrays are declared with (attndims is 0), so that they are lists here once it is a
	// table of its own, and rows with other arrays are dead letters.
	undeclared bool
}

// leaf is a partition: one of those that the hash has.
type leaf struct {
	name      string
	remainder int
}

// sql is the table's name in statements.
func (t *table) sql() string { return quote.Name(t.schema) + "." + quote.Name(t.name) }

// leafSQL is the name of a partition in statements.
func leafSQL(l leaf) string { return "public." + quote.Name(l.name) }

// all are the names of a table and its partitions.
func (t *table) all() []string {
	out := []string{t.sql()}
	for _, l := range t.leaves {
		out = append(out, leafSQL(l))
	}
	return out
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
	// heals says that they are dead letters, until they are mended at the source.
	heals bool
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
	t := &table{schema: "public", name: g.newName("t")}
	if g.one(6) {
		t.name = fmt.Sprintf("T %d \"ä\"", g.names)
	}
	g.fill(t)
	return t
}

// newName makes a name that was never used.
func (g *generator) newName(begin string) string {
	g.names++
	return fmt.Sprintf("%s%d", begin, g.names)
}

// fill draws the rest of a table that has a name.
func (g *generator) fill(t *table) {
	keyless := g.one(7)
	for range 1 + g.r.IntN(2)*g.r.IntN(3) {
		t.add(column{typ: pick(g, g.keys), key: !keyless})
	}
	for range g.r.IntN(7) {
		t.add(column{typ: pick(g, g.types), notNull: g.one(4)})
	}
	g.r.Shuffle(len(t.columns), func(i, j int) { t.columns[i], t.columns[j] = t.columns[j], t.columns[i] })
	t.identity = "DEFAULT"
	if keyless || g.one(4) {
		t.identity = "FULL"
	}
	if g.one(4) {
		t.parts = 1 + g.r.IntN(4)
	}
	t.made = g.create(t)
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
	for i := range t.columns {
		c := &t.columns[i]
		def := quote.Name(c.name) + " " + c.typ.sql
		if c.notNull {
			def += " NOT NULL"
		}
		columns = append(columns, def)
		c.split = t.parts > 0 && c.key && hashed(c.typ) && t.split() == ""
	}
	if keys := t.keyNames(); len(keys) > 0 {
		t.key = g.newName("k")
		columns = append(columns, "CONSTRAINT "+t.key+" PRIMARY KEY ("+strings.Join(keys, ", ")+")")
	}
	sql := fmt.Sprintf("CREATE TABLE %s (%s)", t.sql(), strings.Join(columns, ", "))
	if t.split() == "" {
		t.parts = 0
	} else {
		sql += " PARTITION BY HASH (" + t.split() + ")"
	}
	out := []string{sql}
	for p := range t.parts {
		l := leaf{g.newName("l"), p}
		t.leaves = append(t.leaves, l)
		out = append(out, t.newLeaf(l))
	}
	for _, leaf := range t.all() {
		for _, c := range t.columns {
			if slices.Contains([]string{"text", "bytea", "jsonb", "citext", "varchar"}, c.typ.sql) && g.one(2) {
				out = append(out, fmt.Sprintf("ALTER TABLE %s ALTER %s SET STORAGE EXTERNAL", leaf, quote.Name(c.name)))
			}
		}
		if t.identity != "DEFAULT" {
			out = append(out, fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY %s", leaf, t.identity))
		}
	}
	return out
}

// split is the column that says in which partition a row is, "" for none.
func (t *table) split() string {
	for _, c := range t.columns {
		if c.split {
			return quote.Name(c.name)
		}
	}
	return ""
}

// newLeaf makes an empty partition.
func (t *table) newLeaf(l leaf) string {
	return fmt.Sprintf("CREATE TABLE %s PARTITION OF %s FOR VALUES WITH (MODULUS %d, REMAINDER %d)", leafSQL(l), t.sql(), t.parts, l.remainder)
}

// rows is a condition that names n rows from a place in an order of the rows.
func (g *generator) rows(from string, n int) string {
	return fmt.Sprintf(`(tableoid, ctid) IN (SELECT tableoid, ctid FROM %s x ORDER BY x::text COLLATE "C" OFFSET %d LIMIT %d)`,
		from, g.r.IntN(30), n)
}

// target is what a statement names for a table: itself, or a partition of it.
func (g *generator) target(t *table) string {
	if len(t.leaves) > 0 && g.one(4) {
		return leafSQL(pick(g, t.leaves))
	}
	return t.sql()
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
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s ON CONFLICT DO NOTHING", t.sql(), strings.Join(names, ", "), strings.Join(tuples, ", "))
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
	from := g.target(t)
	return fmt.Sprintf("UPDATE %s SET %s WHERE %s", from, strings.Join(sets, ", "), g.rows(from, n))
}

// newLabel draws a further label of the enum.
func (g *generator) newLabel() string {
	g.names++
	label := fmt.Sprintf("l'%d", g.names)
	g.labels = append(g.labels, label)
	return "ALTER TYPE mood ADD VALUE " + quote.Literal(label) + " BEFORE 'ok'"
}

// inserts says of a table that the source sends inserts of it only.
func (t *table) inserts() bool { return len(t.keyNames()) == 0 && t.identity != "FULL" }

// change draws a change of a table's rows.
func (g *generator) change(t *table) string {
	switch n := g.r.IntN(21); {
	case n < 8 || n < 20 && t.inserts():
		return g.insert(t, 1+g.r.IntN(6))
	case n < 15:
		return g.update(t)
	case n < 19:
		from := g.target(t)
		return fmt.Sprintf("DELETE FROM %s WHERE %s", from, g.rows(from, 1+g.r.IntN(3)))
	case n == 19 && len(t.keyNames()) > 0:
		return g.swapKeys(t)
	}
	names := []string{t.sql()}
	for _, other := range g.tables {
		if g.one(2*len(g.tables)) && other != t {
			names = append(names, other.sql())
		}
	}
	return "TRUNCATE " + strings.Join(names, ", ")
}

// swapKeys has two rows exchange their keys, by way of a third.
func (g *generator) swapKeys(t *table) string {
	var third, first, second, isFirst, isSecond, isThird []string
	for _, c := range t.columns {
		if !c.key {
			continue
		}
		name, value := quote.Name(c.name), g.value(c)
		third, isThird = append(third, name+" = "+value), append(isThird, name+" = "+value)
		first, isFirst = append(first, name+" = a."+name), append(isFirst, "x."+name+" = a."+name)
		second, isSecond = append(second, name+" = b."+name), append(isSecond, "x."+name+" = b."+name)
	}
	set := func(to, where []string) string {
		return fmt.Sprintf("  UPDATE %s x SET %s WHERE %s;\n", t.sql(), strings.Join(to, ", "), strings.Join(where, " AND "))
	}
	row := func(into string) string {
		return fmt.Sprintf("  SELECT x.* INTO %s FROM %s x ORDER BY x::text COLLATE \"C\" OFFSET %d LIMIT 1;\n  IF NOT FOUND THEN RETURN; END IF;\n",
			into, t.sql(), g.r.IntN(20))
	}
	return fmt.Sprintf("DO $do$ DECLARE a %[1]s%%ROWTYPE; b %[1]s%%ROWTYPE; BEGIN\n%[2]s%[3]s%[4]s%[5]s%[6]sEND $do$", t.sql(),
		row("a"), row("b"), set(third, isFirst), set(first, isSecond), set(second, isThird))
}

// alter draws a change of a table's columns or name; done is called when it has happened.
func (g *generator) alter(t *table) (sql string, done func()) {
	at := g.r.IntN(len(t.columns))
	c := &t.columns[at]
	table := "ALTER TABLE " + t.sql() + " "
	switch n := g.r.IntN(12); {
	case n < 4:
		return g.addColumn(t)
	case n < 6 && !c.key && len(t.columns) > 1:
		return table + "DROP COLUMN " + quote.Name(c.name), func() { t.columns = slices.Delete(t.columns, at, at+1) }
	case n < 8:
		to := g.newName("r")
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
		to := g.newName("n")
		return table + "RENAME TO " + to, func() { t.name = to }
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
	sql = "ALTER TABLE " + t.sql() + " ADD COLUMN " + quote.Name(c.name) + " " + c.typ.sql + sql
	return sql, func() { t.added, t.columns = next.added, append(t.columns, c) }
}
