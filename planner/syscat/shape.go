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
