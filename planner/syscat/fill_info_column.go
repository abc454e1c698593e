package syscat

import (
	"context"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// notNull is a column that holds no null, as information_schema has it: a constraint.
type notNull struct {
	table        *catalog.Table
	name, column string // of the constraint
}

// notNulls are the columns of tables that hold no null.
func notNulls(env *planner.SystemEnv) []notNull {
	var out []notNull
	for _, t := range baseTables(env) {
		for i, f := range t.Current.Fields {
			if f.NotNull || slices.Contains(t.Current.Key, f.ID) {
				name := fmt.Sprintf("%d_%d_%d_not_null", namespaceOID(env, t.Schema), planner.TableOID(t.Face()), attNum(f, i))
				out = append(out, notNull{t, name, f.Name})
			}
		}
	}
	return out
}

// check is a CHECK of a table.
type check struct {
	table   *catalog.Table
	oid     uint32
	name    string
	sql     string // in parentheses
	columns []schema.Field
	comment string
}

// oidChecks is where the OIDs of CHECK constraints begin, with a range for each table.
const oidChecks uint32 = 0x50000000

// checks are the CHECK constraints of tables.
func checks(env *planner.SystemEnv) []check {
	var out []check
	for _, t := range baseTables(env) {
		for i, k := range t.Checks {
			x := check{table: t, name: k.Name, comment: k.Comment, sql: "(" + k.SQL + ")", oid: oidChecks + (uint32(t.Face())&0xfffff)<<8 + uint32(i)&0xff}
			names, _ := pgsql.ConditionColumns(k.SQL) // it was one when the table got it
			for _, name := range names {
				if f, ok := t.Current.FieldByName(name); ok {
					x.columns = append(x.columns, f)
				}
			}
			out = append(out, x)
		}
	}
	return out
}

// checkConstraints are the rows of pg_constraint of CHECK constraints.
func checkConstraints(env *planner.SystemEnv, d *definitions) []row {
	var rows []row
	for _, x := range checks(env) {
		var numbers []int64
		for _, f := range x.columns {
			numbers = append(numbers, int64(attNum(f, x.table.Current.Index(f.ID))))
		}
		r := row{
			"oid": x.oid, "conname": x.name, "connamespace": namespaceOID(env, x.table.Schema), "contype": "c",
			"condeferrable": false, "condeferred": false, "convalidated": true, "conrelid": planner.TableOID(x.table.Face()), "contypid": 0,
			"conindid": 0, "conparentid": 0, "confrelid": 0, "confupdtype": " ", "confdeltype": " ", "confmatchtype": " ", "conislocal": true,
			"coninhcount": 0, "connoinherit": false, "conbin": d.check(x, false),
		}
		if len(numbers) > 0 {
			r["conkey"] = numbers
		}
		rows = append(rows, r)
	}
	return rows
}

// tableChecks are the rows of information_schema.table_constraints of CHECK constraints.
func tableChecks(env *planner.SystemEnv) []row {
	var rows []row
	for _, x := range checks(env) {
		rows = append(rows, row{
			"constraint_catalog": env.Database, "constraint_schema": x.table.Schema, "constraint_name": x.name,
			"table_catalog": env.Database, "table_schema": x.table.Schema, "table_name": x.table.Name, "constraint_type": "CHECK",
			"is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES",
		})
	}
	return rows
}

// checkColumns are the rows of information_schema.constraint_column_usage of CHECK constraints.
func checkColumns(env *planner.SystemEnv) []row {
	var rows []row
	for _, x := range checks(env) {
		for _, f := range x.columns {
			rows = append(rows, row{
				"table_catalog": env.Database, "table_schema": x.table.Schema, "table_name": x.table.Name, "column_name": f.Name,
				"constraint_catalog": env.Database, "constraint_schema": x.table.Schema, "constraint_name": x.name,
			})
		}
	}
	return rows
}

func fillInfoChecks(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, n := range notNulls(env) {
		rows = append(rows, row{
			"constraint_catalog": env.Database, "constraint_schema": n.table.Schema, "constraint_name": n.name,
			"check_clause": n.column + " IS NOT NULL",
		})
	}
	for _, x := range checks(env) {
		rows = append(rows, row{
			"constraint_catalog": env.Database, "constraint_schema": x.table.Schema, "constraint_name": x.name, "check_clause": "(" + d.check(x, false) + ")",
		})
	}
	return c.build("information_schema.check_constraints", rows)
}

func fillInfoConstraintTables(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, x := range constraints(env) {
		t := x.table
		rows = append(rows, row{
			"table_catalog": env.Database, "table_schema": t.Schema, "table_name": t.Name,
			"constraint_catalog": env.Database, "constraint_schema": t.Schema, "constraint_name": x.name,
		})
	}
	for _, k := range foreignKeys(env) {
		rows = append(rows, row{
			"table_catalog": env.Database, "table_schema": k.parent.Schema, "table_name": k.parent.Name,
			"constraint_catalog": env.Database, "constraint_schema": k.table.Schema, "constraint_name": k.Name,
		})
	}
	return c.build("information_schema.constraint_table_usage", rows)
}

func fillInfoColumnTypes(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	users := userTypesOf(env)
	for _, t := range baseTables(env) {
		for _, f := range t.Current.Fields {
			oid, _ := users.announced(t, f)
			r := users.column(row{"udt_schema": "pg_catalog", "udt_name": udtName(oid)}, oid)
			delete(r, "data_type")
			r["udt_catalog"], r["table_catalog"], r["table_schema"], r["table_name"], r["column_name"] = env.Database, env.Database, t.Schema, t.Name, f.Name
			rows = append(rows, r)
		}
	}
	return c.build("information_schema.column_udt_usage", rows)
}

// fillInfoElements are the element types of arrays.
func fillInfoElements(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	users := userTypesOf(env)
	for _, t := range baseTables(env) {
		for i, f := range t.Current.Fields {
			oid, _ := users.announced(t, f)
			elem := pgsql.ElemOf(oid)
			if elem == 0 && !users.isArray(oid) {
				continue
			}
			id := fmt.Sprint(attNum(f, i))
			rows = append(rows, users.element(row{
				"object_catalog": env.Database, "object_schema": t.Schema, "object_name": t.Name, "object_type": "TABLE",
				"collection_type_identifier": id, "data_type": schema.PostgresTypeName(elem, -1), "udt_catalog": env.Database,
				"udt_schema": "pg_catalog", "udt_name": udtName(elem), "dtd_identifier": "a" + id,
			}, oid))
		}
	}
	return c.build("information_schema.element_types", rows)
}

// collationNames are the collations that there are.
var collationNames = []string{"default", "C", "POSIX", "ucs_basic", "C.utf8", "C.UTF-8"}

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

// foreignInfo is a foreign key.
type foreignInfo struct {
	catalog.ForeignKey
	table, parent *catalog.Table
}

// foreignKeys are those of all tables.
func foreignKeys(env *planner.SystemEnv) []foreignInfo {
	var out []foreignInfo
	for _, t := range env.Snapshot.AllTables() {
		for _, k := range t.Foreign {
			if parent, err := env.Snapshot.TableByFace(k.Table); err == nil {
				out = append(out, foreignInfo{ForeignKey: k, table: t, parent: parent})
			}
		}
	}
	return out
}

// referred says which tables have foreign keys or are referred to, by face: PostgreSQL has
// triggers on them.
func referred(env *planner.SystemEnv) map[change.TableID]bool {
	out := map[change.TableID]bool{}
	for _, k := range foreignKeys(env) {
		out[k.table.Face()], out[k.parent.Face()] = true, true
	}
	return out
}

// own and refs are the columns on both sides.
func (k *foreignInfo) own() *indexInfo  { return &indexInfo{table: k.table, fields: k.Fields} }
func (k *foreignInfo) refs() *indexInfo { return &indexInfo{table: k.parent, fields: k.Refs} }

// index is the unique index that it relies on.
func (k *foreignInfo) index() indexInfo {
	for _, x := range indexesOf(k.parent) {
		if x.primary && k.Index == 0 || !x.primary && x.oid == planner.TableOID(k.Index) {
			return x
		}
	}
	return indexInfo{table: k.parent}
}

// foreignConstraints are the rows of pg_constraint of foreign keys.
func foreignConstraints(env *planner.SystemEnv) []row {
	var rows []row
	for _, k := range foreignKeys(env) {
		match := "s"
		if k.Full {
			match = "f"
		}
		r := row{
			"oid": constraintOID(k.ID), "conname": k.Name, "connamespace": namespaceOID(env, k.table.Schema), "contype": "f",
			"condeferrable": k.Deferrable, "condeferred": k.Deferred, "convalidated": !k.Invalid, "conrelid": planner.TableOID(k.table.Face()),
			"contypid": 0, "conindid": k.index().oid, "conparentid": 0, "confrelid": planner.TableOID(k.parent.Face()),
			"confupdtype": string(k.OnUpdate), "confdeltype": string(k.OnDelete), "confmatchtype": match, "conislocal": true, "coninhcount": 0,
			"connoinherit": true, "conkey": k.own().numbers(), "confkey": k.refs().numbers(),
		}
		if len(k.Set) > 0 {
			r["confdelsetcols"] = (&indexInfo{table: k.table, fields: k.Set}).numbers()
		}
		rows = append(rows, r)
	}
	return rows
}

func yes(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// tableForeign are the rows of information_schema.table_constraints of foreign keys.
func tableForeign(env *planner.SystemEnv) []row {
	var rows []row
	for _, k := range foreignKeys(env) {
		rows = append(rows, row{
			"constraint_catalog": env.Database, "constraint_schema": k.table.Schema, "constraint_name": k.Name,
			"table_catalog": env.Database, "table_schema": k.table.Schema, "table_name": k.table.Name, "constraint_type": "FOREIGN KEY",
			"is_deferrable": yes(k.Deferrable), "initially_deferred": yes(k.Deferred), "enforced": "YES",
		})
	}
	return rows
}

// foreignColumns are the rows of information_schema.key_column_usage of foreign keys.
func foreignColumns(env *planner.SystemEnv) []row {
	var rows []row
	for _, k := range foreignKeys(env) {
		in := k.index()
		for i, name := range k.own().names() {
			rows = append(rows, row{
				"constraint_catalog": env.Database, "constraint_schema": k.table.Schema, "constraint_name": k.Name,
				"table_catalog": env.Database, "table_schema": k.table.Schema, "table_name": k.table.Name, "column_name": name,
				"ordinal_position": i + 1, "position_in_unique_constraint": slices.Index(in.fields, k.Refs[i]) + 1,
			})
		}
	}
	return rows
}

// usedByForeign are the rows of information_schema.constraint_column_usage of foreign keys.
func usedByForeign(env *planner.SystemEnv) []row {
	var rows []row
	for _, k := range foreignKeys(env) {
		for _, name := range k.refs().names() {
			rows = append(rows, row{
				"table_catalog": env.Database, "table_schema": k.parent.Schema, "table_name": k.parent.Name, "column_name": name,
				"constraint_catalog": env.Database, "constraint_schema": k.table.Schema, "constraint_name": k.Name,
			})
		}
	}
	return rows
}

// foreignRules are information_schema's words for what becomes of rows.
var foreignRules = map[catalog.ForeignAction]string{
	catalog.ForeignNoAction: "NO ACTION", catalog.ForeignRestrict: "RESTRICT", catalog.ForeignCascade: "CASCADE",
	catalog.ForeignSetNull: "SET NULL", catalog.ForeignSetDefault: "SET DEFAULT",
}

func fillInfoReferential(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, k := range foreignKeys(env) {
		match := "NONE"
		if k.Full {
			match = "FULL"
		}
		r := row{
			"constraint_catalog": env.Database, "constraint_schema": k.table.Schema, "constraint_name": k.Name,
			"match_option": match, "update_rule": foreignRules[k.OnUpdate], "delete_rule": foreignRules[k.OnDelete],
		}
		if in := k.index(); in.constraint != 0 {
			r["unique_constraint_catalog"], r["unique_constraint_schema"], r["unique_constraint_name"] = env.Database, k.parent.Schema, in.name
		}
		rows = append(rows, r)
	}
	return c.build("information_schema.referential_constraints", rows)
}
