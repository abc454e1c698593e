package syscat

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// sorted are all relations' shapes, by schema and name.
func (c *Catalog) sorted() []*shape {
	out := slices.SortedFunc(maps.Values(c.shapes), func(a, b *shape) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	return slices.DeleteFunc(out, func(s *shape) bool { return s.kind == "f" })
}

func fillInfoCatalogName(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	return c.build("information_schema.information_schema_catalog_name", []row{{"catalog_name": env.Database}})
}

func fillInfoSchemata(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, n := range namespaces(env) {
		owner := "postgres"
		if n.oid == oidPublic {
			owner = "pg_database_owner"
		}
		rows = append(rows, row{"catalog_name": env.Database, "schema_name": n.name, "schema_owner": owner})
	}
	return c.build("information_schema.schemata", rows)
}

func infoTable(database, space, name, kind string) row {
	return row{
		"table_catalog": database, "table_schema": space, "table_name": name, "table_type": kind,
		"is_insertable_into": "NO", "is_typed": "NO",
	}
}

func fillInfoTables(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range baseTables(env) {
		r := infoTable(env.Database, t.Schema, t.Name, "BASE TABLE")
		if t.Temp != "" {
			r["table_type"], r["commit_action"] = "LOCAL TEMPORARY", "PRESERVE"
		}
		if t.Own {
			r["is_insertable_into"] = "YES"
		}
		rows = append(rows, r)
	}
	for _, v := range env.Snapshot.Views() {
		r := infoTable(env.Database, v.Schema, v.Name, "VIEW")
		r["is_insertable_into"] = yesNo(updatable(env, v).Insert)
		rows = append(rows, r)
	}
	return c.build("information_schema.tables", rows)
}

func fillInfoColumns(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	always, users := identities(env), userTypesOf(env)
	for _, t := range baseTables(env) {
		for i, f := range t.Current.Fields {
			oid, typmod := users.announced(t, f)
			notNull := f.NotNull || slices.Contains(t.Current.Key, f.ID)
			r := infoColumn(env.Database, t.Schema, t.Name, attNum(f, i), f.Name, oid, typmod, notNull)
			if t.Own {
				r["is_updatable"] = "YES"
			}
			switch {
			case t.Generated[f.ID] != "":
				r["is_generated"], r["generation_expression"] = "ALWAYS", d.defaultText(env, t, f, false)
			case t.Defaults[f.ID] != "":
				r["column_default"] = d.defaultText(env, t, f, false)
			}
			users.column(r, oid)
			infoCollation(r, f.Collation)
			identityColumn(r, always[t.Face()][f.ID])
			rows = append(rows, r)
		}
	}
	return c.build("information_schema.columns", append(rows, viewColumns(env, d, users)...))
}

// infoCollation says which collation a column has, unless it is its type's.
func infoCollation(r row, oid uint32) {
	if oid != 0 {
		r["collation_catalog"], r["collation_schema"], r["collation_name"] = r["table_catalog"], "pg_catalog", schema.CollationName(oid)
	}
}

// infoColumn is a row of information_schema.columns, by its rules for each type.
func infoColumn(database, space, rel string, num int, name string, oid uint32, typmod int32, notNull bool) row {
	r := row{
		"table_catalog": database, "table_schema": space, "table_name": rel, "column_name": name, "ordinal_position": num,
		"is_nullable": "YES", "data_type": schema.PostgresTypeName(oid, -1), "udt_catalog": database, "udt_schema": "pg_catalog",
		"udt_name": udtName(oid), "dtd_identifier": num, "is_self_referencing": "NO", "is_identity": "NO", "identity_cycle": "NO",
		"is_generated": "NEVER", "is_updatable": "NO",
	}
	if notNull {
		r["is_nullable"] = "NO"
	}
	switch oid {
	case 21:
		r["numeric_precision"], r["numeric_precision_radix"], r["numeric_scale"] = 16, 2, 0
	case 23:
		r["numeric_precision"], r["numeric_precision_radix"], r["numeric_scale"] = 32, 2, 0
	case 20:
		r["numeric_precision"], r["numeric_precision_radix"], r["numeric_scale"] = 64, 2, 0
	case 700:
		r["numeric_precision"], r["numeric_precision_radix"] = 24, 2
	case 701:
		r["numeric_precision"], r["numeric_precision_radix"] = 53, 2
	case 1700:
		r["numeric_precision_radix"] = 10
		if typmod >= 4 {
			r["numeric_precision"], r["numeric_scale"] = (typmod-4)>>16, (typmod-4)&0x7ff
		}
	case 1042, 1043:
		if typmod >= 4 {
			r["character_maximum_length"], r["character_octet_length"] = typmod-4, (typmod-4)*4
		} else {
			r["character_octet_length"] = 1 << 30
		}
	case 25:
		r["character_octet_length"] = 1 << 30
	case 1560, 1562:
		if typmod >= 0 {
			r["character_maximum_length"] = typmod
		}
	case 1082:
		r["datetime_precision"] = 0
	case 1083, 1114, 1184, 1266, 1186:
		r["datetime_precision"] = 6
		if typmod >= 0 && oid != 1186 {
			r["datetime_precision"] = typmod
		}
		if typmod >= 0 && oid == 1186 {
			intervalInfo(r, int(typmod))
		}
	}
	switch {
	case pgsql.ElemOf(oid) != 0 && schema.TypeSize(oid) == -1:
		r["data_type"] = "ARRAY"
	case oid == 1042:
		r["data_type"] = "character"
	case oid == 1560:
		r["data_type"] = "bit"
	}
	return r
}

// intervalFields are the fields of intervals by the upper half of a modifier.
var intervalFields = map[int]string{
	4: "YEAR", 2: "MONTH", 8: "DAY", 1024: "HOUR", 2048: "MINUTE", 4096: "SECOND", 6: "YEAR TO MONTH", 1032: "DAY TO HOUR", 3080: "DAY TO MINUTE",
	7176: "DAY TO SECOND", 3072: "HOUR TO MINUTE", 7168: "HOUR TO SECOND", 6144: "MINUTE TO SECOND",
}

// intervalInfo says which fields and digits a column of intervals has.
func intervalInfo(r row, typmod int) {
	const all = 0xffff
	fields, digits := intervalFields[typmod>>16], typmod&all
	if digits != all {
		r["datetime_precision"] = digits
	}
	switch {
	case fields == "":
	case digits != all:
		r["interval_type"] = fmt.Sprintf("%s(%d)", fields, digits)
	default:
		r["interval_type"] = fields
	}
}

// udtName is pg_type.typname of a built-in type.
func udtName(oid uint32) string {
	t, _ := schema.LookupType(oid)
	return t.Name
}

func fillInfoTableConstraints(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, x := range constraints(env) {
		t, kind := x.table, "UNIQUE"
		if x.primary {
			kind = "PRIMARY KEY"
		}
		rows = append(rows, row{
			"constraint_catalog": env.Database, "constraint_schema": t.Schema, "constraint_name": x.name,
			"table_catalog": env.Database, "table_schema": t.Schema, "table_name": t.Name, "constraint_type": kind,
			"is_deferrable": yesNo(x.of.Deferrable), "initially_deferred": yesNo(x.of.Deferred), "enforced": "YES",
		})
	}
	for _, n := range notNulls(env) {
		rows = append(rows, row{
			"constraint_catalog": env.Database, "constraint_schema": n.table.Schema, "constraint_name": n.name,
			"table_catalog": env.Database, "table_schema": n.table.Schema, "table_name": n.table.Name, "constraint_type": "CHECK",
			"is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES",
		})
	}
	return c.build("information_schema.table_constraints", append(append(rows, tableChecks(env)...), tableForeign(env)...))
}

func fillInfoKeyColumns(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, x := range constraints(env) {
		t := x.table
		for i, name := range x.names() {
			rows = append(rows, row{
				"constraint_catalog": env.Database, "constraint_schema": t.Schema, "constraint_name": x.name,
				"table_catalog": env.Database, "table_schema": t.Schema, "table_name": t.Name, "column_name": name, "ordinal_position": i + 1,
			})
		}
	}
	return c.build("information_schema.key_column_usage", append(rows, foreignColumns(env)...))
}

func fillInfoConstraintColumns(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, x := range constraints(env) {
		t := x.table
		for _, name := range x.names() {
			rows = append(rows, row{
				"table_catalog": env.Database, "table_schema": t.Schema, "table_name": t.Name, "column_name": name,
				"constraint_catalog": env.Database, "constraint_schema": t.Schema, "constraint_name": x.name,
			})
		}
	}
	return c.build("information_schema.constraint_column_usage", append(append(rows, checkColumns(env)...), usedByForeign(env)...))
}

func fillInfoCharacterSets(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	return c.build("information_schema.character_sets", []row{{
		"character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8", "default_collate_catalog": env.Database,
	}})
}

// fillInfoGenerated says which columns the generated ones depend on.
func fillInfoGenerated(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range baseTables(env) {
		for _, f := range t.Current.Fields {
			names, err := pgsql.ConditionColumns(cmp.Or(t.Generated[f.ID], "NULL"))
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				rows = append(rows, row{
					"table_catalog": env.Database, "table_schema": t.Schema, "table_name": t.Name, "column_name": name, "dependent_column": f.Name,
				})
			}
		}
	}
	return c.build("information_schema.column_column_usage", rows)
}
