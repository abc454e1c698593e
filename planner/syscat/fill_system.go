package syscat

import (
	"slices"
	"strconv"

	"github.com/skipprd/skipprd/planner/pgsql"
)

// fixedClass are the system relations themselves.
func fixedClass(c *Catalog, _ string) ([][]any, error) {
	var rows []row
	for _, s := range c.sorted() {
		r := classRow(s.OID, s.Name, systemNamespaces[s.Schema], s.kind, len(s.Columns))
		if s.kind == "v" {
			r["relam"], r["relfilenode"], r["relreplident"], r["relhasrules"] = 0, 0, "n", true
		}
		if s.Schema == "pg_catalog" {
			r["relreplident"] = "n"
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_class", rows)
}

func fixedAttribute(c *Catalog, _ string) ([][]any, error) {
	var rows []row
	for _, s := range c.sorted() {
		for i, col := range s.Columns {
			oid, typmod := col.TypeOID, col.TypMod
			if s.facts[i].domain != 0 {
				oid, typmod = s.facts[i].domain, -1
			}
			r := c.attributeRow(s.OID, i+1, col.Name, oid, typmod, col.NotNull)
			if !s.own {
				r["attcollation"] = s.facts[i].collation
			}
			rows = append(rows, r)
		}
	}
	return c.build("pg_catalog.pg_attribute", rows)
}

// fixedType are PostgreSQL's built-in types and the domains of information_schema.
func fixedType(c *Catalog, _ string) ([][]any, error) {
	rows, err := fileRows("pg_type")
	at := c.shapes["pg_catalog.pg_type"].places()
	for _, r := range rows {
		if r[at["typtype"]] == "d" {
			r[at["typnamespace"]] = oidInfoSchema
		}
	}
	return rows, err
}

// holders are the relations whose rows name functions.
var holders = []string{"pg_type", "pg_cast", "pg_operator", "pg_aggregate", "pg_am", "pg_amproc", "pg_language", "pg_range"}

// fixedProc are the functions that statements can call, and those that other rows
// name: of types, casts, operators.
func fixedProc(c *Catalog, _ string) ([][]any, error) {
	named := map[string]bool{}
	for _, h := range holders {
		rows, err := fileRows(h)
		if err != nil {
			return nil, err
		}
		for i, col := range c.shapes["pg_catalog."+h].Columns {
			if col.TypeOID != oidRegproc && col.Name != "castfunc" && col.Name != "laninline" && col.Name != "lanvalidator" {
				continue
			}
			for _, r := range rows {
				if oid, ok := r[i].(string); ok {
					named[oid] = true
				}
			}
		}
	}
	own := map[string]bool{}
	for _, f := range c.Functions() {
		own[f.Name] = f.Schema == "pg_catalog"
	}
	rows, err := fileRows("pg_proc")
	if err != nil {
		return nil, err
	}
	at := c.shapes["pg_catalog.pg_proc"].places()
	rows = slices.DeleteFunc(rows, func(r []any) bool {
		oid, _ := r[at["oid"]].(string)
		name, _ := r[at["proname"]].(string)
		return !named[oid] && !own[name] && !pgsql.Callable(name)
	})
	more, err := c.build("pg_catalog.pg_proc", ownProcs(c))
	return append(rows, more...), err
}

// ownProcOID is the oid of the first function of schema skippr.
const ownProcOID = 13150

// ownProcs are the functions of schema skippr.
func ownProcs(c *Catalog) []row {
	var rows []row
	for _, f := range c.Functions() {
		if f.Schema != "skippr" {
			continue
		}
		args := make([]int64, len(f.Args))
		for i, a := range f.Args {
			args[i] = int64(a)
		}
		rows = append(rows, row{
			"oid": ownProcOID + len(rows), "proname": f.Name, "pronamespace": oidSkippr, "proowner": oidBootstrap, "prolang": 12,
			"procost": 1, "prorows": 0, "provariadic": 0, "prosupport": 0, "prokind": "f", "prosecdef": false, "proleakproof": false,
			"proisstrict": true, "proretset": f.Set, "provolatile": "s", "proparallel": "s", "pronargs": len(args), "pronargdefaults": 0,
			"prorettype": f.Result, "proargtypes": args, "prosrc": f.Name,
		})
	}
	return rows
}

func tableRow(space, name string, indexed bool) row {
	return row{
		"schemaname": space, "tablename": name, "tableowner": "postgres", "hasindexes": indexed, "hasrules": false,
		"hastriggers": false, "rowsecurity": false,
	}
}

func fixedTables(c *Catalog, _ string) ([][]any, error) {
	var rows []row
	for _, s := range c.sorted() {
		if s.kind == "r" {
			rows = append(rows, tableRow(s.Schema, s.Name, false))
		}
	}
	return c.build("pg_catalog.pg_tables", rows)
}

func fixedInfoTables(c *Catalog, database string) ([][]any, error) {
	var rows []row
	kinds := map[string]string{"r": "BASE TABLE", "v": "VIEW"}
	for _, s := range c.sorted() {
		rows = append(rows, infoTable(database, s.Schema, s.Name, kinds[s.kind]))
	}
	return c.build("information_schema.tables", rows)
}

func fixedInfoColumns(c *Catalog, database string) ([][]any, error) {
	var rows []row
	for _, s := range c.sorted() {
		for i, col := range s.Columns {
			r := infoColumn(database, s.Schema, s.Name, i+1, col.Name, col.TypeOID, col.TypMod, col.NotNull)
			if name := c.domains[s.facts[i].domain]; name != "" {
				r["domain_catalog"], r["domain_schema"], r["domain_name"] = database, "information_schema", name
			}
			if coll := s.facts[i].collation; coll == oidCollationC || coll == 0 && s.own && col.TypeOID == oidName {
				r["collation_catalog"], r["collation_schema"], r["collation_name"] = database, "pg_catalog", "C"
			}
			rows = append(rows, r)
		}
	}
	return c.build("information_schema.columns", rows)
}

// attributeRow is a pg_attribute row of a column of a built-in type or a domain.
func (c *Catalog) attributeRow(rel uint32, num int, name string, oid uint32, typmod int32, notNull bool) row {
	t, ok := c.types[oid]
	if !ok && oid > enumOIDs {
		t = typeFacts{length: "4", byval: "t", align: "i", storage: "p"}
	} else if !ok { // an array of one of PostgreSQL's own row types
		t = typeFacts{length: "-1", byval: "f", align: "i", storage: "x"}
	}
	dims := 0
	if pgsql.ElemOf(oid) != 0 && t.length == "-1" {
		dims = 1
	}
	coll, _ := strconv.Atoi(t.collation) // "" for what has none
	return row{
		"attrelid": rel, "attname": name, "atttypid": oid, "attstattarget": -1, "attlen": t.length, "attnum": num,
		"attndims": dims, "attcacheoff": -1, "atttypmod": typmod, "attbyval": t.byval, "attalign": t.align, "attstorage": t.storage,
		"attcompression": "", "attnotnull": notNull, "atthasdef": false, "atthasmissing": false, "attidentity": "", "attgenerated": "",
		"attisdropped": false, "attislocal": true, "attinhcount": 0, "attcollation": coll,
	}
}
