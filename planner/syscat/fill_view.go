package syscat

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// viewClasses are the pg_class rows of views.
func viewClasses(env *planner.SystemEnv) []row {
	var rows []row
	for _, v := range env.Snapshot.Views() {
		r := classRow(planner.TableOID(v.ID), v.Name, namespaceOID(env, v.Schema), "v", len(v.Columns))
		if sc, err := env.Snapshot.Schema(v.Schema); err == nil && sc.Temp {
			r["relpersistence"] = "t"
		}
		r["relam"], r["relfilenode"], r["relhasrules"], r["relreplident"] = 0, 0, true, "n"
		if len(v.Options) > 0 {
			r["reloptions"] = v.Options
		}
		rows = append(rows, r)
	}
	return rows
}

// viewAttributes are the pg_attribute rows of views.
func (c *Catalog) viewAttributes(env *planner.SystemEnv, users userTypes) []row {
	var rows []row
	for _, v := range env.Snapshot.Views() {
		for i, f := range v.Columns {
			r := users.attribute(c.attributeRow(planner.TableOID(v.ID), i+1, f.Name, f.OID, f.TypMod, false), f.OID)
			r["atthasdef"] = f.Default != ""
			collated(r, f.Collation)
			rows = append(rows, r)
		}
	}
	return rows
}

// viewColumns are the rows of information_schema.columns of views.
func viewColumns(env *planner.SystemEnv, d *definitions, users userTypes) []row {
	var rows []row
	for _, v := range env.Snapshot.Views() {
		can := updatable(env, v)
		for i, f := range v.Columns {
			r := users.column(infoColumn(env.Database, v.Schema, v.Name, i+1, f.Name, f.OID, f.TypMod, false), f.OID)
			infoCollation(r, f.Collation)
			if f.Default != "" {
				r["column_default"] = d.viewDefault(env, f)
			}
			r["is_updatable"] = yesNo(can.Columns[i])
			rows = append(rows, r)
		}
	}
	return rows
}

// relations finds tables and views of a snapshot.
type relations struct{ *catalog.Snapshot }

// HasSchema implements pgsql.Resolver.
func (r relations) HasSchema(name string) bool {
	_, err := r.Schema(name)
	return err == nil
}

// Relation implements pgsql.Resolver.
func (r relations) Relation(schema, name string) (*pgsql.Relation, bool) {
	if t, err := r.TableByName(schema, name); err == nil {
		return define.RelationOf(t), t.Current != nil
	}
	if v, err := r.ViewByName(schema, name); err == nil {
		return define.ViewOf(v), true
	}
	return nil, false
}

// updatable is what statements can do to the rows of a view.
func updatable(env *planner.SystemEnv, v *catalog.View) pgsql.Updatable {
	return pgsql.UpdatableOf(define.ViewOf(v), relations{env.Snapshot})
}

// viewDefaults are the rows of pg_attrdef of views.
func viewDefaults(env *planner.SystemEnv, d *definitions) []row {
	var rows []row
	for _, v := range env.Snapshot.Views() {
		for i, f := range v.Columns {
			if f.Default != "" {
				rows = append(rows, row{
					"oid": defaultOID(v.ID, i+1), "adrelid": planner.TableOID(v.ID), "adnum": i + 1, "adbin": d.viewDefault(env, f),
				})
			}
		}
	}
	return rows
}

func fillViews(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, v := range env.Snapshot.Views() {
		rows = append(rows, row{"schemaname": v.Schema, "viewname": v.Name, "viewowner": "postgres", "definition": d.definition(env, v.ID)})
	}
	return c.build("pg_catalog.pg_views", rows)
}

func fillInfoViews(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	rows := systemInfoViews(c, env)
	for _, v := range env.Snapshot.Views() {
		can := updatable(env, v)
		rows = append(rows, row{
			"table_catalog": env.Database, "table_schema": v.Schema, "table_name": v.Name, "view_definition": d.definition(env, v.ID),
			"check_option": strings.ToUpper(cmp.Or(define.CheckOption(v), "none")), "is_updatable": yesNo(can.Update && can.Delete),
			"is_insertable_into": yesNo(can.Insert), "is_trigger_updatable": "NO",
			"is_trigger_deletable": "NO", "is_trigger_insertable_into": "NO",
		})
	}
	return c.build("information_schema.views", rows)
}

// fillDescription are the comments of COMMENT ON.
func fillDescription(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	say := func(class, object uint32, column int, text string) {
		if text != "" {
			rows = append(rows, row{"objoid": object, "classoid": class, "objsubid": column, "description": text})
		}
	}
	for _, s := range env.Snapshot.Schemas() {
		say(classNamespace, namespaceOID(env, s.Name), 0, s.Comment)
	}
	for _, v := range env.Snapshot.Views() {
		say(classRelation, planner.TableOID(v.ID), 0, v.Comment)
		for i, f := range v.Columns {
			say(classRelation, planner.TableOID(v.ID), i+1, f.Comment)
		}
	}
	for _, e := range env.Snapshot.Types() {
		say(classType, e.OID(), 0, e.Comment)
	}
	for _, s := range env.Snapshot.Sequences() {
		say(classRelation, planner.TableOID(s.ID), 0, s.Comment)
	}
	for _, t := range env.Snapshot.AllTables() {
		say(classRelation, planner.TableOID(t.Face()), 0, t.Comment)
		for i, f := range t.Current.Fields {
			say(classRelation, planner.TableOID(t.Face()), attNum(f, i), t.Comments[f.ID])
		}
	}
	for _, x := range indexes(env) {
		say(classRelation, x.oid, 0, x.comments.Index)
		say(classConstraint, x.constraint, 0, x.comments.Constraint)
	}
	for _, x := range checks(env) {
		say(classConstraint, x.oid, 0, x.comment)
	}
	for _, k := range foreignKeys(env) {
		say(classConstraint, constraintOID(k.ID), 0, k.Comment)
	}
	return c.build("pg_catalog.pg_description", rows)
}

// fillSharedDescription are the comments on roles and on the database.
func fillSharedDescription(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	if e := env.Rights.Entry(right.Object{Class: right.Database}); e != nil && e.Comment != "" {
		rows = append(rows, row{"objoid": oidDatabase, "classoid": classDatabase, "description": e.Comment})
	}
	for _, r := range env.Rights.Roles() {
		if r.Comment != "" {
			rows = append(rows, row{"objoid": r.OID, "classoid": classRole, "description": r.Comment})
		}
	}
	return c.build("pg_catalog.pg_shdescription", rows)
}

// ruleOID is the pg_rewrite oid of a view's rule: behind the defaults that columns may have.
func ruleOID(v *catalog.View) uint32 { return defaultOID(v.ID, 1<<11-1) }

// baseTables are all tables but materialized views.
func baseTables(env *planner.SystemEnv) []*catalog.Table {
	return slices.DeleteFunc(slices.Clone(env.Snapshot.AllTables()), func(t *catalog.Table) bool { return t.Query != nil })
}

func fillMaterialized(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, t := range env.Snapshot.AllTables() {
		if t.Query != nil {
			rows = append(rows, row{
				"schemaname": t.Schema, "matviewname": t.Name, "matviewowner": env.Rights.Name(env.Rights.Owner(tableObject(t))),
				"hasindexes": len(indexesOf(t)) > 0, "ispopulated": t.Query.Populated, "definition": d.definition(env, t.Face()),
			})
		}
	}
	return c.build("pg_catalog.pg_matviews", rows)
}

// fillRewrite are the rules that views are to PostgreSQL.
func fillRewrite(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, v := range env.Snapshot.Queries() {
		rows = append(rows, rewriteRow(ruleOID(v), planner.TableOID(v.ID)))
	}
	return c.build("pg_catalog.pg_rewrite", rows)
}

// rewriteRow is the rule of a view.
func rewriteRow(oid, view any) row {
	return row{
		"oid": oid, "rulename": "_RETURN", "ev_class": view, "ev_type": "1", "ev_enabled": "O", "is_instead": true, "ev_qual": "<>", "ev_action": "<>",
	}
}

// viewDepends says what the rules of views hang on.
func viewDepends(env *planner.SystemEnv, depends func(class, obj, refClass, ref uint32, column int64, kind string)) {
	for _, v := range env.Snapshot.Queries() {
		rule, view := ruleOID(v), planner.TableOID(v.ID)
		depends(classRewrite, rule, classRelation, view, 0, "i")
		depends(classRewrite, rule, classRelation, view, 0, "n")
		for _, id := range v.Reads {
			at := slices.IndexFunc(v.Uses, func(u catalog.ViewUse) bool { return u.ID == id })
			if at < 0 || len(v.Uses[at].Columns) == 0 {
				depends(classRewrite, rule, classRelation, planner.TableOID(id), 0, "n")
				continue
			}
			for _, num := range v.Uses[at].Columns {
				depends(classRewrite, rule, classRelation, planner.TableOID(id), int64(num), "n")
			}
		}
	}
}

// viewUsage calls f with each relation that a view names, and the names of its columns that it does.
func viewUsage(env *planner.SystemEnv, f func(v *catalog.View, r row, columns []string)) {
	names := map[change.TableID]func([]int16) (row, []string){}
	for _, t := range env.Snapshot.AllTables() {
		names[t.Face()] = func(nums []int16) (row, []string) {
			var out []string
			for i, x := range t.Current.Fields {
				if slices.Contains(nums, int16(attNum(x, i))) {
					out = append(out, x.Name)
				}
			}
			return row{"table_schema": t.Schema, "table_name": t.Name}, out
		}
	}
	for _, v := range env.Snapshot.Views() {
		names[v.ID] = func(nums []int16) (row, []string) {
			var out []string
			for i, x := range v.Columns {
				if slices.Contains(nums, int16(i+1)) {
					out = append(out, x.Name)
				}
			}
			return row{"table_schema": v.Schema, "table_name": v.Name}, out
		}
	}
	for _, v := range env.Snapshot.Views() {
		for _, id := range v.Reads {
			of := names[id]
			if of == nil {
				continue
			}
			var nums []int16
			if at := slices.IndexFunc(v.Uses, func(u catalog.ViewUse) bool { return u.ID == id }); at >= 0 {
				nums = v.Uses[at].Columns
			}
			r, columns := of(nums)
			r["view_catalog"], r["view_schema"], r["view_name"], r["table_catalog"] = env.Database, v.Schema, v.Name, env.Database
			f(v, r, columns)
		}
	}
}

func fillInfoViewTables(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	viewUsage(env, func(_ *catalog.View, r row, _ []string) { rows = append(rows, r) })
	return c.build("information_schema.view_table_usage", rows)
}

func fillInfoViewColumns(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	viewUsage(env, func(_ *catalog.View, r row, columns []string) {
		for _, name := range columns {
			one := maps.Clone(r)
			one["column_name"] = name
			rows = append(rows, one)
		}
	})
	return c.build("information_schema.view_column_usage", rows)
}

// veilPgViews shows who owns views.
func veilPgViews(v *view, r []any) bool {
	if o, ok := v.named(r, "schemaname", "viewname"); ok {
		v.set(r, "viewowner", v.env.Rights.Name(v.env.Rights.Owner(o)))
	}
	return true
}

// veilInfoViews shows views that the role has any privilege on, and their queries to their owners.
func veilInfoViews(v *view, r []any) bool {
	o, ok := v.named(r, "table_schema", "table_name")
	if !ok || v.env.Rights.Owns(v.env.Role, o) {
		return true
	}
	v.set(r, "view_definition", nil)
	return v.env.Rights.Sees(v.env.Role, o)
}

// ruleDefinition is the rule with an oid, as SQL, if it is the rule of a view.
func ruleDefinition(definition string) string {
	return `(SELECT min('CREATE RULE "_RETURN" AS' || chr(10) || '    ON SELECT TO ' || ` + definition + `) FROM {rel:pg_catalog.view_definitions()} v,
	{rel:pg_catalog.pg_class} x, {rel:pg_catalog.pg_namespace} n, {rel:pg_catalog.pg_rewrite} w
	WHERE w.oid = $1 AND x.oid = w.ev_class AND v.view = x.oid AND n.oid = x.relnamespace)`
}

// The rest of a rule, without and with the flag that makes it pretty.
const (
	plainRule  = `skippr_quote_ident(n.nspname) || '.' || skippr_quote_ident(x.relname) || ' DO INSTEAD ' || v.definition`
	prettyRule = `CASE WHEN $2 THEN CASE WHEN list_contains(string_split({fact:search_path}, ','), n.nspname) THEN '' ELSE skippr_quote_ident(n.nspname) || '.' END ||
	skippr_quote_ident(x.relname) || ' DO INSTEAD ' || v.pretty ELSE ` + plainRule + ` END`
)

// viewDefinition is the query of the view with an oid, as SQL.
const viewDefinition = `(SELECT min(v.definition) FROM {rel:pg_catalog.view_definitions()} v WHERE v.view = $1)`

// prettyDefinition is that of pg_get_viewdef with a flag.
const prettyDefinition = `(SELECT min(CASE WHEN $2 THEN v.pretty ELSE v.definition END) FROM {rel:pg_catalog.view_definitions()} v WHERE v.view = $1)`
