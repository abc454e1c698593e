package values

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// move is a change of tables themselves. done is called when it has happened; also are
// other tables that it is of.
type move struct {
	sql  string
	done func()
	also []*table
}

func (m move) then(sql ...string) move {
	m.sql = strings.Join(append([]string{m.sql}, sql...), ";\n")
	return m
}

// restructure draws a change of a table: of its columns or name, or of what it is.
func (g *generator) restructure(t *table) move {
	switch n := g.r.IntN(20); {
	case n < 2:
		return g.setSchema(t)
	case n < 4:
		return g.changeIdentity(t)
	case n == 4:
		return g.changeKey(t)
	case n == 5:
		return g.swapNames(t, pick(g, g.tables))
	case n == 6:
		return g.remake(t)
	case n < 12 && (t.parts > 0 || t.from != nil):
		return g.repartition(t)
	}
	sql, done := g.alter(t)
	return move{sql: sql, done: done}
}

// setSchema moves a table to the other schema.
func (g *generator) setSchema(t *table) move {
	to := "public"
	if t.schema == to {
		to = "other"
	}
	return move{sql: fmt.Sprintf("ALTER TABLE %s SET SCHEMA %s", t.sql(), to), done: func() { t.schema = to }}
}

// changeIdentity changes what the source sends of old rows.
func (g *generator) changeIdentity(t *table) move {
	kinds := []string{"FULL", "DEFAULT"}
	if t.parts == 0 && t.key != "" {
		kinds = append(kinds, "USING INDEX "+t.key)
	}
	return t.setIdentity(pick(g, kinds))
}

func (t *table) setIdentity(to string) move {
	var out []string
	for _, name := range t.all() {
		out = append(out, "ALTER TABLE "+name+" REPLICA IDENTITY "+to)
	}
	return move{sql: strings.Join(out, ";\n"), done: func() {
		t.identity = to
		t.restless = t.restless || len(t.keyNames()) == 0
	}}
}

// changeKey takes the primary key away, or makes one.
func (g *generator) changeKey(t *table) move {
	if t.key != "" {
		m := move{sql: fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", t.sql(), t.key)}
		identity := "DEFAULT"
		if g.one(2) {
			identity = "FULL"
		}
		full := t.setIdentity(identity)
		m = m.then(full.sql)
		m.done = func() {
			for i := range t.columns {
				c := &t.columns[i]
				c.key, c.notNull = false, c.notNull || c.key
			}
			t.key = ""
			full.done()
		}
		return m
	}
	var names []string
	var places []int
	for i, c := range t.columns {
		if c.split || c.typ.key && len(places) < 2 && g.one(2) {
			names, places = append(names, quote.Name(c.name)), append(places, i)
		}
	}
	if len(places) == 0 {
		return t.setIdentity(t.identity)
	}
	key := g.newName("k")
	return move{
		sql: fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s PRIMARY KEY (%s)", t.sql(), key, strings.Join(names, ", ")),
		done: func() {
			for _, i := range places {
				t.columns[i].key = true
			}
			t.key, t.restless = key, true
		},
	}
}

// swapNames gives two tables each the name of the other.
func (g *generator) swapNames(a, b *table) move {
	if a == b || a.schema != b.schema {
		return g.setSchema(a)
	}
	between := g.newName("b")
	rename := func(t *table, to string) string {
		return fmt.Sprintf("ALTER TABLE %s RENAME TO %s", t.sql(), quote.Name(to))
	}
	m := move{sql: rename(a, between)}.then(rename(b, a.name),
		fmt.Sprintf("ALTER TABLE %s.%s RENAME TO %s", quote.Name(a.schema), between, quote.Name(b.name)))
	m.done = func() { a.name, b.name = b.name, a.name }
	m.also = []*table{b}
	return m
}

// remake drops a table and makes another one under its name.
func (g *generator) remake(t *table) move {
	n := &table{schema: t.schema, name: t.name}
	g.fill(n)
	m := move{sql: "DROP TABLE " + t.sql()}.then(n.made...).then(g.insert(n, 1+g.r.IntN(4)))
	m.done = func() {
		n.here, n.restless = t.here, true
		*t = *n
	}
	return m
}

// repartition draws a change of the partitions of a table, or has one that was one become
// one again.
func (g *generator) repartition(t *table) move {
	if t.parts == 0 {
		return g.attach(t.from, t)
	}
	var missing []int
	for r := range t.parts {
		if !slices.ContainsFunc(t.leaves, func(l leaf) bool { return l.remainder == r }) {
			missing = append(missing, r)
		}
	}
	switch {
	case len(missing) == 0 || len(t.leaves) > 0 && g.one(3):
		at := g.r.IntN(len(t.leaves))
		if g.one(3) {
			return move{sql: "DROP TABLE " + leafSQL(t.leaves[at]), done: func() {
				t.leaves = slices.Delete(t.leaves, at, at+1)
				t.restless = true
			}}
		}
		return g.detach(t, at)
	case g.one(3):
		l := leaf{g.newName("l"), pick(g, missing)}
		return move{sql: t.newLeaf(l), done: func() { t.leaves = append(t.leaves, l) }}.then(
			fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY %s", leafSQL(l), t.leafIdentity()))
	}
	for _, o := range g.tables {
		if o.from == t && slices.Contains(missing, o.place) && g.one(2) {
			return g.attach(t, o)
		}
	}
	n := &table{schema: "public", name: g.newName("l"), columns: t.columns, place: pick(g, missing)}
	m := g.attach(t, n)
	m.sql = fmt.Sprintf("CREATE TABLE %s (LIKE %s INCLUDING ALL);\n%s;\n", n.sql(), t.sql(), g.insert(n, 4)) + m.sql
	m.also = nil
	return m
}

// leafIdentity is the replica identity that a partition of its own has to have.
func (t *table) leafIdentity() string {
	if t.identity == "FULL" {
		return "FULL"
	}
	return "DEFAULT"
}

// detach makes a table of a partition.
func (g *generator) detach(t *table, at int) move {
	l := t.leaves[at]
	n := &table{
		schema: "public", name: l.name, columns: slices.Clone(t.columns), identity: t.leafIdentity(), added: t.added,
		from: t, place: l.remainder, restless: true,
	}
	for i := range n.columns {
		n.columns[i].split = false
		n.undeclared = n.undeclared || strings.HasSuffix(n.columns[i].typ.sql, "[][]")
	}
	return move{
		sql: fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", t.sql(), leafSQL(l)),
		done: func() {
			t.leaves = slices.Delete(t.leaves, at, at+1)
			t.restless = true
			g.tables = append(g.tables, n)
		},
		also: []*table{n},
	}
}

// attach makes a partition of a table, which loses the rows that do not belong there.
func (g *generator) attach(t, n *table) move {
	l := leaf{n.name, n.place}
	m := move{sql: fmt.Sprintf("DELETE FROM %s WHERE NOT satisfies_hash_partition(%s::regclass, %d, %d, %s)",
		n.sql(), quote.Literal(t.sql()), max(t.parts, 1), n.place, t.split())}
	if n.schema != "public" {
		m = m.then(fmt.Sprintf("ALTER TABLE %s SET SCHEMA public", n.sql()))
	}
	m = m.then(fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY %s", leafSQL(l), t.leafIdentity()),
		fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES WITH (MODULUS %d, REMAINDER %d)", t.sql(), leafSQL(l), t.parts, l.remainder))
	m.done = func() {
		g.tables = slices.DeleteFunc(g.tables, func(o *table) bool { return o == n })
		t.leaves = append(t.leaves, l)
		t.restless = true
	}
	m.also = []*table{t}
	return m
}
