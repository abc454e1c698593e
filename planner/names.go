package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// names are the relations of one catalog version. Immutable; it is what statements
// are analysed against.
type names struct {
	version uint64
	system  SystemRelations
	schemas map[string]bool
	tables  map[[2]string]*pgsql.Relation
	indexes map[[2]string]uint32
	// temp is the schema of the session's temporary objects, "" if there is none.
	temp string
	// types are the types that users have made, by schema and name; nil for none.
	types     map[[2]string]*pgsql.UserType
	typeByOID map[uint32]*pgsql.UserType // arrays, too
	// described are the tables without columns of such types, as they are by themselves: the
	// next version has most of them, too.
	described map[*catalog.Table]*pgsql.Relation
}

// namesOf are the names in a snapshot, or draft of the session, made once for each.
func (s *session) namesOf(snap *catalog.Snapshot) *names {
	if !snap.IsDraft() {
		return s.engine.namesOf(snap)
	}
	if s.draftNames == nil {
		s.draftNames = s.engine.makeNames(snap, s.engine.names.Load())
	} else if s.draftNames.version != snap.Version() {
		s.draftNames = s.engine.makeNames(snap, s.draftNames)
	}
	return s.draftNames
}

// namesOf returns the names in a snapshot, made once per catalog version.
func (e *Engine) namesOf(snap *catalog.Snapshot) *names {
	before := e.names.Load()
	if before != nil && before.version == snap.Version() {
		return before
	}
	n := e.makeNames(snap, before)
	e.names.Store(n)
	return n
}

// makeNames returns the names in a snapshot. What has not changed since others, nil for none, is
// taken from them.
func (e *Engine) makeNames(snap *catalog.Snapshot, before *names) *names {
	n := &names{
		version: snap.Version(), system: e.deps.System,
		schemas: map[string]bool{"public": true, "pg_catalog": true, "information_schema": true, "skippr": true},
		tables:  map[[2]string]*pgsql.Relation{}, indexes: map[[2]string]uint32{},
		described: map[*catalog.Table]*pgsql.Relation{},
	}
	for _, s := range snap.Schemas() {
		n.schemas[s.Name] = true
		if s.Temp {
			n.temp = s.Name
		}
	}
	for _, x := range snap.Types() {
		if n.types == nil {
			n.types, n.typeByOID = map[[2]string]*pgsql.UserType{}, map[uint32]*pgsql.UserType{}
		}
		t := define.TypeOf(x)
		n.types[[2]string{x.Schema, x.Name}], n.typeByOID[t.OID] = t, t
		n.typeByOID[x.ArrayOID()] = pgsql.ArrayType(t, x.ArrayOID())
		n.schemas[x.Schema] = true
	}
	typed, known := &pgsql.Env{Resolver: n}, usertype.IndexOf(snap.Types())
	for _, v := range snap.Views() {
		r := typed.WithUserTypes(define.ViewOf(v))
		r.OID = TableOID(v.ID)
		n.tables[[2]string{v.Schema, v.Name}] = r
	}
	for _, t := range snap.AllTables() { // one with the name of a view hides it
		if t.Current == nil {
			continue
		}
		n.schemas[t.Schema] = true
		n.tables[[2]string{t.Schema, t.Name}] = n.describe(t, known, before)
		if t.Current.HasKey() {
			n.indexes[[2]string{t.Schema, t.PrimaryKey()}] = IndexOID(t.Face())
		}
		for _, x := range t.Indexes {
			n.indexes[[2]string{t.Schema, x.Name}] = TableOID(x.ID)
		}
	}
	n.addSequences(snap)
	n.addForeign(snap)
	return n
}

// describe describes a table to the analysis, as it was before where it has not changed.
func (n *names) describe(t *catalog.Table, known usertype.Index, before *names) *pgsql.Relation {
	if slices.ContainsFunc(t.Current.Fields, func(f schema.Field) bool { return f.Enum || f.OID >= schema.OIDFirstUser }) {
		return n.typed(t, known)
	}
	var r *pgsql.Relation
	if before != nil {
		r = before.described[t]
	}
	if r == nil {
		r = relationOf(t)
	}
	n.described[t] = r
	return r
}

// toChange is the description of a table, a copy if other versions have it, too; nil if there is
// no such table.
func (n *names) toChange(t *catalog.Table) *pgsql.Relation {
	key := [2]string{t.Schema, t.Name}
	r := n.tables[key]
	if r != nil && r == n.described[t] {
		c := *r
		c.Columns = slices.Clone(r.Columns)
		r = &c
		n.tables[key] = r
	}
	return r
}

// typed describes a table to the analysis, with its columns' types that users have made.
func (n *names) typed(t *catalog.Table, known usertype.Index) *pgsql.Relation {
	r := relationOf(t)
	define.KnownTypes(r, t, known)
	for i, f := range t.Current.Fields {
		e := n.typeByOID[r.Columns[i].Type.OID]
		if e == nil {
			continue
		}
		_, mod, ok := strings.Cut(f.TypeName, "(")
		if f.TypMod >= 0 && ok && e.Elem == nil { // no two of these have different texts
			if e.Mods == nil {
				e.Mods = map[int32]string{}
			}
			e.Mods[f.TypMod] = "(" + mod
		}
		r.Columns[i].Type.User = e
	}
	return r
}

// UserType implements pgsql.UserTypes.
func (n *names) UserType(schema, name string) *pgsql.UserType {
	return n.types[[2]string{schema, name}]
}

// UserTypeOf implements pgsql.UserTypes.
func (n *names) UserTypeOf(oid uint32) *pgsql.UserType { return n.typeByOID[oid] }

// AllUserTypes implements pgsql.UserTypes.
func (n *names) AllUserTypes() []*pgsql.UserType {
	var out []*pgsql.UserType
	for _, oid := range slices.Sorted(maps.Keys(n.typeByOID)) {
		out = append(out, n.typeByOID[oid])
	}
	return out
}

// addSequences adds the sequences, also to the columns that they go with.
func (n *names) addSequences(snap *catalog.Snapshot) {
	for _, q := range snap.Sequences() {
		r := &pgsql.Relation{Schema: q.Schema, Name: q.Name, OID: TableOID(q.ID), Sequence: true, Columns: []pgsql.RelationColumn{
			{Name: "last_value", Type: pgsql.Type{OID: pgsql.OIDInt8, Mod: -1}, Engine: "BIGINT", AttNum: 1, NotNull: true},
			{Name: "log_cnt", Type: pgsql.Type{OID: pgsql.OIDInt8, Mod: -1}, Engine: "BIGINT", AttNum: 2, NotNull: true},
			{Name: "is_called", Type: pgsql.Type{OID: pgsql.OIDBool, Mod: -1}, Engine: "BOOLEAN", AttNum: 3, NotNull: true},
		}}
		n.schemas[q.Schema] = true
		n.tables[[2]string{q.Schema, q.Name}] = r
		t, err := snap.TableByFace(q.Table)
		if err != nil {
			continue
		}
		of := n.toChange(t)
		for i := range of.Columns {
			c := &of.Columns[i]
			if c.FieldID != q.Column {
				continue
			}
			c.Serial = sequenceText(q)
			if q.Identity != "" {
				c.Identity, c.Default = q.Identity, pgsql.Nextval(q.Schema, q.Name)
			}
		}
	}
}

// addForeign adds the foreign keys to both tables of each.
func (n *names) addForeign(snap *catalog.Snapshot) {
	for _, t := range snap.AllTables() {
		for _, k := range t.Foreign {
			parent, err := snap.TableByFace(k.Table)
			if err != nil {
				continue
			}
			f := &pgsql.Foreign{
				ID: TableOID(k.ID), Name: k.Name, Child: n.toChange(t), Parent: n.toChange(parent),
				OnDelete: k.OnDelete[0], OnUpdate: k.OnUpdate[0], Full: k.Full, Deferrable: k.Deferrable, Deferred: k.Deferred,
			}
			f.Columns, f.Refs, f.Set = places(t.Current, k.Fields), places(parent.Current, k.Refs), places(t.Current, k.Set)
			if len(f.Set) == 0 {
				f.Set = f.Columns
			}
			f.Child.Foreign, f.Parent.Referenced = append(f.Child.Foreign, f), append(f.Parent.Referenced, f)
		}
	}
}

func places(t *schema.Table, fields []int32) (out []int) {
	for _, id := range fields {
		out = append(out, t.Index(id))
	}
	return out
}

// HasSchema implements pgsql.Resolver.
func (n *names) HasSchema(name string) bool { return n.schemas[name] }

// Index implements pgsql.IndexResolver.
func (n *names) Index(schemaName, name string) (oid uint32, ok bool) {
	if oid, ok = n.indexes[[2]string{schemaName, name}]; ok {
		return oid, true
	}
	return n.system.Index(schemaName, name)
}

// Relation implements pgsql.Resolver.
func (n *names) Relation(schemaName, name string) (*pgsql.Relation, bool) {
	if r, ok := n.tables[[2]string{schemaName, name}]; ok {
		return r, true
	}
	sys, ok := n.system.Lookup(schemaName, name)
	if !ok {
		return nil, false
	}
	r := &pgsql.Relation{Schema: sys.Schema, Name: sys.Name, OID: sys.OID, System: true}
	for i, c := range sys.Columns {
		r.Columns = append(r.Columns, pgsql.RelationColumn{
			Name: c.Name, Type: pgsql.Type{OID: c.TypeOID, Mod: c.TypMod}, Engine: c.EngineType, AttNum: int16(i + 1),
		})
	}
	return r, true
}

// elsewhere finds tables of that name in schemas that are not on the search path,
// for a hint.
func (n *names) elsewhere(name string) []string {
	var out []string
	for k := range n.tables {
		if k[1] == name {
			out = append(out, k[0]+"."+k[1])
		}
	}
	slices.Sort(out)
	return out
}

// relationOf describes a table to the analysis.
func relationOf(t *catalog.Table) *pgsql.Relation {
	r := define.RelationOf(t)
	r.OID, r.IndexOID, r.Unchecked = TableOID(t.Face()), IndexOID(t.Face()), t.Unchecked
	for i, at := 0, 0; i < len(t.Indexes); i++ {
		if t.Indexes[i].Unique {
			r.Uniques[at].ID = TableOID(t.Indexes[i].ID)
			at++
		}
	}
	return r
}

// AnnouncedType is the type that clients see for a field: the source's, or text when it
// is none of PostgreSQL's own.
func AnnouncedType(f schema.Field) pgsql.Type { return define.AnnouncedType(f) }

// searchPath resolves the setting: schemas that exist, the user's own for "$user",
// the session's temporary objects and pg_catalog first unless they are named.
func (n *names) searchPath(value, user string) []string {
	var out []string
	named := false
	for _, part := range splitList(value) {
		if part == "$user" {
			part = user
		}
		if part == "pg_temp" && n.temp != "" {
			part = n.temp
		}
		named = named || part == "pg_catalog"
		if n.schemas[part] && !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	if !named {
		out = append([]string{"pg_catalog"}, out...)
	}
	if n.temp != "" && !slices.Contains(out, n.temp) {
		out = append([]string{n.temp}, out...)
	}
	return out
}

// tempFirst says whether a search path has new relations be temporary.
func tempFirst(value string) bool {
	list := splitList(value)
	return len(list) > 0 && list[0] == "pg_temp"
}

// splitList cuts a list of identifiers at commas; quoted ones keep their case.
func splitList(value string) []string {
	var out []string
	var b strings.Builder
	quoted, seen := false, false
	flush := func() {
		if s := b.String(); s != "" || seen {
			out = append(out, s)
		}
		b.Reset()
		seen = false
	}
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"' && quoted && i+1 < len(value) && value[i+1] == '"':
			b.WriteByte(c)
			i++
		case c == '"':
			quoted, seen = !quoted, true
		case c == ',' && !quoted:
			flush()
		case !quoted && (c == ' ' || c == '\t' || c == '\n'):
		case !quoted && c >= 'A' && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		default:
			b.WriteByte(c)
		}
	}
	flush()
	return out
}

// describe names an object for errors.
func (s *session) describe(o right.Object) string {
	snap, release := s.now()
	defer release()
	schemaName := func(oid uint32) string {
		for _, sc := range snap.Schemas() {
			if sc.OID == oid {
				return sc.Name
			}
		}
		return fmt.Sprint(oid)
	}
	switch o.Class {
	case right.Relation, right.Sequence:
		kind := "table "
		if o.Class == right.Sequence {
			kind = "sequence "
		}
		for key, rel := range s.namesOf(snap).tables {
			if rel.OID == o.ID {
				return kind + qualifiedFor(s.env(s.namesOf(snap)).SearchPath, key[0], key[1])
			}
		}
		return fmt.Sprintf("%s%d", kind, o.ID)
	case right.Schema:
		return "schema " + schemaName(o.ID)
	case right.Type:
		if e := s.namesOf(snap).UserTypeOf(o.ID); e != nil {
			return "type " + e.SQLName()
		}
		return fmt.Sprintf("type %d", o.ID)
	case right.Database:
		return "database " + s.engine.deps.Database
	case right.Pipeline:
		for _, p := range snap.Pipelines() {
			if uint32(p.ID) == o.ID {
				return "pipeline " + p.Name
			}
		}
		return fmt.Sprintf("pipeline %d", o.ID)
	case right.DefaultOf:
		text := fmt.Sprintf("default privileges on new %s belonging to role %s", defaultWords[o.Name], s.book().Name(o.ID))
		if o.Sub != 0 {
			text += " in schema " + schemaName(o.Sub)
		}
		return text
	case right.Connection:
		return "connection " + o.Name
	}
	return "secret " + o.Name
}

var defaultWords = map[string]string{"r": "relations", "S": "sequences", "n": "schemas"}

// qualifiedFor is a table's name as the search path needs it.
func qualifiedFor(path []string, schemaName, name string) string {
	if slices.Contains(path, schemaName) {
		return name
	}
	return schemaName + "." + name
}
