package values

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// withArrays are the types with values that the type here does not hold, and lists, whose
// odd shapes are such values.
func withArrays() []typ {
	var out []typ
	for _, t := range everyType() {
		if t.sql == "int4[]" || t.sql == "text[]" {
			elem := strings.TrimSuffix(t.sql, "[]")
			v := fmt.Sprintf("%s::%s", map[string]string{"int4": "7", "text": "'x'"}[elem], elem)
			t.refused = []string{fmt.Sprintf("ARRAY[[%s], [%[1]s]]", v), fmt.Sprintf("array_fill(%s, ARRAY[2], ARRAY[0])", v)}
		}
		if len(t.refused) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// isList says that a type is a list here; lists stay lists under out_of_range = 'text'.
func isList(t typ) bool { return strings.HasSuffix(t.sql, "[]") || t.sql == "intlist" }

// TestRefused has values that the column's type here does not hold, in a copy and in the
// stream. By default they are dead letters, and all other rows arrive; with out_of_range =
// 'text' everything arrives, but for lists of odd shapes, which AS text lets in.
func TestRefused(t *testing.T) {
	types := withArrays()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, prelude...)
	s := harness.New(t, t.TempDir(), "--commit-interval", "1h")
	s.Start()
	var tables, copied, streamed []string
	refused, odd := 0, 0
	astext := "CREATE PIPELINE astext FROM POSTGRES " + quote.Text(source)
	between := " FOR TABLE "
	for i, ty := range types {
		key := " PRIMARY KEY"
		if i%3 == 2 {
			key = ""
		}
		tables = append(tables, fmt.Sprintf("CREATE TABLE t%d (id int%s, v %s, good bool)", i, key, ty.sql))
		if isList(ty) {
			odd += 2 * len(ty.refused)
			astext, between = astext+between+fmt.Sprintf("t%d (id, v AS text, good)", i), ", "
		}
		for k, v := range ty.refused {
			refused++
			copied = append(copied, fmt.Sprintf("INSERT INTO t%d VALUES (%d, %s, false), (%d, %s, true)", i, k, v, 100+k, ty.values[0]))
			streamed = append(streamed, fmt.Sprintf("INSERT INTO t%d VALUES (%d, %s, false), (%d, %s, true)", i, 1000+k, v, 1100+k, ty.values[0]))
		}
	}
	harness.Exec(t, source, strings.Join(tables, "; "), strings.Join(copied, "; "))
	harness.Exec(t, s.DSN, astext, "SYNC PIPELINE astext UNTIL CAUGHT UP")
	for _, policy := range []string{"dead_letter", "text"} {
		harness.Exec(t, s.DSN, fmt.Sprintf("CREATE PIPELINE %s FROM POSTGRES %s FOR ALL TABLES WITH (out_of_range = '%[1]s')", policy, quote.Text(source)),
			"SYNC PIPELINE "+policy+" UNTIL CAUGHT UP")
	}
	harness.Exec(t, source, strings.Join(streamed, "; "))
	a, b := connect(t, source), connect(t, s.DSN)
	for _, policy := range []string{"dead_letter", "text", "astext"} {
		harness.Exec(t, s.DSN, "SYNC PIPELINE "+policy+" UNTIL CAUGHT UP")
		for i, ty := range types {
			if policy == "astext" && !isList(ty) {
				continue
			}
			checkRefused(t, a, b, policy, fmt.Sprintf("t%d", i), ty)
		}
	}
	n, err := harness.Text(s.DSN, "SELECT count(*) FROM skippr.dead_letters WHERE pipeline = 'dead_letter'")
	if err != nil || n != fmt.Sprint(2*refused) {
		t.Errorf("%s dead letters, want %d: %v", n, 2*refused, err)
	}
	if n, err := harness.Text(s.DSN, "SELECT count(*) FROM skippr.dead_letters WHERE pipeline = 'text'"); err != nil || n != fmt.Sprint(odd) {
		t.Errorf("%s dead letters of lists, want %d: %v", n, odd, err)
	}
}

func checkRefused(t *testing.T, a, b *pgx.Conn, policy, table string, ty typ) {
	where := "WHERE good"
	if policy == "text" && !isList(ty) || policy == "astext" {
		where = ""
	}
	want, err := ask(t.Context(), a, fmt.Sprintf("SELECT * FROM %s %s", table, where))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ask(t.Context(), b, fmt.Sprintf("SELECT * FROM %s.%s", policy, table))
	if err != nil {
		t.Errorf("%s, %s: %v", policy, ty.name, err)
		return
	}
	if g, w := strings.Join(lines(got), "\n"), strings.Join(lines(want), "\n"); g != w || got.types[1] != want.types[1] {
		t.Errorf("%s, %s %v:\n got %s\nwant %s %v", policy, ty.name, got.types[1], g, w, want.types[1])
	}
}
