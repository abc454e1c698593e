package pgsql_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// verdict is what the comparison of a generated query says.
type verdict uint8

const (
	agree      verdict = iota
	refused            // PostgreSQL answers, we say that we do not
	noAnswer           // both refuse
	shortcut           // one saw a null before it came to the error that the other saw
	otherError         // of several errors in it, which one comes first is the engine's
	differ
)

// judge compares the answers to a generated query. A refusal is 0A000, or 42883 of a
// function or an operator that we do not have.
func judge(theirs, ours answer) (verdict, string) {
	code := ""
	switch {
	case ours.err != nil:
		code = string(ours.err.Code)
	case ours.engineErr != nil:
		code = "XX000"
		if e := planner.EngineError(ours.engineErr); e != nil {
			code = string(e.Code)
		}
	}
	why := ""
	if code != "" {
		why = fmt.Sprint(ours.err)
		if ours.err == nil {
			why = fmt.Sprint(ours.engineErr)
		}
	}
	data := strings.HasPrefix(code, "22") || code == "2201E" || code == "2201F"
	if theirs.engineErr != nil && code == "" && onlyNulls(ours.rows) || data && theirs.engineErr == nil && onlyNulls(theirs.rows) {
		return shortcut, ""
	}
	if theirs.engineErr != nil {
		want := ""
		if e, ok := theirs.engineErr.(*pgconn.PgError); ok {
			want = e.Code
		}
		switch code {
		case want:
			return noAnswer, ""
		case "0A000", "42883":
			return noAnswer, ""
		case "22000", "22003", "22007", "22008", "22012", "22023", "22P02", "2201F":
			if strings.HasPrefix(want, "22") || want == "0A000" {
				return otherError, fmt.Sprintf("  postgres: %v\n  ours: %s %s", theirs.engineErr, code, why)
			}
		case "":
			return differ, fmt.Sprintf("  postgres: %v\n  ours: %q", theirs.engineErr, ours.rows)
		}
		return differ, fmt.Sprintf("  postgres: %v\n  ours: %s %s", theirs.engineErr, code, why)
	}
	switch {
	case code == "0A000" || code == "42883":
		return refused, why
	case code != "":
		return differ, fmt.Sprintf("  postgres: %q\n  ours: %s %s", theirs.rows, code, why)
	case !sameTypes(theirs, ours):
		return differ, fmt.Sprintf("  types: postgres %s, ours %s", theirs.types, ours.types)
	case theirs.rows != ours.rows:
		return differ, fmt.Sprintf("  postgres: %q\n      ours: %q", theirs.rows, ours.rows)
	}
	return agree, ""
}

// sameTypes compares the types of the columns. Modifiers of what may be one of several values
// do not count: PostgreSQL leaves out what a constant decides.
func sameTypes(theirs, ours answer) bool {
	if theirs.types == ours.types {
		return true
	}
	choice := strings.Contains(ours.sql, "coalesce(") || strings.Contains(ours.sql, "CASE")
	return choice && modifiers.ReplaceAllString(theirs.types, "") == modifiers.ReplaceAllString(ours.types, "")
}

var modifiers = regexp.MustCompile(`\([0-9]+\)`)

// mayStop finds what lets an engine leave a part of a query unevaluated. PostgreSQL computes
// constant parts in advance, and then raises their errors.
var mayStop = regexp.MustCompile(`NULL|CASE|coalesce\(| AND | OR |ORDER BY .*::`)

// onlyNulls reports whether an answer has no value. An engine may stop at the first null
// argument of an expression, or go on to one that is an error.
func onlyNulls(rows string) bool { return rows != "" && strings.Trim(rows, "∅|\n") == "" }

// TestGenerated runs generated queries here and in a real PostgreSQL: what both answer
// must be equal, and what fails there must fail here with the same SQLSTATE, or be
// refused. PGSQL_QUERIES is how many are drawn, PGSQL_SEED of which seed; with
// PGSQL_REFUSED set the reasons of refusals are counted, and with PGSQL_ONLY set only
// templates that contain it are drawn; PGSQL_ZONE is the session's time zone.
func TestGenerated(t *testing.T) {
	count, seed := 5000, uint64(1)
	if v := os.Getenv("PGSQL_QUERIES"); v != "" {
		count, _ = strconv.Atoi(v)
	}
	if v := os.Getenv("PGSQL_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	if v := os.Getenv("PGSQL_ZONE"); v != "" {
		testZone = v
		t.Cleanup(func() { testZone = "UTC" })
	}
	server := pgtest.Start(t)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.CreateDatabase(t, "TEMPLATE template0", "LC_CTYPE 'C.UTF-8'"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	loadPostgres(t, conn)
	testDatabase = conn.Config().Database
	pool := openEngine(t)
	inline := testArrow(t)
	d := newDraw(readGrammar(t), seed)
	if only := os.Getenv("PGSQL_ONLY"); only != "" {
		d.restrict(only)
	}
	run(t, conn, pool, inline, d, count)
}

func run(t *testing.T, conn *pgx.Conn, pool *duckdb.Pool, inline []byte, d *draw, count int) {
	t.Helper()
	var tally [differ + 1]int
	reasons := map[string]int{}
	began := time.Now()
	for range count {
		sql := d.query()
		theirs := runPostgres(t, conn, sql)
		v, what := judge(theirs, runOurs(t, pool, inline, sql))
		if v == differ && theirs.engineErr != nil && mayStop.MatchString(sql) && runPostgres(t, conn, "EXPLAIN "+sql).engineErr != nil {
			v = shortcut
		}
		tally[v]++
		if v == refused {
			reasons[strings.SplitN(what, "\n", 2)[0]]++
		}
		if v == differ {
			t.Errorf("%s\n%s", sql, what)
		}
	}
	t.Logf("%d queries: %d equal, %d refused, %d answered by neither, %d null or error, %d another error, %d differ; %.1f ms each", count, tally[agree], tally[refused],
		tally[noAnswer], tally[shortcut], tally[otherError], tally[differ], time.Since(began).Seconds()*1000/float64(count))
	if few := max(count/200, 5); tally[otherError] > few {
		t.Errorf("%d queries with another error than PostgreSQL's, more than %d", tally[otherError], few)
	}
	if os.Getenv("PGSQL_REFUSED") == "" {
		return
	}
	var list []string
	for why, n := range reasons {
		list = append(list, fmt.Sprintf("%4d %s", n, why))
	}
	slices.Sort(list)
	slices.Reverse(list)
	t.Log(strings.Join(list[:min(len(list), 80)], "\n"))
}
