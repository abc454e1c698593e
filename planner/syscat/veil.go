package syscat

import (
	"context"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/setting"
)

// veil is what the rows of a relation become for the role that asks: owners and access lists
// are put in, and rows that it may not see left out.
type veil func(v *view, r []any) (keep bool)

// view is a relation's rows being shown to a role.
type view struct {
	env *planner.SystemEnv
	at  map[string]int
	// tables are those of the snapshot by oid and by name, made when asked for.
	byOID  map[uint32]*catalog.Table
	byName map[[2]string]*catalog.Table
	spaces map[string]uint32
}

// veils are the relations that are not the same for all roles.
func veils() map[string]veil {
	out := map[string]veil{
		"pg_catalog.pg_namespace":             veilNamespace,
		"pg_catalog.pg_class":                 veilClass,
		"pg_catalog.pg_attribute":             veilAttribute,
		"pg_catalog.pg_database":              veilDatabase,
		"pg_catalog.pg_tables":                veilTables,
		"pg_catalog.pg_views":                 veilPgViews,
		"information_schema.views":            veilInfoViews,
		"information_schema.schemata":         veilSchemata,
		"information_schema.columns":          veilColumns,
		"information_schema.tables":           seenTable("table_schema", "table_name"),
		"pg_catalog.pg_stat_activity":         veilActivity,
		"pg_catalog.pg_settings":              veilSettings,
		"skippr.pipelines":                    veilPipelines,
		"skippr.connections":                  veilConnections,
		"skippr.secrets":                      ownedByName(right.Secret, "secret"),
		"skippr.events":                       seenPipeline("pipeline"),
		"skippr.segments":                     seenPipeline("pipeline"),
		"skippr.slices":                       seenPipeline("pipeline"),
		"skippr.offsets":                      seenPipeline("pipeline"),
		"pg_catalog.pg_stat_pipeline":         seenPipeline("pipeline"),
		"pg_catalog.pg_stat_pipeline_table":   seenPipeline("pipeline"),
		"skippr.tables":                       seenTable("table_schema", "table_name"),
		"skippr.columns":                      seenTable("table_schema", "table_name"),
		"skippr.compactions":                  seenTable("table_schema", "table_name"),
		"skippr.snapshots":                    seenTable("table_schema", "table_name"),
		"skippr.files":                        seenTable("table_schema", "table_name"),
		"skippr.dead_letters":                 ownedTable("table_schema", "table_name"),
		"information_schema.key_column_usage": seenTable("table_schema", "table_name"),
	}
	for _, name := range []string{"view_table_usage", "view_column_usage"} {
		out["information_schema."+name] = ownedTable("table_schema", "table_name")
	}
	for _, name := range []string{"table_constraints", "constraint_column_usage"} {
		out["information_schema."+name] = ownedOrWritten("table_schema", "table_name")
	}
	return out
}

// veiled puts a veil over a fill.
func veiled(key string, f fill, v veil) fill {
	return func(ctx context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
		rows, err := f(ctx, c, env)
		if err != nil || env.Rights == nil {
			return rows, err
		}
		w := &view{env: env, at: c.shapes[key].places()}
		return slices.DeleteFunc(rows, func(r []any) bool { return !v(w, r) }), nil
	}
}

func (v *view) get(r []any, column string) any { return r[v.at[column]] }

func (v *view) text(r []any, column string) string {
	s, _ := v.get(r, column).(string)
	return s
}

func (v *view) set(r []any, column string, value any) { r[v.at[column]] = value }

func (v *view) super() bool { return v.env.Rights.Superuser(v.env.Role) }

// oidIn reads an oid of a row.
func oidIn(x any) uint32 {
	switch x := x.(type) {
	case uint32:
		return x
	case int:
		return uint32(x)
	case int64:
		return uint32(x)
	}
	return 0
}

func (v *view) index() {
	if v.byOID != nil {
		return
	}
	v.byOID, v.byName = map[uint32]*catalog.Table{}, map[[2]string]*catalog.Table{}
	for _, t := range v.env.Snapshot.AllTables() {
		v.byOID[planner.TableOID(t.Face())] = t
		for _, x := range indexesOf(t) {
			v.byOID[x.oid] = t
		}
		v.byName[[2]string{t.Schema, t.Name}] = t
	}
}

// named is the object of a table or view by its names; false when it is a system relation or there is
// none.
func (v *view) named(r []any, space, name string) (right.Object, bool) {
	v.index()
	if t := v.byName[[2]string{v.text(r, space), v.text(r, name)}]; t != nil {
		return tableObject(t), true
	}
	if w, err := v.env.Snapshot.ViewByName(v.text(r, space), v.text(r, name)); err == nil {
		return right.Object{Class: right.Relation, ID: planner.TableOID(w.ID)}, true
	}
	return right.Object{}, false
}

// space is the object of a schema.
func (v *view) space(name string) right.Object {
	if v.spaces == nil {
		v.spaces = map[string]uint32{}
		for _, n := range namespaces(v.env) {
			v.spaces[n.name] = n.oid
		}
	}
	return right.Object{Class: right.Schema, ID: v.spaces[name]}
}

// acl is an access list as a column has it: nothing when nobody granted anything.
func (v *view) acl(o right.Object) any {
	if e := v.env.Rights.Entry(o); e != nil && e.Set {
		return aclText(v.env, e.ACL)
	}
	return nil
}

func veilNamespace(v *view, r []any) bool {
	o := right.Object{Class: right.Schema, ID: oidIn(v.get(r, "oid"))}
	v.set(r, "nspowner", v.env.Rights.Owner(o))
	if list := v.acl(o); list != nil {
		v.set(r, "nspacl", list)
	}
	return true
}

func veilClass(v *view, r []any) bool {
	v.index()
	var o right.Object
	if t := v.byOID[oidIn(v.get(r, "oid"))]; t != nil {
		o = tableObject(t)
	} else if v.text(r, "relkind") == "S" {
		o = right.Object{Class: right.Sequence, ID: oidIn(v.get(r, "oid"))}
	} else if o = (right.Object{Class: right.Relation, ID: oidIn(v.get(r, "oid"))}); v.env.Rights.Entry(o) == nil {
		return true
	}
	v.set(r, "relowner", v.env.Rights.Owner(o))
	if v.text(r, "relkind") != "i" {
		v.set(r, "relacl", v.acl(o))
	}
	return true
}

func veilAttribute(v *view, r []any) bool {
	v.index()
	t, num := v.byOID[oidIn(v.get(r, "attrelid"))], oidIn(v.get(r, "attnum"))
	if t == nil { // a view, whose columns have no other numbers
		list := v.env.Rights.ColumnACL(right.Object{Class: right.Relation, ID: oidIn(v.get(r, "attrelid"))}, int32(num))
		if len(list) > 0 {
			v.set(r, "attacl", aclText(v.env, list))
		}
		return true
	}
	if e := v.env.Rights.Entry(tableObject(t)); e == nil || len(e.Columns) == 0 {
		return true // as of most tables, which may have many columns
	}
	for i, f := range t.Current.Fields {
		if uint32(attNum(f, i)) != num {
			continue
		}
		if list := v.env.Rights.ColumnACL(tableObject(t), f.ID); len(list) > 0 {
			v.set(r, "attacl", aclText(v.env, list))
		}
	}
	return true
}

func veilDatabase(v *view, r []any) bool {
	o := right.Object{Class: right.Database}
	v.set(r, "datdba", v.env.Rights.Owner(o))
	v.set(r, "datacl", v.acl(o))
	return true
}

func veilTables(v *view, r []any) bool {
	if o, ok := v.named(r, "schemaname", "tablename"); ok {
		v.set(r, "tableowner", v.env.Rights.Name(v.env.Rights.Owner(o)))
	}
	return true
}

func veilSchemata(v *view, r []any) bool {
	o := v.space(v.text(r, "schema_name"))
	v.set(r, "schema_owner", v.env.Rights.Name(v.env.Rights.Owner(o)))
	return v.env.Rights.Sees(v.env.Role, o)
}

func veilColumns(v *view, r []any) bool {
	o, ok := v.named(r, "table_schema", "table_name")
	if !ok || v.env.Rights.Owns(v.env.Role, o) || v.env.Rights.Has(v.env.Role, o, right.ColumnPrivileges) != 0 {
		return true
	}
	t := v.byName[[2]string{v.text(r, "table_schema"), v.text(r, "table_name")}]
	fields := map[string]int32{}
	if t != nil {
		for _, f := range t.Current.Fields {
			fields[f.Name] = f.ID
		}
	} else if w, err := v.env.Snapshot.ViewByName(v.text(r, "table_schema"), v.text(r, "table_name")); err == nil {
		for i, f := range w.Columns {
			fields[f.Name] = int32(i + 1)
		}
	}
	if id, ok := fields[v.text(r, "column_name")]; ok {
		for _, one := range []right.Set{right.Select, right.Insert, right.Update, right.References} {
			if v.env.Rights.HasColumn(v.env.Role, o, id, one) {
				return true
			}
		}
	}
	return false
}

// seenTable shows rows of tables that the role has any privilege on.
func seenTable(space, name string) veil {
	return func(v *view, r []any) bool {
		o, ok := v.named(r, space, name)
		return !ok || v.env.Rights.Sees(v.env.Role, o)
	}
}

// ownedTable shows rows of tables that the role owns: they may have values.
func ownedTable(space, name string) veil {
	return func(v *view, r []any) bool {
		o, ok := v.named(r, space, name)
		return v.super() || ok && v.env.Rights.Owns(v.env.Role, o)
	}
}

// ownedOrWritten shows rows of tables that the role owns or may change, as PostgreSQL shows
// constraints.
func ownedOrWritten(space, name string) veil {
	return func(v *view, r []any) bool {
		o, ok := v.named(r, space, name)
		b := v.env.Rights
		return !ok || b.Owns(v.env.Role, o) || b.Has(v.env.Role, o, o.Class.All()&^right.Select) != 0
	}
}

// pipeline is the object of a pipeline by its name.
func (v *view) pipeline(name string) (right.Object, bool) {
	p, err := v.env.Snapshot.Pipeline(name)
	if err != nil {
		return right.Object{}, false
	}
	return right.Object{Class: right.Pipeline, ID: uint32(p.ID)}, true
}

// sees says whether the role may see a pipeline: it owns it, may use it, or watches all.
func (v *view) sees(name string) bool {
	if v.super() || v.env.Rights.HasRole(v.env.Role, right.ReadAllStats) {
		return true
	}
	o, ok := v.pipeline(name)
	return ok && v.env.Rights.Sees(v.env.Role, o)
}

// seenPipeline shows rows of pipelines that the role may see.
func seenPipeline(column string) veil {
	return func(v *view, r []any) bool { return v.sees(v.text(r, column)) }
}

func veilPipelines(v *view, r []any) bool {
	name := v.text(r, "pipeline")
	if o, ok := v.pipeline(name); ok {
		v.set(r, "owner", v.env.Rights.Name(v.env.Rights.Owner(o)))
	}
	return v.sees(name)
}

// ownedByName shows rows of objects that the role owns.
func ownedByName(class right.Class, column string) veil {
	return func(v *view, r []any) bool {
		return v.env.Rights.Owns(v.env.Role, right.Object{Class: class, Name: v.text(r, column)})
	}
}

// veilConnections shows connections that the role may use; how they are made only to owners.
func veilConnections(v *view, r []any) bool {
	o := right.Object{Class: right.Connection, Name: v.text(r, "connection")}
	if v.env.Rights.Owns(v.env.Role, o) {
		return true
	}
	v.set(r, "options", nil)
	return v.env.Rights.Sees(v.env.Role, o)
}

// veilActivity hides what others do from who is not of their role.
// seesActivity says whether the role that asks sees what a role's sessions do.
func seesActivity(env *planner.SystemEnv, user string) bool {
	b := env.Rights
	if b == nil || b.HasRole(env.Role, right.ReadAllStats) {
		return true
	}
	x := b.Named(user)
	return x != nil && b.HasRole(env.Role, x.OID)
}

// veilSettings leaves out settings that not everybody may look at.
func veilSettings(v *view, r []any) bool {
	return !setting.Examined(v.text(r, "name")) || v.env.Rights.HasRole(v.env.Role, right.ReadAllSettings)
}

func veilActivity(v *view, r []any) bool {
	x := v.env.Rights.Named(v.text(r, "usename"))
	if x != nil {
		v.set(r, "usesysid", x.OID)
	}
	if seesActivity(v.env, v.text(r, "usename")) {
		return true
	}
	v.set(r, "query", "<insufficient privilege>")
	for _, column := range []string{
		"backend_start", "xact_start", "query_start", "state_change", "state", "wait_event", "wait_event_type",
		"client_addr", "client_port", "client_hostname", "backend_xid", "backend_xmin", "backend_type",
	} {
		v.set(r, column, nil)
	}
	return true
}
