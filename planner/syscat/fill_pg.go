package syscat

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/change"
)

// PostgreSQL's own object ids.
const (
	oidPgCatalog    uint32 = 11
	oidPgToast      uint32 = 99
	oidPublic       uint32 = 2200
	oidInfoSchema   uint32 = 13000
	oidSkippr       uint32 = 13001
	oidBootstrap    uint32 = 10
	oidDatabase     uint32 = 5
	oidDefaultSpace uint32 = 1663
	oidGlobalSpace  uint32 = 1664
	oidHeap         uint32 = 2
	oidBtree        uint32 = 403
	oidCollationC   uint32 = 950
	oidDatabaseRole uint32 = 6171 // pg_database_owner
)

// postgresFills are the relations of PostgreSQL that we have something to say in.
func postgresFills() map[string]fill {
	return map[string]fill{
		"pg_catalog.pg_namespace":                                  fillNamespace,
		"pg_catalog.pg_class":                                      fillClass,
		"pg_catalog.pg_attribute":                                  fillAttribute,
		"pg_catalog.pg_attrdef":                                    fillAttrDef,
		"pg_catalog.pg_depend":                                     fillDepend,
		"pg_catalog.pg_timezone_names":                             fillZones,
		"pg_catalog.pg_index":                                      fillIndex,
		"pg_catalog.pg_constraint":                                 fillConstraint,
		"pg_catalog.pg_type":                                       fillType,
		"pg_catalog.pg_enum":                                       fillEnum,
		"pg_catalog.pg_database":                                   fillDatabase,
		"pg_catalog.pg_tablespace":                                 fillTablespace,
		"pg_catalog.pg_tables":                                     fillTables,
		"pg_catalog.index_definitions()":                           fillIndexDefinitions,
		"pg_catalog.pg_indexes":                                    fillIndexes,
		"pg_catalog.pg_views":                                      fillViews,
		"pg_catalog.pg_matviews":                                   fillMaterialized,
		"pg_catalog.pg_description":                                fillDescription,
		"pg_catalog.pg_shdescription":                              fillSharedDescription,
		"pg_catalog.pg_sequence":                                   fillSequence,
		"pg_catalog.pg_sequences":                                  fillSequences,
		"information_schema.sequences":                             fillInfoSequences,
		"information_schema.views":                                 fillInfoViews,
		"information_schema.view_table_usage":                      fillInfoViewTables,
		"information_schema.view_column_usage":                     fillInfoViewColumns,
		"pg_catalog.relation_sizes()":                              fillSizes,
		"pg_catalog.expressions()":                                 fillExpressions,
		"pg_catalog.check_definitions()":                           fillCheckDefinitions,
		"pg_catalog.view_definitions()":                            fillDefinitions,
		"pg_catalog.pg_rewrite":                                    fillRewrite,
		"pg_catalog.pg_settings":                                   fillSettings,
		"pg_catalog.pg_stat_activity":                              fillActivity,
		"pg_catalog.pg_config":                                     fillConfig,
		"pg_catalog.pg_stat_ssl":                                   fillEncryption,
		"pg_catalog.pg_prepared_statements":                        fillPrepared,
		"pg_catalog.pg_cursors":                                    fillCursors,
		"pg_catalog.pg_hba_file_rules":                             fillRules,
		"pg_catalog.pg_ident_file_mappings":                        fillMaps,
		"pg_catalog.pg_stat_progress_copy":                         fillCopies,
		"pg_catalog.pg_locks":                                      fillLocks,
		"information_schema.schemata":                              fillInfoSchemata,
		"information_schema.tables":                                fillInfoTables,
		"information_schema.columns":                               fillInfoColumns,
		"information_schema.table_constraints":                     fillInfoTableConstraints,
		"information_schema.constraint_column_usage":               fillInfoConstraintColumns,
		"information_schema.constraint_table_usage":                fillInfoConstraintTables,
		"information_schema.referential_constraints":               fillInfoReferential,
		"information_schema.check_constraints":                     fillInfoChecks,
		"information_schema.column_column_usage":                   fillInfoGenerated,
		"information_schema.column_udt_usage":                      fillInfoColumnTypes,
		"information_schema.element_types":                         fillInfoElements,
		"information_schema.collations":                            fillInfoCollations,
		"information_schema.collation_character_set_applicability": fillInfoCollationSets,
		"information_schema.character_sets":                        fillInfoCharacterSets,
		"information_schema.key_column_usage":                      fillInfoKeyColumns,
		"information_schema.routines":                              fillInfoRoutines,
		"information_schema.parameters":                            fillInfoParameters,
		"information_schema.information_schema_catalog_name":       fillInfoCatalogName,
	}
}

// namespace is a schema.
type namespace struct {
	name string
	oid  uint32
}

// systemNamespaces are the schemas that are always there.
var systemNamespaces = map[string]uint32{
	"pg_catalog": oidPgCatalog, "pg_toast": oidPgToast, "public": oidPublic, "information_schema": oidInfoSchema, "skippr": oidSkippr,
}

// namespaces are all schemas, PostgreSQL's first.
func namespaces(env *planner.SystemEnv) []namespace {
	var out []namespace
	for _, name := range []string{"pg_catalog", "pg_toast", "public", "information_schema", "skippr"} {
		out = append(out, namespace{name, systemNamespaces[name]})
	}
	for _, s := range env.Snapshot.Schemas() {
		if !slices.ContainsFunc(out, func(n namespace) bool { return n.name == s.Name }) {
			out = append(out, namespace{s.Name, s.OID})
		}
	}
	return out
}

// namespaceOID is the oid of a schema, 0 for none.
func namespaceOID(env *planner.SystemEnv, name string) uint32 {
	if oid, ok := systemNamespaces[name]; ok {
		return oid
	}
	if s, err := env.Snapshot.Schema(name); err == nil {
		return s.OID
	}
	return 0
}

// The rights in schemas that are always there.
var (
	usableByAll    = []string{"postgres=UC/postgres", "=U/postgres"}
	usableInPublic = []string{"pg_database_owner=UC/pg_database_owner", "=U/pg_database_owner"}
)

func fillNamespace(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, n := range namespaces(env) {
		r := row{"oid": n.oid, "nspname": n.name, "nspowner": oidBootstrap}
		switch n.oid {
		case oidPublic:
			r["nspowner"], r["nspacl"] = oidDatabaseRole, usableInPublic
		case oidPgCatalog, oidInfoSchema, oidSkippr:
			r["nspacl"] = usableByAll
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_namespace", rows)
}

// classRow is a pg_class row with the values that most relations share.
func classRow(oid uint32, name string, space uint32, kind string, natts int) row {
	return row{
		"oid": oid, "relname": name, "relnamespace": space, "reltype": 0, "reloftype": 0, "relowner": oidBootstrap,
		"relam": oidHeap, "relfilenode": oid, "reltablespace": 0, "relpages": 0, "reltuples": -1.0, "relallvisible": 0,
		"reltoastrelid": 0, "relhasindex": false, "relisshared": false, "relpersistence": "p", "relkind": kind, "relnatts": natts,
		"relchecks": 0, "relhasrules": false, "relhastriggers": false, "relhassubclass": false, "relrowsecurity": false,
		"relforcerowsecurity": false, "relispopulated": true, "relreplident": "d", "relispartition": false, "relrewrite": 0,
		"relfrozenxid": 0, "relminmxid": 0,
	}
}

func fillClass(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	triggers := referred(env)
	for _, t := range env.Snapshot.AllTables() {
		space := namespaceOID(env, t.Schema)
		natts := 0
		for i, f := range t.Current.Fields {
			natts = max(natts, attNum(f, i))
		}
		r := classRow(planner.TableOID(t.Face()), t.Name, space, "r", natts)
		if t.Query != nil {
			r["relkind"], r["relhasrules"], r["relispopulated"], r["relreplident"] = "m", true, t.Query.Populated, "d"
		}
		lake := env.Snapshot.LakeState(t.ID)
		r["reltype"], r["reltuples"], r["relpages"] = planner.TypeOID(t.Face()), float64(lake.Rows), lake.Bytes/8192
		list := indexesOf(t)
		r["relhasindex"], r["relchecks"], r["relpersistence"] = len(list) > 0, len(t.Checks), persistence(t)
		r["relhastriggers"] = triggers[t.Face()]
		if len(t.Storage) > 0 {
			r["reloptions"] = t.Storage
		}
		rows = append(rows, r)
		for _, x := range list {
			i := classRow(x.oid, x.name, space, "i", len(x.fields)+len(x.included()))
			method, _, _ := x.kind()
			i["relam"], i["relreplident"], i["reltuples"], i["relpersistence"] = method, "n", float64(lake.Rows), persistence(t)
			rows = append(rows, i)
		}
	}
	return c.build("pg_catalog.pg_class", append(append(rows, viewClasses(env)...), sequenceClasses(env)...))
}

// persistence is pg_class.relpersistence.
func persistence(t *catalog.Table) string {
	if t.Temp != "" {
		return "t"
	}
	return "p"
}

func fillAttribute(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	always, users := identities(env), userTypesOf(env)
	for _, t := range env.Snapshot.AllTables() {
		for i, f := range t.Current.Fields {
			oid, typmod := users.announced(t, f)
			r := c.attributeRow(planner.TableOID(t.Face()), attNum(f, i), f.Name, oid, typmod, f.NotNull || slices.Contains(t.Current.Key, f.ID))
			users.attribute(r, oid)
			collated(r, f.Collation)
			_, r["atthasdef"] = t.Defaults[f.ID]
			if t.Generated[f.ID] != "" {
				r["atthasdef"], r["attgenerated"] = true, "s"
			}
			if s := always[t.Face()][f.ID]; s != nil {
				r["attidentity"] = s.Identity
			}
			rows = append(rows, r)
		}
		for _, x := range indexesOf(t) {
			for i, col := range d.indexColumns(&x) {
				r := users.attribute(c.attributeRow(x.oid, i+1, col.Name, col.Type, col.Mod, false), col.Type)
				if i >= len(x.fields) { // which is not compared
					r["attcollation"] = 0
				}
				rows = append(rows, r)
			}
		}
	}
	return c.build("pg_catalog.pg_attribute", append(append(rows, c.viewAttributes(env, users)...), c.sequenceAttributes(env)...))
}

// oidDefaults is where the OIDs of defaults begin: a range for each table.
const oidDefaults uint32 = 0x70000000

// defaultOID is the oid of the default of a table's column.
func defaultOID(id change.TableID, num int) uint32 { return oidDefaults + uint32(id)<<11 + uint32(num) }

// arrayTypeOID is the pg_type oid of the arrays of a table's rows.
func arrayTypeOID(id change.TableID) uint32 { return planner.TypeOID(id) + 1<<29 }

func fillAttrDef(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, t := range env.Snapshot.AllTables() {
		for i, f := range t.Current.Fields {
			if t.Defaults[f.ID]+t.Generated[f.ID] != "" {
				num := attNum(f, i)
				rows = append(rows, row{
					"oid": defaultOID(t.Face(), num), "adrelid": planner.TableOID(t.Face()), "adnum": num, "adbin": d.defaultText(env, t, f, false),
				})
			}
		}
	}
	return c.build("pg_catalog.pg_attrdef", append(rows, viewDefaults(env, d)...))
}

// attNum is the number of a table's i-th field: that of the source, which has gaps
// where columns were dropped.
func attNum(f schema.Field, i int) int {
	if f.AttNum != 0 {
		return int(f.AttNum)
	}
	return i + 1
}

// indexInfo is the primary key of a table, a unique constraint, or an index.
type indexInfo struct {
	table           *catalog.Table
	name            string
	oid             uint32
	constraint      uint32 // its oid, 0 for none
	fields          []int32
	primary, unique bool
	nullsEqual      bool
	of              catalog.Index // the zero value for a primary key
	comments        catalog.IndexComments
}

// indexesOf are the indexes of a table, its key first.
func indexesOf(t *catalog.Table) []indexInfo {
	var out []indexInfo
	if t.Current.HasKey() {
		out = append(out, indexInfo{
			table: t, name: t.PrimaryKey(), oid: planner.IndexOID(t.Face()), constraint: constraintOID(t.Face()), fields: t.Current.Key,
			primary: true, unique: true, comments: t.KeyComments,
		})
	}
	for _, x := range t.Indexes {
		i := indexInfo{table: t, name: x.Name, oid: planner.TableOID(x.ID), fields: x.Fields, unique: x.Unique, nullsEqual: x.NullsEqual, of: x, comments: x.Comments}
		if x.Constraint {
			i.constraint = constraintOID(x.ID)
		}
		out = append(out, i)
	}
	return out
}

// names are the names of its columns.
func (x *indexInfo) names() []string {
	var out []string
	for _, id := range x.fields {
		if f, ok := x.table.Current.Field(id); ok {
			out = append(out, f.Name)
		}
	}
	return out
}

// columns are its columns as SQL.
func (x *indexInfo) columns() string {
	var parts []string
	for _, name := range x.names() {
		parts = append(parts, quote.NameIfNeeded(name))
	}
	return strings.Join(parts, ", ")
}

// numbers are the attribute numbers of its columns.
func (x *indexInfo) numbers() []int64 {
	var out []int64
	for _, id := range x.fields {
		if id == 0 { // an expression
			out = append(out, 0)
			continue
		}
		out = append(out, int64(columnNumber(x.table, id)))
	}
	return out
}

// keyList is a table's key columns as SQL.
func keyList(t *catalog.Table) string {
	x := indexInfo{table: t, fields: t.Current.Key}
	return x.columns()
}

// indexes are all indexes.
func indexes(env *planner.SystemEnv) []indexInfo {
	var out []indexInfo
	for _, t := range env.Snapshot.AllTables() {
		out = append(out, indexesOf(t)...)
	}
	return out
}

// constraints are the indexes of primary keys and unique constraints.
func constraints(env *planner.SystemEnv) []indexInfo {
	return slices.DeleteFunc(indexes(env), func(x indexInfo) bool { return x.constraint == 0 })
}

func fillIndex(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	for _, x := range indexes(env) {
		n, more := len(x.fields), x.included()
		method, options, names := x.kind()
		classes, colls := make([]int64, n), make([]int64, n)
		for i, col := range d.indexColumns(&x)[:n] {
			oid := col.Type
			classes[i] = c.operatorClass(method, oid, names[i])
			colls[i], _ = strconv.ParseInt(c.types[oid].collation, 10, 64) // "" for what has none
			if own := x.collations()[i]; own != 0 {
				colls[i] = int64(own)
			}
		}
		rows = append(rows, row{
			"indexrelid": x.oid, "indrelid": planner.TableOID(x.table.Face()), "indnatts": n + len(more), "indnkeyatts": n,
			"indisunique": x.unique, "indpred": d.indexPredicate(&x), "indexprs": d.indexExpressions(&x), "indnullsnotdistinct": x.nullsEqual, "indisprimary": x.primary, "indisexclusion": false, "indimmediate": !x.of.Deferrable,
			"indisclustered": false, "indisvalid": true, "indcheckxmin": false, "indisready": true, "indislive": true,
			"indisreplident": false, "indkey": append(x.numbers(), (&indexInfo{table: x.table, fields: more}).numbers()...),
			"indcollation": colls, "indclass": classes, "indoption": options,
		})
	}
	return c.build("pg_catalog.pg_index", rows)
}

// keyed are the tables with a key.
func keyed(env *planner.SystemEnv) []*catalog.Table {
	var out []*catalog.Table
	for _, t := range env.Snapshot.AllTables() {
		if t.Current.HasKey() {
			out = append(out, t)
		}
	}
	return out
}

// constraintOID is the oid of a table's primary key constraint.
func constraintOID(id change.TableID) uint32 { return planner.IndexOID(id) + 1<<28 }

func fillConstraint(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, x := range constraints(env) {
		kind := "u"
		if x.primary {
			kind = "p"
		}
		rows = append(rows, row{
			"oid": x.constraint, "conname": x.name, "connamespace": namespaceOID(env, x.table.Schema), "contype": kind,
			"condeferrable": x.of.Deferrable, "condeferred": x.of.Deferred, "convalidated": true, "conrelid": planner.TableOID(x.table.Face()), "contypid": 0,
			"conindid": x.oid, "conparentid": 0, "confrelid": 0, "confupdtype": " ", "confdeltype": " ",
			"confmatchtype": " ", "conislocal": true, "coninhcount": 0, "connoinherit": true, "conkey": x.numbers(),
		})
	}
	return c.build("pg_catalog.pg_constraint", append(append(rows, checkConstraints(env, d)...), foreignConstraints(env)...))
}

// fillType are the row types of tables, and those of their arrays.
func fillType(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var own []row
	for _, t := range env.Snapshot.AllTables() {
		own = append(own, row{
			"oid": planner.TypeOID(t.Face()), "typname": t.Name, "typnamespace": namespaceOID(env, t.Schema), "typowner": oidBootstrap,
			"typlen": -1, "typbyval": false, "typtype": "c", "typcategory": "C", "typispreferred": false, "typisdefined": true,
			"typdelim": ",", "typrelid": planner.TableOID(t.Face()), "typsubscript": 0, "typelem": 0, "typarray": arrayTypeOID(t.Face()), "typinput": 2290, "typoutput": 2291,
			"typreceive": 2402, "typsend": 2403, "typmodin": 0, "typmodout": 0, "typanalyze": 0, "typalign": "d", "typstorage": "x",
			"typnotnull": false, "typbasetype": 0, "typtypmod": -1, "typndims": 0, "typcollation": 0,
		}, row{
			"oid": arrayTypeOID(t.Face()), "typname": "_" + t.Name, "typnamespace": namespaceOID(env, t.Schema), "typowner": oidBootstrap,
			"typlen": -1, "typbyval": false, "typtype": "b", "typcategory": "A", "typispreferred": false, "typisdefined": true,
			"typdelim": ",", "typrelid": 0, "typsubscript": 6179, "typelem": planner.TypeOID(t.Face()), "typarray": 0, "typinput": 750, "typoutput": 751,
			"typreceive": 2400, "typsend": 2401, "typmodin": 0, "typmodout": 0, "typanalyze": 3816, "typalign": "d", "typstorage": "x",
			"typnotnull": false, "typbasetype": 0, "typtypmod": -1, "typndims": 0, "typcollation": 0,
		})
	}
	return c.build("pg_catalog.pg_type", append(own, userTypeRows(env)...))
}

func fillDatabase(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	return c.build("pg_catalog.pg_database", []row{{
		"oid": oidDatabase, "datname": env.Database, "datdba": oidBootstrap, "encoding": 6, "datlocprovider": "c",
		"datistemplate": false, "datallowconn": true, "datconnlimit": -1, "datfrozenxid": 0, "datminmxid": 1,
		"dattablespace": oidDefaultSpace, "datcollate": "C.UTF-8", "datctype": "C.UTF-8",
	}})
}

func fillTablespace(_ context.Context, c *Catalog, _ *planner.SystemEnv) ([][]any, error) {
	return c.build("pg_catalog.pg_tablespace", []row{
		{"oid": oidDefaultSpace, "spcname": "pg_default", "spcowner": oidBootstrap},
		{"oid": oidGlobalSpace, "spcname": "pg_global", "spcowner": oidBootstrap},
	})
}

func fillTables(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range baseTables(env) {
		rows = append(rows, tableRow(t.Schema, t.Name, t.Current.HasKey()))
	}
	return c.build("pg_catalog.pg_tables", rows)
}

func fillIndexes(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, x := range indexes(env) {
		rows = append(rows, row{
			"schemaname": x.table.Schema, "tablename": x.table.Name, "indexname": x.name,
			"indexdef": x.sql(quote.NameIfNeeded(x.table.Schema)+".", d.indexText(&x, false)),
		})
	}
	return c.build("pg_catalog.pg_indexes", rows)
}

// sql is the statement that would create an index, with the schema of its table as it is to stand
// there, and what follows USING.
func (x *indexInfo) sql(space, definition string) string {
	word := "INDEX "
	if x.unique {
		word = "UNIQUE INDEX "
	}
	return "CREATE " + word + quote.NameIfNeeded(x.name) + " ON " + space + quote.NameIfNeeded(x.table.Name) + " USING " + definition
}

// fillIndexDefinitions are the indexes, as part 0, and each of what they are of.
func fillIndexDefinitions(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, x := range indexes(env) {
		space := quote.NameIfNeeded(x.table.Schema) + "."
		short := space
		if slices.Contains(env.SearchPath, x.table.Schema) {
			short = ""
		}
		rows = append(rows, row{"index": x.oid, "part": 0, "definition": x.sql(space, d.indexText(&x, false)), "short": x.sql(short, d.indexText(&x, true))})
		plain, pretty := d.indexKeys(&x, false), d.indexKeys(&x, true)
		for i := range plain {
			rows = append(rows, row{"index": x.oid, "part": i + 1, "definition": plain[i], "short": pretty[i]})
		}
	}
	return c.build("pg_catalog.index_definitions()", rows)
}
