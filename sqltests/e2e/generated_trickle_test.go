package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestGeneratedTrickle: rows whose computed values cannot be taken in come again and again
// while a table without a key is copied. Each is set aside, what comes with it arrives, and
// the copy, which would begin anew with each session, goes on to its end.
func TestGeneratedTrickle(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	const moment = "d timestamp GENERATED ALWAYS AS (public.moment(at)) STORED"
	harness.Exec(t, source, "CREATE FUNCTION moment(t text) RETURNS timestamp IMMUTABLE LANGUAGE sql AS $$ SELECT t::timestamp $$",
		"CREATE TABLE plain (id int, at text, "+moment+")", "ALTER TABLE plain REPLICA IDENTITY FULL",
		"CREATE TABLE t (id int PRIMARY KEY, at text, "+moment+")",
		"INSERT INTO plain SELECT i, CASE WHEN i % 400 = 0 THEN 'infinity' ELSE '2026-01-01' END FROM generate_series(1, 2000) i")
	s := harness.New(t, dataDir(t))
	s.Start()
	l := &letters{t: t, server: s, source: source}
	l.ours("CREATE PIPELINE shop FROM POSTGRES " + quoted(source) +
		" FOR ALL TABLES WITH (backfill_rows_per_second = 1, backfill_chunk_pages = 1)")
	await := func(sql, want string) {
		t.Helper()
		got := ""
		if !harness.Until(5*time.Minute, func() bool {
			var err error
			got, err = harness.Text(s.DSN, sql)
			return err == nil && got == want
		}) {
			t.Fatalf("%s: %s, not %s\n%s", sql, got, want, s.Log(60))
		}
	}
	const state = "SELECT state FROM pg_stat_pipeline_table WHERE table_name = 'plain'"
	const began = "SELECT backfill_started_at::text FROM pg_stat_pipeline_table WHERE table_name = 'plain'"
	await(state, "backfill")
	first, err := harness.Text(s.DSN, began)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 12
	for i := range rounds {
		l.at(fmt.Sprintf("BEGIN; INSERT INTO plain VALUES (%d, 'infinity'), (%d, '2026-01-02'); INSERT INTO t VALUES (%[1]d, 'infinity'), (%[2]d, '2026-01-03'); COMMIT",
			5000+i, 6000+i))
		await("SELECT count(*)::text FROM skippr.dead_letters WHERE state = 'open' AND table_name = 't'", fmt.Sprint(i+1))
	}
	l.at("DELETE FROM plain WHERE id IN (400, 800, 5000, 6000, 7)", "UPDATE plain SET at = '2026-02-02' WHERE id IN (1200, 5001)",
		"INSERT INTO t VALUES (7000, 'infinity')", "DELETE FROM t WHERE id = 5001", "UPDATE t SET at = '2026-03-03' WHERE id = 5002")
	await("SELECT count(*)::text FROM skippr.dead_letters WHERE state = 'open' AND table_name = 't'", fmt.Sprint(rounds-1))
	l.want(state, "backfill")
	l.ours("ALTER PIPELINE shop SET (backfill_rows_per_second = 0)")
	await(state, "ready")
	l.drain()
	l.want(began, first)
	for _, table := range []string{"plain", "t"} {
		query := "SELECT id, at, d FROM %s WHERE at <> 'infinity' ORDER BY id, at"
		if rows, err := harness.Compare(t.Context(), source, fmt.Sprintf(query, "public."+table), s.DSN, fmt.Sprintf(query, "shop."+table)); err != nil {
			t.Errorf("%s: row %d: %v", table, rows, err)
		}
		refused, err := harness.Text(source, "SELECT count(*) FROM "+table+" WHERE at = 'infinity'")
		if err != nil {
			t.Fatal(err)
		}
		l.want("SELECT count(*) FROM skippr.dead_letters WHERE state = 'open' AND table_name = '"+table+"'", refused)
	}
}
