package syscat

import (
	"context"

	"github.com/skipprd/skipprd/planner"
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
		rows = append(rows, r)
	}
	return rows
}

// viewAttributes are the pg_attribute rows of views.
func (c *Catalog) viewAttributes(env *planner.SystemEnv) []row {
	var rows []row
	for _, v := range env.Snapshot.Views() {
		for i, f := range v.Columns {
			rows = append(rows, c.attributeRow(planner.TableOID(v.ID), i+1, f.Name, f.OID, f.TypMod, false))
		}
	}
	return rows
}

// viewColumns are the rows of information_schema.columns of views.
func viewColumns(env *planner.SystemEnv) []row {
	var rows []row
	for _, v := range env.Snapshot.Views() {
		for i, f := range v.Columns {
			rows = append(rows, infoColumn(env.Database, v.Schema, v.Name, i+1, f.Name, f.OID, f.TypMod, false))
		}
	}
	return rows
}

func fillViews(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, v := range env.Snapshot.Views() {
		rows = append(rows, row{"schemaname": v.Schema, "viewname": v.Name, "viewowner": "postgres", "definition": " " + v.SQL + ";"})
	}
	return c.build("pg_catalog.pg_views", rows)
}

func fillInfoViews(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, v := range env.Snapshot.Views() {
		rows = append(rows, row{
			"table_catalog": env.Database, "table_schema": v.Schema, "table_name": v.Name, "view_definition": " " + v.SQL + ";",
			"check_option": "NONE", "is_updatable": "NO", "is_insertable_into": "NO", "is_trigger_updatable": "NO",
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
	for _, s := range env.Snapshot.Sequences() {
		say(classRelation, planner.TableOID(s.ID), 0, s.Comment)
	}
	for _, t := range env.Snapshot.AllTables() {
		say(classRelation, planner.TableOID(t.Face()), 0, t.Comment)
		for i, f := range t.Current.Fields {
			say(classRelation, planner.TableOID(t.Face()), attNum(f, i), t.Comments[f.ID])
		}
	}
	return c.build("pg_catalog.pg_description", rows)
}

// viewDefinition is the query of the view with an oid, as SQL.
const viewDefinition = `(SELECT min(v.definition) FROM {rel:pg_catalog.pg_views} v, {rel:pg_catalog.pg_class} x, {rel:pg_catalog.pg_namespace} n
	WHERE x.oid = $1 AND x.relkind = 'v' AND x.relname = v.viewname AND n.oid = x.relnamespace AND n.nspname = v.schemaname)`
