package syscat

import (
	"context"
	"slices"
	"strconv"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// The OIDs of PostgreSQL's relations that pg_depend names.
const (
	classType       uint32 = 1247
	classRelation   uint32 = 1259
	classDefault    uint32 = 2604
	classConstraint uint32 = 2606
	classRewrite    uint32 = 2618
)

// fillDepend says what hangs on tables: row types, defaults, primary keys and their
// indexes, and on which columns.
func fillDepend(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	depends := func(class, obj, refClass, ref uint32, column int64, kind string) {
		rows = append(rows, row{
			"classid": class, "objid": obj, "objsubid": 0, "refclassid": refClass, "refobjid": ref, "refobjsubid": column, "deptype": kind,
		})
	}
	users := userTypesOf(env)
	for _, t := range env.Snapshot.AllTables() {
		table := planner.TableOID(t.Face())
		depends(classType, planner.TypeOID(t.Face()), classRelation, table, 0, "i")
		depends(classType, arrayTypeOID(t.Face()), classType, planner.TypeOID(t.Face()), 0, "i")
		for i, f := range t.Current.Fields {
			num := int64(attNum(f, i))
			of := defaultOID(t.Face(), int(num))
			oid, _ := users.announced(t, f)
			own := users.byOID[oid] != nil
			switch {
			case t.Generated[f.ID] != "":
				depends(classDefault, of, classRelation, table, num, "i")
				for _, from := range generatedFrom(t, f.ID) {
					depends(classDefault, of, classRelation, table, int64(columnNumber(t, from)), "n")
				}
			case t.Defaults[f.ID] != "":
				depends(classDefault, of, classRelation, table, num, "a")
				if own {
					depends(classDefault, of, classType, oid, 0, "n")
				}
			}
			if own {
				depends(classRelation, table, classType, oid, 0, "n")
				rows[len(rows)-1]["objsubid"] = num
			}
		}
		for _, x := range indexesOf(t) {
			numbers := slices.DeleteFunc(x.numbers(), func(n int64) bool { return n == 0 })
			for _, id := range x.of.Uses {
				if n := int64(columnNumber(t, id)); !slices.Contains(numbers, n) {
					numbers = append(numbers, n)
				}
			}
			for _, num := range numbers {
				if x.constraint == 0 {
					depends(classRelation, x.oid, classRelation, table, num, "a")
				} else {
					depends(classConstraint, x.constraint, classRelation, table, num, "a")
				}
			}
			if x.constraint != 0 {
				depends(classRelation, x.oid, classConstraint, x.constraint, 0, "i")
			}
		}
	}
	for _, k := range foreignKeys(env) {
		id := constraintOID(k.ID)
		for _, num := range k.own().numbers() {
			depends(classConstraint, id, classRelation, planner.TableOID(k.table.Face()), num, "a")
		}
		for _, num := range k.refs().numbers() {
			depends(classConstraint, id, classRelation, planner.TableOID(k.parent.Face()), num, "n")
		}
		depends(classConstraint, id, classRelation, k.index().oid, 0, "n")
	}
	checkDepends(env, depends)
	viewDepends(env, depends)
	return c.build("pg_catalog.pg_depend", append(rows, sequenceDepends(env)...))
}

// checkDepends says which columns checks hang on: as the columns' own, and as named in them.
func checkDepends(env *planner.SystemEnv, depends func(class, obj, refClass, ref uint32, column int64, kind string)) {
	for _, x := range checks(env) {
		for _, f := range x.columns {
			for _, kind := range []string{"a", "n"} {
				depends(classConstraint, x.oid, classRelation, planner.TableOID(x.table.Face()), int64(columnNumber(x.table, f.ID)), kind)
			}
		}
	}
}

// generatedFrom are the fields that the expression of a generated column names.
func generatedFrom(t *catalog.Table, id int32) (out []int32) {
	names, err := pgsql.ConditionColumns(t.Generated[id])
	if err != nil {
		return nil // who reads the column is told
	}
	for _, f := range t.Current.Fields {
		if slices.Contains(names, f.Name) {
			out = append(out, f.ID)
		}
	}
	return out
}

// Schema skippr is an extension's, as PostgreSQL sees it: what belongs to an extension
// with an object id of the server's own is nobody's to dump, and tools leave it out.
const (
	oidExtension uint32 = 13002

	classNamespace uint32 = 2615
	classDatabase  uint32 = 1262
	classRole      uint32 = 1260
	classProc      uint32 = 1255
	classExtension uint32 = 3079

	extensionName    = "skippr"
	extensionVersion = "1.0"
	extensionComment = "pipelines, their tables and their state"
)

func fixedExtension(c *Catalog, _ string) ([][]any, error) {
	return c.build("pg_catalog.pg_extension", []row{{
		"oid": oidExtension, "extname": extensionName, "extowner": oidBootstrap, "extnamespace": oidSkippr, "extrelocatable": false,
		"extversion": extensionVersion,
	}})
}

func fixedAvailable(c *Catalog, _ string) ([][]any, error) {
	return c.build("pg_catalog.pg_available_extensions", []row{{
		"name": extensionName, "default_version": extensionVersion, "installed_version": extensionVersion, "comment": extensionComment,
	}})
}

func fixedAvailableVersions(c *Catalog, _ string) ([][]any, error) {
	return c.build("pg_catalog.pg_available_extension_versions", []row{{
		"name": extensionName, "version": extensionVersion, "installed": true, "superuser": true, "trusted": false, "relocatable": false,
		"schema": "skippr", "comment": extensionComment,
	}})
}

// fixedDescription are PostgreSQL's comments and the extension's.
func fixedDescription(c *Catalog, _ string) ([][]any, error) {
	rows, err := fileRows("pg_description")
	if err != nil {
		return nil, err
	}
	own, err := c.build("pg_catalog.pg_description", []row{{
		"objoid": oidExtension, "classoid": classExtension, "objsubid": 0, "description": extensionComment,
	}})
	return append(rows, own...), err
}

// fixedDepend says what information_schema hangs on and what belongs to the extension.
func fixedDepend(c *Catalog, _ string) ([][]any, error) {
	system, err := fileRows("pg_depend")
	if err != nil {
		return nil, err
	}
	for _, r := range system {
		if r[3] == strconv.Itoa(int(classNamespace)) {
			r[4] = oidInfoSchema
		}
	}
	var rows []row
	member := func(class, object any) {
		rows = append(rows, row{
			"classid": class, "objid": object, "objsubid": 0, "refclassid": classExtension, "refobjid": oidExtension, "refobjsubid": 0, "deptype": "e",
		})
	}
	member(classNamespace, oidSkippr)
	for _, s := range c.sorted() {
		if s.Schema == "skippr" {
			member(classRelation, s.OID)
		}
	}
	for _, p := range ownProcs(c) {
		member(classProc, p["oid"])
	}
	own, err := c.build("pg_catalog.pg_depend", rows)
	return append(system, own...), err
}

// fixedInitPrivs are the privileges that system objects have from the start: what is
// equal to them is not dumped.
func fixedInitPrivs(c *Catalog, database string) ([][]any, error) {
	var rows []row
	from := func(class, object any, kind string, list any) {
		rows = append(rows, row{"objoid": object, "classoid": class, "objsubid": 0, "privtype": kind, "initprivs": list})
	}
	from(classNamespace, oidPgCatalog, "i", usableByAll)
	from(classNamespace, oidPublic, "i", usableInPublic)
	from(classNamespace, oidSkippr, "e", usableByAll)
	procs, err := fixedProc(c, database)
	if err != nil {
		return nil, err
	}
	at := c.shapes["pg_catalog.pg_proc"].places()
	for _, p := range procs {
		if list := p[at["proacl"]]; list != nil {
			from(classProc, p[at["oid"]], "i", list)
		}
	}
	return c.build("pg_catalog.pg_init_privs", rows)
}
