package syscat

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/planner"
)

//go:embed data/*.tsv
var data embed.FS

// Type OIDs that this package names.
const (
	oidBool        uint32 = 16
	oidBytea       uint32 = 17
	oidName        uint32 = 19
	oidInt8        uint32 = 20
	oidInt2        uint32 = 21
	oidInt2Vector  uint32 = 22
	oidInt4        uint32 = 23
	oidRegproc     uint32 = 24
	oidText        uint32 = 25
	oidOID         uint32 = 26
	oidXID         uint32 = 28
	oidOIDVector   uint32 = 30
	oidFloat4      uint32 = 700
	oidFloat8      uint32 = 701
	oidTimestampTZ uint32 = 1184
	oidRegclass    uint32 = 2205
	oidRegtype     uint32 = 2206
)

// engineTypes are the engine's names of column types; all others arrive as text.
var engineTypes = map[uint32]string{
	oidBool: "BOOLEAN", oidBytea: "BLOB", oidInt8: "BIGINT", oidInt2: "INTEGER", oidInt4: "INTEGER",
	oidRegproc: "BIGINT", oidOID: "BIGINT", oidXID: "BIGINT", oidRegclass: "BIGINT", oidRegtype: "BIGINT",
	oidFloat4: "REAL", oidFloat8: "DOUBLE", oidTimestampTZ: "TIMESTAMP WITH TIME ZONE",
	oidInt2Vector: "INTEGER[]", oidOIDVector: "BIGINT[]",
	1000: "BOOLEAN[]", 1002: "VARCHAR[]", 1003: "VARCHAR[]", 1005: "INTEGER[]", 1007: "INTEGER[]", 1009: "VARCHAR[]",
	1015: "VARCHAR[]", 1016: "BIGINT[]", 1021: "REAL[]", 1022: "DOUBLE[]", 1028: "BIGINT[]", 1034: "VARCHAR[]",
}

func engineType(oid uint32) string {
	if t, ok := engineTypes[oid]; ok {
		return t
	}
	return "VARCHAR"
}

func column(name string, oid uint32) planner.SystemColumn {
	return planner.SystemColumn{Name: name, TypeOID: oid, TypMod: -1, EngineType: engineType(oid)}
}

// shape is a relation and how it looks to pg_class.
type shape struct {
	planner.SystemRelation
	kind  string // r table, v view, f function without arguments
	own   bool   // PostgreSQL does not have it
	facts []columnFacts
}

// columnFacts is what else pg_attribute knows of a column.
type columnFacts struct {
	collation uint32
	domain    uint32 // 0 unless the type is a domain of information_schema
}

// places are the columns' places by name.
func (s *shape) places() map[string]int {
	at := make(map[string]int, len(s.Columns))
	for i, col := range s.Columns {
		at[col.Name] = i
	}
	return at
}

// loadShapes reads the shapes of PostgreSQL's own relations.
func loadShapes() (map[string]*shape, error) {
	lines, err := readTSV("shapes")
	if err != nil {
		return nil, err
	}
	out := map[string]*shape{}
	for _, f := range lines {
		if len(f) != 10 || f[0] == nil || f[1] == nil {
			return nil, fmt.Errorf("read shapes: %d fields", len(f))
		}
		key := *f[0] + "." + *f[1]
		s := out[key]
		if s == nil {
			s = &shape{kind: *f[2]}
			s.Schema, s.Name, s.OID = *f[0], *f[1], number(f[3])
			out[key] = s
		}
		c := column(*f[4], number(f[5]))
		if m, err := strconv.ParseInt(*f[6], 10, 32); err == nil {
			c.TypMod = int32(m)
		}
		c.NotNull = *f[7] == "t"
		s.Columns = append(s.Columns, c)
		s.facts = append(s.facts, columnFacts{collation: number(f[8]), domain: number(f[9])})
	}
	return out, nil
}

func number(s *string) uint32 {
	if s == nil {
		return 0
	}
	n, err := strconv.ParseUint(*s, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// readTSV reads a file in COPY's text format; nil is NULL.
func readTSV(name string) ([][]*string, error) {
	b, err := data.ReadFile("data/" + name + ".tsv")
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var out [][]*string
	for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		fields := strings.Split(line, "\t")
		row := make([]*string, len(fields))
		for i, f := range fields {
			if f != `\N` {
				v := unescape.Replace(f)
				row[i] = &v
			}
		}
		out = append(out, row)
	}
	return out, nil
}

var unescape = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n")

// viewFunctions are the functions without arguments that give a view's rows: some functions of
// PostgreSQL make the rows of a view of its own, here the view makes those of the function. They are
// found by their name with parentheses, and shown nowhere.
var viewFunctions = map[string]string{
	"pg_available_extensions": "pg_available_extensions", "pg_config": "pg_config", "pg_cursor": "pg_cursors",
	"pg_get_backend_memory_contexts": "pg_backend_memory_contexts", "pg_hba_file_rules": "pg_hba_file_rules",
	"pg_ident_file_mappings": "pg_ident_file_mappings", "pg_lock_status": "pg_locks",
	"pg_prepared_statement": "pg_prepared_statements", "pg_show_all_file_settings": "pg_file_settings",
	"pg_show_all_settings": "pg_settings", "pg_timezone_abbrevs": "pg_timezone_abbrevs", "pg_timezone_names": "pg_timezone_names",
}

// functionShapes are the shapes of functions without arguments, by key.
func functionShapes(shapes map[string]*shape) map[string]*shape {
	out := map[string]*shape{}
	add := func(name string, s shape) {
		s.Schema, s.Name, s.OID, s.kind = "pg_catalog", name+"()", 0, "f"
		out[s.Schema+"."+s.Name] = &s
	}
	for name, view := range viewFunctions {
		add(name, *shapes["pg_catalog."+view])
	}
	keywords := shape{own: true}
	keywords.Columns = cols("word", oidText, "catcode", uint32(18), "barelabel", oidBool, "catdesc", oidText, "baredesc", oidText)
	add("pg_get_keywords", keywords)
	definitions := shape{own: true}
	definitions.Columns = cols("view", oidOID, "definition", oidText, "pretty", oidText)
	add("view_definitions", definitions)
	indexes := shape{own: true}
	indexes.Columns = cols("index", oidOID, "part", oidInt4, "definition", oidText, "short", oidText)
	add("index_definitions", indexes)
	checks := shape{own: true}
	checks.Columns = cols("oid", oidOID, "definition", oidText, "pretty", oidText)
	add("check_definitions", checks)
	expressions := shape{own: true}
	expressions.Columns = cols("relation", oidOID, "definition", oidText, "pretty", oidText)
	add("expressions", expressions)
	sizes := shape{own: true}
	sizes.Columns = cols("relation", oidOID, "bytes", oidInt8)
	add("relation_sizes", sizes)
	tokens := shape{own: true}
	tokens.Columns = cols("tokid", oidInt4, "alias", oidText, "description", oidText)
	add("ts_token_type", tokens)
	versions := *shapes["pg_catalog.pg_available_extension_versions"]
	versions.Columns = append(versions.Columns[:2:2], versions.Columns[3:]...) // without "installed"
	add("pg_available_extension_versions", versions)
	return out
}
