package e2e

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestSyncSeesEverything: after SYNC PIPELINE every change that the source committed
// before it is visible, whatever compaction and reclaim do meanwhile.
func TestSyncSeesEverything(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE n (id bigint PRIMARY KEY, v int)", "CREATE TABLE m (id bigint PRIMARY KEY, v int)")
	s := harness.New(t, t.TempDir(), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE sync FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	src, ours := harness.Connect(t, source), harness.Connect(t, s.DSN)
	for round := range number("SKIPPRD_SYNC_ROUNDS", 20) {
		for i := range 20 {
			id := round*1000 + i
			sql := fmt.Sprintf("INSERT INTO n SELECT %d * 10 + g, %d FROM generate_series(0, 9) g; INSERT INTO m VALUES (%d, 1); UPDATE n SET v = v + 1 WHERE id = %d", id, i, id, id*7%100000)
			if _, err := src.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ours.PgConn().Exec(t.Context(), "SYNC PIPELINE sync").ReadAll(); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"n", "m"} {
			var want, got string
			if err := src.QueryRow(t.Context(), "SELECT count(*) || ' ' || coalesce(sum(v), 0) FROM "+table).Scan(&want); err != nil {
				t.Fatal(err)
			}
			if err := ours.QueryRow(t.Context(), "SELECT count(*) || ' ' || coalesce(sum(v), 0) FROM sync."+table).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Fatalf("round %d: %s has %s, the source %s", round, table, got, want)
			}
		}
	}
	s.Stop()
}
