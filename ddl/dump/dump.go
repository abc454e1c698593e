// Package dump renders the statements that make what the catalog has: roles, secrets, connections,
// schemas, tables of our own with all that belongs to them, pipelines, views, comments and
// privileges, in an order in which they can be run. What is one session's is left out, and so is
// every secret. What those statements make dumps as the same text again.
package dump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// Statement makes an object, or something about it.
type Statement struct {
	// Kind is what it makes: "table", "owner", "privilege", …
	Kind string
	// Name is the object's, with its schema if it has one.
	Name string
	SQL  string
	// Object is what it is about: who may see it is shown the statement. The zero value is for
	// superusers alone.
	Object right.Object
}

// Source is what is dumped.
type Source struct {
	Snapshot *catalog.Snapshot
	Rights   *right.Book
	Database string
	// Last is the newest value that a sequence has given; nil: its row says it.
	Last func(*sequence.Sequence) (last int64, called bool)
}

// Statements are all, in the order in which they can be run. Rows of tables belong behind the
// last of kind "table".
func Statements(s Source) ([]Statement, error) {
	d := &script{Source: s, hidden: map[string]bool{}}
	for _, x := range s.Snapshot.Schemas() {
		d.hidden[x.Name] = x.Temp
	}
	d.roles()
	if err := d.sources(); err != nil {
		return nil, err
	}
	d.schemas()
	d.types()
	d.sequences()
	d.tables()
	d.indexes()
	d.foreign()
	d.unchecked()
	d.belonging()
	d.values()
	if err := d.pipelines(); err != nil {
		return nil, err
	}
	d.views()
	d.comments()
	d.privileges()
	d.defaultPrivileges()
	return d.out, nil
}

// script collects statements.
type script struct {
	Source
	out []Statement
	// hidden are schemas of sessions.
	hidden map[string]bool
}

// of is what statements are about.
type of struct {
	object right.Object
	name   string // shown
}

func (d *script) add(kind string, o of, format string, args ...any) {
	d.out = append(d.out, Statement{Kind: kind, Name: o.name, SQL: fmt.Sprintf(format, args...), Object: o.object})
}

// owner gives an object that was just made to its owner, unless that is who makes it.
func (d *script) owner(word, sql string, o of) {
	role := d.Rights.Owner(o.object)
	made := right.Bootstrap
	if o.object.Class == right.Schema && o.object.ID == right.PublicSchema {
		made = right.DatabaseOwner
	}
	if role != made {
		d.add("owner", o, "ALTER %s %s OWNER TO %s;", word, sql, d.role(role))
	}
}

func (d *script) role(oid uint32) string {
	if oid == right.Public {
		return "PUBLIC"
	}
	return quote.NameIfNeeded(d.Rights.Name(oid))
}

// qualified is a name with its schema, as SQL.
func qualified(schema, name string) string {
	return quote.NameIfNeeded(schema) + "." + quote.NameIfNeeded(name)
}

func tableOf(t *catalog.Table) of {
	return of{right.Table(uint32(t.Face())), t.Schema + "." + t.Name}
}

func viewOf(v *catalog.View) of { return of{right.Table(uint32(v.ID)), v.Schema + "." + v.Name} }

func sequenceOf(s *sequence.Sequence) of {
	return of{right.SequenceOf(uint32(s.ID)), s.Schema + "." + s.Name}
}

func schemaOf(s *catalog.Schema) of {
	return of{right.Object{Class: right.Schema, ID: s.OID}, s.Name}
}

func pipelineOf(p *catalog.Pipeline) of {
	return of{right.Object{Class: right.Pipeline, ID: uint32(p.ID)}, p.Name}
}

// sources are secrets and connections.
func (d *script) sources() error {
	for _, s := range d.Snapshot.Secrets() {
		text, err := ddl.GetDDL(d.Snapshot, "secret", s.Name)
		if err != nil {
			return err
		}
		o := of{right.Object{Class: right.Secret, Name: s.Name}, s.Name}
		d.add("secret", o, "%s", text)
		d.owner("SECRET", quote.NameIfNeeded(s.Name), o)
	}
	for _, c := range d.Snapshot.Connections() {
		if c.Implicit || c.Name == catalog.OwnPipeline {
			continue
		}
		text, err := ddl.GetDDL(d.Snapshot, "connection", c.Name)
		if err != nil {
			return err
		}
		o := of{right.Object{Class: right.Connection, Name: c.Name}, c.Name}
		d.add("connection", o, "%s", text)
		d.owner("CONNECTION", quote.NameIfNeeded(c.Name), o)
	}
	return nil
}

// schemas are those that were made, and those that our own objects are in.
func (d *script) schemas() {
	needed := map[string]bool{}
	for _, t := range d.own() {
		needed[t.Schema] = true
	}
	for _, v := range d.Snapshot.Views() {
		needed[v.Schema] = true
	}
	for _, s := range d.Snapshot.Sequences() {
		needed[s.Schema] = true
	}
	for _, e := range d.ownTypes() {
		needed[e.Schema] = true
	}
	for _, s := range d.Snapshot.Schemas() {
		if s.Temp || s.Name != "public" && !s.Made && !needed[s.Name] {
			continue
		}
		if s.Name != "public" {
			d.add("schema", schemaOf(s), "CREATE SCHEMA IF NOT EXISTS %s;", quote.NameIfNeeded(s.Name))
		}
		d.owner("SCHEMA", quote.NameIfNeeded(s.Name), schemaOf(s))
	}
}

// ownTypes are the types that no source has.
func (d *script) ownTypes() []*usertype.Type {
	return slices.DeleteFunc(d.Snapshot.Types(), func(e *usertype.Type) bool { return e.Source != nil })
}

// types are the enumerated types.
func (d *script) types() {
	for _, e := range d.ownTypes() {
		var labels []string
		for _, l := range e.Labels {
			labels = append(labels, quote.Literal(l))
		}
		name := qualified(e.Schema, e.Name)
		d.add("type", typeOf(e), "CREATE TYPE %s AS ENUM (%s);", name, strings.Join(labels, ", "))
		d.owner("TYPE", name, typeOf(e))
	}
}

func typeOf(e *usertype.Type) of {
	return of{right.Object{Class: right.Type, ID: e.OID()}, e.Schema + "." + e.Name}
}

// pipelines are those that users made.
func (d *script) pipelines() error {
	for _, p := range d.Snapshot.Pipelines() {
		if p.Name == catalog.OwnPipeline {
			continue
		}
		text, err := ddl.GetDDL(d.Snapshot, "pipeline", p.Name)
		if err != nil {
			return err
		}
		name := quote.NameIfNeeded(p.Name)
		d.add("pipeline", pipelineOf(p), "%s", text)
		if p.Enabled && p.Paused {
			d.add("state", pipelineOf(p), "ALTER PIPELINE %s PAUSE;", name)
		}
		d.owner("PIPELINE", name, pipelineOf(p))
	}
	return nil
}

// views are made behind those that they read.
func (d *script) views() {
	waiting := map[change.TableID]bool{}
	var views []*catalog.View
	for _, v := range d.Snapshot.Queries() {
		if !d.hidden[v.Schema] {
			views, waiting[v.ID] = append(views, v), true
		}
	}
	for len(views) > 0 {
		i := slices.IndexFunc(views, func(v *catalog.View) bool {
			return !slices.ContainsFunc(v.Reads, func(id change.TableID) bool { return id != v.ID && waiting[id] })
		})
		v := views[max(i, 0)]
		views = slices.DeleteFunc(views, func(o *catalog.View) bool { return o == v })
		delete(waiting, v.ID)
		var columns []string
		for _, c := range v.Columns {
			columns = append(columns, quote.NameIfNeeded(c.Name))
		}
		name := qualified(v.Schema, v.Name)
		if v.Materialized {
			d.materialized(v, name, strings.Join(columns, ", "))
			continue
		}
		with := ""
		if len(v.Options) > 0 {
			with = " WITH (" + strings.Join(v.Options, ", ") + ")"
		}
		d.add("view", viewOf(v), "CREATE VIEW %s (%s)%s AS %s;", name, strings.Join(columns, ", "), with, v.SQL)
		for i, c := range v.Columns {
			if c.Default != "" {
				d.add("default", viewOf(v), "ALTER VIEW %s ALTER COLUMN %s SET DEFAULT %s;", name, columns[i], c.Default)
			}
		}
		d.owner("VIEW", name, viewOf(v))
	}
}

// materialized is a materialized view, which is filled when it is made, unless it was not.
func (d *script) materialized(v *catalog.View, name, columns string) {
	t, err := d.Snapshot.TableByFace(v.ID)
	if err != nil {
		return // it is of this snapshot
	}
	data := ""
	if !t.Query.Populated {
		data = " WITH NO DATA"
	}
	d.add("view", tableOf(t), "CREATE MATERIALIZED VIEW %s (%s) AS %s%s;", name, columns, v.SQL, data)
	d.indexesOf(t)
	d.owner("MATERIALIZED VIEW", name, tableOf(t))
}

// comments are those of all that may have one.
func (d *script) comments() {
	say := func(word, sql, text string, o of) {
		if text != "" {
			d.add("comment", o, "COMMENT ON %s %s IS %s;", word, sql, quote.Literal(text))
		}
	}
	database := of{right.Object{Class: right.Database}, d.Database}
	if e := d.Rights.Entry(database.object); e != nil {
		say("DATABASE", quote.NameIfNeeded(d.Database), e.Comment, database)
	}
	for _, r := range d.Rights.Roles() {
		say("ROLE", quote.NameIfNeeded(r.Name), r.Comment, of{name: r.Name})
	}
	for _, s := range d.Snapshot.Schemas() {
		if !s.Temp {
			say("SCHEMA", quote.NameIfNeeded(s.Name), s.Comment, schemaOf(s))
		}
	}
	for _, e := range d.ownTypes() {
		say("TYPE", qualified(e.Schema, e.Name), e.Comment, typeOf(e))
	}
	for _, s := range d.Snapshot.Sequences() {
		if !d.hidden[s.Schema] {
			say("SEQUENCE", qualified(s.Schema, s.Name), s.Comment, sequenceOf(s))
		}
	}
	for _, t := range byName(d.Snapshot.AllTables()) {
		if t.Temp != "" {
			continue
		}
		name := qualified(t.Schema, t.Name)
		word := "TABLE"
		if t.Query != nil {
			word = "MATERIALIZED VIEW"
		}
		say(word, name, t.Comment, tableOf(t))
		for _, f := range t.Current.Fields {
			say("COLUMN", name+"."+quote.NameIfNeeded(f.Name), t.Comments[f.ID], tableOf(t))
		}
		belongingComments(t, func(word, sql, text string) { say(word, sql, text, tableOf(t)) })
	}
	for _, v := range d.Snapshot.Views() {
		if d.hidden[v.Schema] {
			continue
		}
		name := qualified(v.Schema, v.Name)
		say("VIEW", name, v.Comment, viewOf(v))
		for _, c := range v.Columns {
			say("COLUMN", name+"."+quote.NameIfNeeded(c.Name), c.Comment, viewOf(v))
		}
	}
}

// own are the tables of our own that are no session's and no materialized views, by name.
func (d *script) own() []*catalog.Table {
	return slices.DeleteFunc(byName(d.Snapshot.AllTables()), func(t *catalog.Table) bool { return !t.Own || t.Temp != "" || t.Query != nil })
}

func byName(tables []*catalog.Table) []*catalog.Table {
	return slices.SortedFunc(slices.Values(tables), func(a, b *catalog.Table) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
}
