package syscat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// languages are those of functions, by their oids.
var languages = map[string]string{"12": "internal", "13": "c", "14": "sql"}

// cellText is a cell of a relation as text, "" for null.
func cellText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []int64:
		return strings.Trim(fmt.Sprint(v), "[]")
	}
	return fmt.Sprint(v)
}

// typeOfRoutine is how the views of functions name a type.
func typeOfRoutine(oid string) (dataType, name string) {
	n, err := strconv.ParseUint(oid, 10, 32)
	t, ok := schema.LookupType(uint32(n))
	elem := schema.ElementOID(uint32(n))
	switch {
	case err != nil:
		return "", ""
	case uint32(n) == schema.OIDBit:
		return "bit", "bit"
	case uint32(n) == schema.OIDBpchar:
		return "character", "bpchar"
	case elem != 0 || ok && (t.Name == "int2vector" || t.Name == "oidvector"):
		return "ARRAY", udtName(uint32(n))
	}
	return schema.PostgresTypeName(uint32(n), -1), udtName(uint32(n))
}

// eachRoutine goes through what a role may call of pg_proc, with its cells as texts by column.
func eachRoutine(c *Catalog, env *planner.SystemEnv, f func(cell func(string) string, schemaName string)) error {
	rows, err := fixedProc(c, "")
	if err != nil {
		return err
	}
	at := c.shapes["pg_catalog.pg_proc"].places()
	names := map[string]string{}
	for name, oid := range systemNamespaces {
		names[strconv.FormatUint(uint64(oid), 10)] = name
	}
	for _, r := range rows {
		cell := func(column string) string { return cellText(r[at[column]]) }
		if acl := cell("proacl"); acl != "" && !strings.Contains(acl, "{=X") && !strings.Contains(acl, ",=X") && !env.Rights.Superuser(env.Role) {
			continue
		}
		f(cell, names[cell("pronamespace")])
	}
	return nil
}

func isTrue(cell string) bool { return cell == "t" || cell == "true" }

func fillInfoRoutines(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	sources := env.Rights.Superuser(env.Role)
	err := eachRoutine(c, env, func(cell func(string) string, space string) {
		language := languages[cell("prolang")]
		name := cell("proname") + "_" + cell("oid")
		dataType, udt := typeOfRoutine(cell("prorettype"))
		r := row{
			"specific_catalog": env.Database, "specific_schema": space, "specific_name": name, "routine_catalog": env.Database,
			"routine_schema": space, "routine_name": cell("proname"), "data_type": dataType, "type_udt_catalog": env.Database,
			"type_udt_schema": "pg_catalog", "type_udt_name": udt, "dtd_identifier": "0", "routine_body": "EXTERNAL",
			"external_language": strings.ToUpper(language), "parameter_style": "GENERAL", "is_deterministic": yesNo(cell("provolatile") == "i"),
			"sql_data_access": "MODIFIES", "is_null_call": yesNo(isTrue(cell("proisstrict"))), "schema_level_routine": "YES",
			"max_dynamic_result_sets": 0, "security_type": "INVOKER", "as_locator": "NO", "is_udt_dependent": "NO",
		}
		if cell("prokind") == "f" {
			r["routine_type"] = "FUNCTION"
		}
		if language == "sql" {
			r["routine_body"] = "SQL"
		}
		if language == "c" {
			r["external_name"] = cell("prosrc")
		}
		if isTrue(cell("prosecdef")) {
			r["security_type"] = "DEFINER"
		}
		if sources {
			r["routine_definition"] = cell("prosrc")
		}
		rows = append(rows, r)
	})
	if err != nil {
		return nil, err
	}
	return c.build("information_schema.routines", rows)
}

// parameterModes are proargmodes in words.
var parameterModes = map[string]string{"": "IN", "i": "IN", "o": "OUT", "b": "INOUT", "v": "IN", "t": "OUT"}

func fillInfoParameters(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	items := func(text string) []string {
		if text = strings.Trim(text, "{}"); text == "" {
			return nil
		}
		return strings.Split(text, ",")
	}
	err := eachRoutine(c, env, func(cell func(string) string, space string) {
		types := items(cell("proallargtypes"))
		if len(types) == 0 {
			types = strings.Fields(cell("proargtypes"))
		}
		names, modes := items(cell("proargnames")), items(cell("proargmodes"))
		for i, oid := range types {
			dataType, udt := typeOfRoutine(oid)
			r := row{
				"specific_catalog": env.Database, "specific_schema": space, "specific_name": cell("proname") + "_" + cell("oid"),
				"ordinal_position": i + 1, "parameter_mode": "IN", "is_result": "NO", "as_locator": "NO", "data_type": dataType,
				"udt_catalog": env.Database, "udt_schema": "pg_catalog", "udt_name": udt, "dtd_identifier": strconv.Itoa(i + 1),
			}
			if i < len(modes) {
				r["parameter_mode"] = parameterModes[modes[i]]
			}
			if i < len(names) {
				if name := strings.Trim(names[i], `"`); name != "" {
					r["parameter_name"] = name
				}
			}
			if value := argumentDefault(cell("oid"), i+1); value != "" && env.Rights.Superuser(env.Role) {
				r["parameter_default"] = value
			}
			rows = append(rows, r)
		}
	})
	if err != nil {
		return nil, err
	}
	return c.build("information_schema.parameters", rows)
}
