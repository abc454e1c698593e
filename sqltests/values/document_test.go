package values

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog/schema"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of docs/postgres-source.md")

// checkDocument compares a part of the document, between its two comments, with what a
// test found.
func checkDocument(t *testing.T, part, want string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "postgres-source.md")
	begin, end := "<!-- "+part+": written by a test -->\n", "<!-- end of "+part+" -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	have, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no part %q", path, part)
	}
	if have == want {
		return
	}
	if !*rewrite {
		t.Fatalf("%s is not what was found: go test ./sqltests/values -run %s -rewrite", path, t.Name())
	}
	if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

var keptNames = map[schema.Kind]string{
	schema.Bool: "boolean", schema.Int32: "int", schema.Int64: "long", schema.Float32: "float", schema.Float64: "double",
	schema.Date: "date", schema.Time: "time", schema.Timestamp: "timestamp", schema.TimestampTZ: "timestamptz",
	schema.String: "string", schema.Binary: "binary", schema.UUID: "uuid",
}

func keptAs(t schema.Type, text bool) string {
	switch {
	case text:
		return "exact text"
	case t.Kind == schema.Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case t.Kind == schema.List:
		return "list"
	}
	return keptNames[t.Kind]
}

// document is the matrix as a table: a row for each type that is no array; the last
// columns are about its arrays.
func (m *matrix) document() string {
	var b strings.Builder
	b.WriteString("| type | kept as | clients see | backfill | insert | update | unchanged | `[]`, `[][]` | cannot hold |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for i, ty := range m.types {
		if strings.HasSuffix(ty.name, "[]") && !strings.HasPrefix(ty.name, "domain") {
			continue
		}
		seen := schema.PostgresTypeName(uint32(m.told[i][0]), int32(m.told[i][1]))
		if m.told[i][0] >= ownOID {
			seen = "the source's"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |", ty.name, keptAs(m.kept[i], m.text[i]), seen)
		for _, ok := range m.exact[i] {
			b.WriteString(" " + word(ok) + " |")
		}
		fmt.Fprintf(&b, " %s | %s |\n", m.arrays(ty), strings.Join(beyond(ty), ", "))
	}
	return b.String()
}

func word(ok bool) string {
	if ok {
		return "exact"
	}
	return "differs"
}

// arrays says how the arrays of a type are kept, when all of them arrived.
func (m *matrix) arrays(of typ) string {
	var out []string
	for _, suffix := range []string{"[]", "[][]"} {
		i := slices.IndexFunc(m.types, func(o typ) bool { return o.name == of.name+suffix })
		if i < 0 || slices.Contains(m.exact[i][:], false) {
			return ""
		}
		out = append(out, keptAs(m.kept[i], m.text[i]))
	}
	if out[0] == out[1] {
		return out[0]
	}
	return strings.Join(out, ", ")
}

// beyond are the refused values of a type, without their casts.
func beyond(t typ) []string {
	var out []string
	for _, v := range t.refused {
		text, _, _ := strings.Cut(v, "::")
		out = append(out, "`"+strings.Trim(text, "'")+"`")
	}
	return out
}
