package dump

import (
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// grants is an access list on its way to the statements that make it out of another one.
type grants struct {
	d     *script
	kind  string
	about of
	owner uint32
	all   right.Set
	// on is what stands between the privileges and who gets them, columns what follows each
	// privilege, head what each statement begins with.
	on, columns, head string
}

// privileges are what was granted on objects, and revoked.
func (d *script) privileges() {
	list := func(word, sql string, o of) {
		e := d.Rights.Entry(o.object)
		if e == nil || !e.Set {
			return
		}
		g := grants{d: d, kind: "privilege", about: o, owner: d.Rights.Owner(o.object), all: o.object.Class.All(), on: "ON " + word + " " + sql}
		g.change(right.DefaultACL(o.object, g.owner), e.ACL)
	}
	o := of{right.Object{Class: right.Database}, d.Database}
	d.owner("DATABASE", quote.NameIfNeeded(d.Database), o)
	list("DATABASE", quote.NameIfNeeded(d.Database), o)
	for _, s := range d.Snapshot.Secrets() {
		list("SECRET", quote.NameIfNeeded(s.Name), of{right.Object{Class: right.Secret, Name: s.Name}, s.Name})
	}
	for _, c := range d.Snapshot.Connections() {
		list("CONNECTION", quote.NameIfNeeded(c.Name), of{right.Object{Class: right.Connection, Name: c.Name}, c.Name})
	}
	for _, p := range d.Snapshot.Pipelines() {
		list("PIPELINE", quote.NameIfNeeded(p.Name), pipelineOf(p))
	}
	for _, s := range d.Snapshot.Schemas() {
		if !s.Temp {
			list("SCHEMA", quote.NameIfNeeded(s.Name), schemaOf(s))
		}
	}
	for _, e := range d.ownTypes() {
		list("TYPE", qualified(e.Schema, e.Name), typeOf(e))
	}
	for _, s := range d.named(true) {
		list("SEQUENCE", qualified(s.Schema, s.Name), sequenceOf(s))
	}
	for _, t := range byName(d.Snapshot.AllTables()) {
		if t.Temp == "" {
			list("TABLE", qualified(t.Schema, t.Name), tableOf(t))
			d.columnPrivileges(t, tableOf(t))
		}
	}
	for _, v := range d.Snapshot.Views() {
		if !d.hidden[v.Schema] {
			list("TABLE", qualified(v.Schema, v.Name), viewOf(v))
			columns := &catalog.Table{Schema: v.Schema, Name: v.Name, Current: &schema.Table{}}
			for i, c := range v.Columns {
				columns.Current.Fields = append(columns.Current.Fields, schema.Field{ID: int32(i + 1), Name: c.Name})
			}
			d.columnPrivileges(columns, viewOf(v))
		}
	}
}

// columnPrivileges are what was granted on columns of a relation.
func (d *script) columnPrivileges(t *catalog.Table, o of) {
	e := d.Rights.Entry(o.object)
	if e == nil {
		return
	}
	for _, f := range t.Current.Fields {
		g := grants{
			d: d, kind: "privilege", about: o, owner: d.Rights.Owner(o.object), all: right.ColumnPrivileges,
			on: "ON TABLE " + qualified(t.Schema, t.Name), columns: " (" + quote.NameIfNeeded(f.Name) + ")",
		}
		g.change(nil, e.Columns[f.ID])
	}
}

// defaultPrivileges are what new objects of roles get.
func (d *script) defaultPrivileges() {
	words := map[string]string{string(rune(right.Relation)): "TABLES", string(rune(right.Sequence)): "SEQUENCES", string(rune(right.Schema)): "SCHEMAS"}
	for _, e := range d.Rights.Entries() {
		o := e.Object
		if o.Class != right.DefaultOf || !e.Set || words[o.Name] == "" {
			continue
		}
		class := right.Class(o.Name[0])
		head, before := "ALTER DEFAULT PRIVILEGES FOR ROLE "+d.role(o.ID)+" ", right.DefaultACL(right.Object{Class: class, ID: ^uint32(0)}, o.ID)
		if o.Sub != 0 {
			i := slices.IndexFunc(d.Snapshot.Schemas(), func(s *catalog.Schema) bool { return s.OID == o.Sub })
			if i < 0 {
				continue
			}
			head, before = head+"IN SCHEMA "+quote.NameIfNeeded(d.Snapshot.Schemas()[i].Name)+" ", nil
		}
		g := grants{
			d: d, kind: "default privilege", about: of{name: d.Rights.Name(o.ID)}, owner: o.ID, all: class.All(),
			on: "ON " + words[o.Name], head: head,
		}
		g.change(before, e.ACL)
	}
}

// change is what makes one access list out of another.
func (g *grants) change(before, after right.ACL) {
	has := func(list right.ACL, i right.Item) right.Item {
		for _, x := range list {
			if x.Grantee == i.Grantee && x.Grantor == i.Grantor {
				return x
			}
		}
		return right.Item{Grantee: i.Grantee, Grantor: i.Grantor}
	}
	for _, i := range g.sorted(before) {
		if lost := i.Privileges &^ has(after, i).Privileges; lost != 0 {
			g.say(i, "REVOKE "+g.words(lost), " FROM ", "")
		}
	}
	given := map[uint32]right.Set{g.owner: ^right.Set(0)} // what each role may grant on by now
	left := g.sorted(after)
	for len(left) > 0 {
		n := slices.IndexFunc(left, func(i right.Item) bool { return i.Privileges&^given[i.Grantor] == 0 })
		i := left[max(n, 0)]
		left = slices.DeleteFunc(left, func(x right.Item) bool { return x.Grantee == i.Grantee && x.Grantor == i.Grantor })
		old := has(before, i)
		if plain := i.Privileges &^ i.Options &^ old.Privileges; plain != 0 {
			g.say(i, "GRANT "+g.words(plain), " TO ", "")
		}
		if options := i.Options &^ old.Options; options != 0 {
			g.say(i, "GRANT "+g.words(options), " TO ", " WITH GRANT OPTION")
		}
		given[i.Grantee] |= i.Options
	}
}

// sorted is a list by the names of who gave and got.
func (g *grants) sorted(list right.ACL) []right.Item {
	return slices.SortedFunc(slices.Values(list), func(a, b right.Item) int {
		return strings.Compare(g.d.role(a.Grantor)+" "+g.d.role(a.Grantee), g.d.role(b.Grantor)+" "+g.d.role(b.Grantee))
	})
}

// words are privileges as SQL.
func (g *grants) words(set right.Set) string {
	if set == g.all {
		return "ALL" + g.columns
	}
	words := set.Words()
	for i := range words {
		words[i] += g.columns
	}
	return strings.Join(words, ", ")
}

// say adds a statement, which another role than the owner runs if it was the one that granted.
func (g *grants) say(i right.Item, verb, word, end string) {
	sql := g.head + verb + " " + g.on + word + g.d.role(i.Grantee) + end + ";"
	if i.Grantor != g.owner {
		sql = "SET ROLE " + g.d.role(i.Grantor) + "; " + sql + " RESET ROLE;"
	}
	g.d.add(g.kind, g.about, "%s", sql)
}
