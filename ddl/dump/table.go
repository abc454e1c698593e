package dump

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// lines puts each item of a list into a line of its own.
func lines(items []string) string { return "(\n    " + strings.Join(items, ",\n    ") + "\n)" }

// tables are those of our own, with their constraints, and empty.
func (d *script) tables() {
	identity := map[change.TableID]map[int32]*sequence.Sequence{}
	for _, s := range d.Snapshot.Sequences() {
		if s.Identity == "" {
			continue
		}
		if identity[s.Table] == nil {
			identity[s.Table] = map[int32]*sequence.Sequence{}
		}
		identity[s.Table][s.Column] = s
	}
	for _, t := range d.own() {
		name := qualified(t.Schema, t.Name)
		parts := []string{}
		for _, f := range t.Current.Fields {
			parts = append(parts, column(t, f, identity[t.Face()][f.ID]))
		}
		d.add("table", tableOf(t), "CREATE TABLE %s %s%s;", name, lines(append(parts, constraints(t)...)), storage(t))
		d.owner("TABLE", name, tableOf(t))
	}
}

// storage are the table's storage parameters.
func storage(t *catalog.Table) string {
	if len(t.Storage) == 0 {
		return ""
	}
	var list []string
	for _, s := range t.Storage {
		name, value, _ := strings.Cut(s, "=")
		list = append(list, name+"="+quote.Text(value))
	}
	return " WITH (" + strings.Join(list, ", ") + ")"
}

// column is a column of CREATE TABLE.
func column(t *catalog.Table, f schema.Field, identity *sequence.Sequence) string {
	part := quote.NameIfNeeded(f.Name) + " " + f.SQLType()
	if name := schema.CollationName(f.Collation); name != "" {
		part += " COLLATE " + quote.Name(name)
	}
	if text, ok := t.Defaults[f.ID]; ok {
		part += " DEFAULT " + text
	}
	if text, ok := t.Generated[f.ID]; ok {
		part += " GENERATED ALWAYS AS (" + text + ") STORED"
	}
	if f.NotNull && !slices.Contains(t.Current.Key, f.ID) {
		part += " NOT NULL"
	}
	if identity != nil {
		word := "ALWAYS"
		if identity.Identity == "d" {
			word = "BY DEFAULT"
		}
		part += fmt.Sprintf(" GENERATED %s AS IDENTITY (SEQUENCE NAME %s%s)", word, qualified(identity.Schema, identity.Name), options(identity))
	}
	return part
}

// constraints are the table's keys and checks.
func constraints(t *catalog.Table) []string {
	var out []string
	names := func(ids []int32) string {
		var list []string
		for _, id := range ids {
			if f, ok := t.Current.Field(id); ok {
				list = append(list, quote.NameIfNeeded(f.Name))
			}
		}
		return strings.Join(list, ", ")
	}
	if len(t.Current.Key) > 0 {
		part := "PRIMARY KEY (" + names(t.Current.Key) + ")"
		if name := t.PrimaryKey(); name != t.Name+"_pkey" {
			part = "CONSTRAINT " + quote.NameIfNeeded(name) + " " + part
		}
		out = append(out, part)
	}
	for _, x := range t.Indexes {
		if x.Constraint {
			nulls := ""
			if x.NullsEqual {
				nulls = "NULLS NOT DISTINCT "
			}
			when := ""
			if x.Deferrable {
				when = " DEFERRABLE"
			}
			if x.Deferred {
				when += " INITIALLY DEFERRED"
			}
			out = append(out, fmt.Sprintf("CONSTRAINT %s UNIQUE %s(%s)%s", quote.NameIfNeeded(x.Name), nulls, names(x.Fields), when))
		}
	}
	for _, k := range t.Checks {
		out = append(out, fmt.Sprintf("CONSTRAINT %s CHECK (%s)", quote.NameIfNeeded(k.Name), k.SQL))
	}
	return out
}

// indexes are those that are no constraints.
func (d *script) indexes() {
	for _, t := range d.own() {
		d.indexesOf(t)
	}
}

func (d *script) indexesOf(t *catalog.Table) {
	for _, x := range t.Indexes {
		if x.Constraint {
			continue
		}
		unique, definition := "", x.Definition
		if x.Unique {
			unique = "UNIQUE "
		}
		if definition == "" {
			var list []string
			expressions := x.Expressions
			for _, id := range x.Fields {
				if f, ok := t.Current.Field(id); ok {
					list = append(list, quote.NameIfNeeded(f.Name))
				} else if len(expressions) > 0 {
					list, expressions = append(list, "("+expressions[0].SQL+")"), expressions[1:]
				}
			}
			definition = "btree (" + strings.Join(list, ", ") + ")"
			if x.NullsEqual {
				definition += " NULLS NOT DISTINCT"
			}
			if where := x.WhereSQL(t.Current); where != "" {
				definition += " WHERE " + where
			}
		}
		d.add("index", tableOf(t), "CREATE %sINDEX %s ON %s USING %s;", unique, quote.NameIfNeeded(x.Name), qualified(t.Schema, t.Name), definition)
	}
}

// foreignRules are what becomes of rows that refer to another, as SQL.
var foreignRules = map[catalog.ForeignAction]string{
	catalog.ForeignRestrict: "RESTRICT", catalog.ForeignCascade: "CASCADE", catalog.ForeignSetNull: "SET NULL", catalog.ForeignSetDefault: "SET DEFAULT",
}

// unchecked are the tables whose rows are not checked, which those of a dump are.
func (d *script) unchecked() {
	for _, t := range d.own() {
		if t.Unchecked {
			d.add("state", tableOf(t), "ALTER TABLE %s DISABLE TRIGGER ALL;", qualified(t.Schema, t.Name))
		}
	}
}

// foreign are the foreign keys.
func (d *script) foreign() {
	columns := func(t *catalog.Table, ids []int32) string {
		var list []string
		for _, id := range ids {
			if f, ok := t.Current.Field(id); ok {
				list = append(list, quote.NameIfNeeded(f.Name))
			}
		}
		return "(" + strings.Join(list, ", ") + ")"
	}
	for _, t := range d.own() {
		for _, k := range t.Foreign {
			parent, err := d.Snapshot.TableByFace(k.Table)
			if err != nil {
				continue
			}
			part := ""
			if k.Full {
				part += " MATCH FULL"
			}
			if rule := foreignRules[k.OnUpdate]; rule != "" {
				part += " ON UPDATE " + rule
			}
			if rule := foreignRules[k.OnDelete]; rule != "" {
				part += " ON DELETE " + rule
			}
			if len(k.Set) > 0 {
				part += " " + columns(t, k.Set)
			}
			for _, w := range []struct {
				is   bool
				word string
			}{{k.Deferrable, " DEFERRABLE"}, {k.Deferred, " INITIALLY DEFERRED"}, {k.Invalid, " NOT VALID"}} {
				if w.is {
					part += w.word
				}
			}
			d.add("constraint", tableOf(t), "ALTER TABLE %s ADD CONSTRAINT %s FOREIGN KEY %s REFERENCES %s%s%s;", qualified(t.Schema, t.Name),
				quote.NameIfNeeded(k.Name), columns(t, k.Fields), qualified(parent.Schema, parent.Name), columns(parent, k.Refs), part)
		}
	}
}

// named are the sequences that are no session's; identities are made with their tables.
func (d *script) named(identities bool) []*sequence.Sequence {
	var out []*sequence.Sequence
	for _, s := range d.Snapshot.Sequences() {
		if !d.hidden[s.Schema] && (identities || s.Identity == "") {
			out = append(out, s)
		}
	}
	return out
}

// sequences are made before the defaults that draw from them.
func (d *script) sequences() {
	for _, s := range d.named(false) {
		name := qualified(s.Schema, s.Name)
		d.add("sequence", sequenceOf(s), "CREATE SEQUENCE %s AS %s%s;", name, schema.PostgresTypeName(s.Type, -1), options(s))
		d.owner("SEQUENCE", name, sequenceOf(s))
	}
}

// options are those of CREATE SEQUENCE that differ from what it takes by itself.
func options(s *sequence.Sequence) string {
	bits := map[uint32]int{schema.OIDInt2: 16, schema.OIDInt4: 32, schema.OIDInt8: 64}[s.Type]
	least, most := int64(1), int64(math.MaxInt64)>>(64-bits)
	if s.Increment < 0 {
		least, most = int64(math.MinInt64)>>(64-bits), -1
	}
	start := s.Min
	if s.Increment < 0 {
		start = s.Max
	}
	out := ""
	for _, o := range []struct {
		word      string
		is, plain int64
	}{{"INCREMENT BY", s.Increment, 1}, {"MINVALUE", s.Min, least}, {"MAXVALUE", s.Max, most}, {"START WITH", s.Start, start}, {"CACHE", s.Cache, 1}} {
		if o.is != o.plain {
			out += fmt.Sprintf(" %s %d", o.word, o.is)
		}
	}
	if s.Cycle {
		out += " CYCLE"
	}
	return out
}

// belonging says with which columns sequences go.
func (d *script) belonging() {
	for _, s := range d.named(false) {
		t, err := d.Snapshot.TableByFace(s.Table)
		if s.Table == 0 || err != nil {
			continue
		}
		if f, ok := t.Current.Field(s.Column); ok {
			d.add("sequence owner", sequenceOf(s), "ALTER SEQUENCE %s OWNED BY %s.%s;", qualified(s.Schema, s.Name),
				qualified(t.Schema, t.Name), quote.NameIfNeeded(f.Name))
		}
	}
}

// values are how far sequences have come.
func (d *script) values() {
	for _, s := range d.named(true) {
		last, called := s.Last, s.Called
		if d.Last != nil {
			last, called = d.Last(s)
		}
		if called || last != s.Start {
			d.add("value", sequenceOf(s), "SELECT pg_catalog.setval(%s, %d, %t);", quote.Literal(qualified(s.Schema, s.Name)), last, called)
		}
	}
}

// belongingComments are those on a table's indexes and constraints.
func belongingComments(t *catalog.Table, say func(word, sql, text string)) {
	index := func(name string, c catalog.IndexComments) {
		say("INDEX", qualified(t.Schema, name), c.Index)
		say("CONSTRAINT", quote.NameIfNeeded(name)+" ON "+qualified(t.Schema, t.Name), c.Constraint)
	}
	if t.Current.HasKey() {
		index(t.PrimaryKey(), t.KeyComments)
	}
	for _, x := range t.Indexes {
		index(x.Name, x.Comments)
	}
	for _, k := range t.Checks {
		say("CONSTRAINT", quote.NameIfNeeded(k.Name)+" ON "+qualified(t.Schema, t.Name), k.Comment)
	}
	for _, k := range t.Foreign {
		say("CONSTRAINT", quote.NameIfNeeded(k.Name)+" ON "+qualified(t.Schema, t.Name), k.Comment)
	}
}
