package syscat

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/skipprd/skipprd/planner/pgsql"
)

// fixedClass are the system relations themselves, with the indexes and TOAST tables that
// PostgreSQL's have.
func fixedClass(c *Catalog, _ string) ([][]any, error) {
	classes, err := systemClasses()
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, k := range classes {
		r := classRow(k.oid, k.name, systemNamespaces[k.space], k.kind, 0)
		maps.Copy(r, k.facts)
		if k.kind == "v" {
			r["relfilenode"] = 0
		}
		rows = append(rows, r)
	}
	for _, s := range c.sorted() {
		if s.own {
			r := classRow(s.OID, s.Name, systemNamespaces[s.Schema], s.kind, len(s.Columns))
			r["relam"], r["relfilenode"], r["relreplident"], r["relhasrules"] = 0, 0, "n", true
			rows = append(rows, r)
		}
	}
	return c.build("pg_catalog.pg_class", rows)
}

// systemClass is a relation of PostgreSQL's own, and the columns of pg_class that are its.
type systemClass struct {
	oid               uint32
	space, name, kind string
	facts             row
}

func systemClasses() ([]systemClass, error) {
	names := []string{
		"reltype", "relam", "reltoastrelid", "relhasindex", "relisshared", "relchecks", "relhasrules", "relreplident", "reltablespace", "relnatts",
	}
	lines, err := readTSV("system_class")
	out := make([]systemClass, 0, len(lines))
	for _, l := range lines {
		k := systemClass{oid: number(l[0]), space: *l[1], name: *l[2], kind: *l[3], facts: row{}}
		for i, name := range names {
			k.facts[name] = *l[4+i]
		}
		out = append(out, k)
	}
	return out, err
}

// systemIndexes are the oids of PostgreSQL's own indexes, by schema and name.
func systemIndexes() (map[[2]string]uint32, error) {
	classes, err := systemClasses()
	out := map[[2]string]uint32{}
	for _, k := range classes {
		if k.kind == "i" {
			out[[2]string{k.space, k.name}] = k.oid
		}
	}
	return out, err
}

// Index finds an index of a system table.
func (c *Catalog) Index(schema, name string) (oid uint32, ok bool) {
	oid, ok = c.indexes[[2]string{schema, name}]
	return oid, ok
}

// inNamespace are the rows of a file whose schemas are PostgreSQL's two, of which that of
// information_schema has another oid here.
func (c *Catalog) inNamespace(name, column string) ([][]any, error) {
	rows, err := fileRows(name)
	at := c.shapes["pg_catalog."+name].places()[column]
	for _, r := range rows {
		if space, ok := r[at].(string); ok && number(&space) != oidPgCatalog {
			r[at] = oidInfoSchema
		}
	}
	return rows, err
}

func fixedConstraint(c *Catalog, _ string) ([][]any, error) {
	return c.inNamespace("pg_constraint", "connamespace")
}

// fixedRewrite are the rules of the system views.
func fixedRewrite(c *Catalog, _ string) ([][]any, error) {
	lines, err := readTSV("system_rewrite")
	var rows []row
	for _, l := range lines {
		rows = append(rows, rewriteRow(*l[0], *l[1]))
	}
	if err != nil {
		return nil, err
	}
	return c.build("pg_catalog.pg_rewrite", rows)
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
	lines, err := readTSV("system_attribute")
	if err != nil {
		return nil, err
	}
	for _, l := range lines { // of indexes and TOAST tables
		mod, err := strconv.ParseInt(*l[4], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read system_attribute: %w", err)
		}
		r := c.attributeRow(number(l[0]), int(number(l[1])), *l[2], number(l[3]), int32(mod), *l[5] == "t")
		r["attcollation"] = *l[6]
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_attribute", rows)
}

// fixedType are PostgreSQL's built-in types, the row types of its relations and the domains of
// information_schema.
func fixedType(c *Catalog, _ string) ([][]any, error) {
	return c.inNamespace("pg_type", "typnamespace")
}

// holders are the relations whose rows name functions.
var holders = []string{"pg_type", "pg_cast", "pg_operator", "pg_aggregate", "pg_am", "pg_amproc", "pg_language", "pg_range", "pg_conversion", "pg_ts_parser", "pg_ts_template"}

// fixedProc are the functions that statements can call, and those that other rows
// name: of types, casts, operators. Those of information_schema are all here.
func fixedProc(c *Catalog, _ string) ([][]any, error) {
	named := map[string]bool{"3506": true, "3507": true, "3532": true, "3533": true} // of enumerated types
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
	rows, err := c.inNamespace("pg_proc", "pronamespace")
	if err != nil {
		return nil, err
	}
	at := c.shapes["pg_catalog.pg_proc"].places()
	rows = slices.DeleteFunc(rows, func(r []any) bool {
		oid, _ := r[at["oid"]].(string)
		name, _ := r[at["proname"]].(string)
		_, listed := c.shapes["pg_catalog."+name+"()"]
		return r[at["pronamespace"]] != oidInfoSchema && !named[oid] && !own[name] && !listed && !pgsql.Callable(name)
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
			rows = append(rows, tableRow(s.Schema, s.Name, s.Schema == "pg_catalog"))
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

// collated gives a row of pg_attribute the collation of its column, unless that is its type's.
func collated(r row, oid uint32) {
	if oid != 0 {
		r["attcollation"] = oid
	}
}

// attributeRow is a pg_attribute row of a column of a built-in type or a domain.
func (c *Catalog) attributeRow(rel uint32, num int, name string, oid uint32, typmod int32, notNull bool) row {
	t, ok := c.types[oid]
	if !ok { // an array of one of PostgreSQL's own row types
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
