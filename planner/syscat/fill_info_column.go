package syscat

import (
	"context"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// notNull is a column that holds no null, as information_schema has it: a constraint.
type notNull struct {
	table        *catalog.Table
	name, column string // of the constraint
}

// notNulls are the columns of tables that hold no null.
func notNulls(env *planner.SystemEnv) []notNull {
	var out []notNull
	for _, t := range env.Snapshot.AllTables() {
		for i, f := range t.Current.Fields {
			if f.NotNull || slices.Contains(t.Current.Key, f.ID) {
				name := fmt.Sprintf("%d_%d_%d_not_null", namespaceOID(env, t.Schema), planner.TableOID(t.Face()), attNum(f, i))
				out = append(out, notNull{t, name, f.Name})
			}
		}
	}
	return out
}

func fillInfoChecks(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, n := range notNulls(env) {
		rows = append(rows, row{
			"constraint_catalog": env.Database, "constraint_schema": n.table.Schema, "constraint_name": n.name,
			"check_clause": n.column + " IS NOT NULL",
		})
	}
	return c.build("information_schema.check_constraints", rows)
}

func fillInfoConstraintTables(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range keyed(env) {
		rows = append(rows, row{
			"table_catalog": env.Database, "table_schema": t.Schema, "table_name": t.Name,
			"constraint_catalog": env.Database, "constraint_schema": t.Schema, "constraint_name": t.Name + "_pkey",
		})
	}
	return c.build("information_schema.constraint_table_usage", rows)
}

func fillInfoColumnTypes(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range env.Snapshot.AllTables() {
		for _, f := range t.Current.Fields {
			oid, _ := announced(f)
			rows = append(rows, row{
				"udt_catalog": env.Database, "udt_schema": "pg_catalog", "udt_name": udtName(oid),
				"table_catalog": env.Database, "table_schema": t.Schema, "table_name": t.Name, "column_name": f.Name,
			})
		}
	}
	return c.build("information_schema.column_udt_usage", rows)
}

// fillInfoElements are the element types of arrays.
func fillInfoElements(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range env.Snapshot.AllTables() {
		for i, f := range t.Current.Fields {
			oid, _ := announced(f)
			elem := pgsql.ElemOf(oid)
			if elem == 0 {
				continue
			}
			id := fmt.Sprint(attNum(f, i))
			rows = append(rows, row{
				"object_catalog": env.Database, "object_schema": t.Schema, "object_name": t.Name, "object_type": "TABLE",
				"collection_type_identifier": id, "data_type": schema.PostgresTypeName(elem, -1), "udt_catalog": env.Database,
				"udt_schema": "pg_catalog", "udt_name": udtName(elem), "dtd_identifier": "a" + id,
			})
		}
	}
	return c.build("information_schema.element_types", rows)
}

// collationNames are the collations that there are.
var collationNames = []string{"default", "C", "POSIX"}

func fillInfoCollations(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, n := range collationNames {
		rows = append(rows, row{
			"collation_catalog": env.Database, "collation_schema": "pg_catalog", "collation_name": n, "pad_attribute": "NO PAD",
		})
	}
	return c.build("information_schema.collations", rows)
}

func fillInfoCollationSets(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, n := range collationNames {
		rows = append(rows, row{
			"collation_catalog": env.Database, "collation_schema": "pg_catalog", "collation_name": n, "character_set_name": "UTF8",
		})
	}
	return c.build("information_schema.collation_character_set_applicability", rows)
}
