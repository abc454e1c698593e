package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// notices runs a statement and returns what was said meanwhile.
func notices(t *testing.T, dsn, sql string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { said = append(said, n.Message) }
	c, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(said, "\n")
}

// becomes waits until a query gives what is wanted.
func becomes(t *testing.T, dsn, sql, want string) {
	t.Helper()
	var got string
	var err error
	if !harness.Until(harness.Patience, func() bool { got, err = harness.Text(dsn, sql); return err == nil && got == want }) {
		t.Fatalf("%s: %q, %v, want %q", sql, got, err, want)
	}
}

// TestSlotWhileOthersWrite: CREATE PIPELINE beside a transaction that is long open says
// what it waits for and returns; DROP ends that and leaves no slot, not even later. A
// paused pipeline shows what the source keeps for it.
func TestSlotWhileOthersWrite(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE n (id bigint PRIMARY KEY)", "CREATE TABLE noise (v text)")
	s := harness.New(t, t.TempDir())
	s.Start()
	defer s.Stop()
	open := harness.Connect(t, source)
	long := func(sql string) {
		t.Helper()
		if _, err := open.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	const slots = "SELECT count(*)::text FROM pg_replication_slots WHERE database = current_database()"
	create := "CREATE PIPELINE held FROM POSTGRES " + quoted(source) + " FOR TABLE public.n"

	long("BEGIN")
	long("INSERT INTO n VALUES (1)")
	said := notices(t, s.DSN, create)
	if !strings.Contains(said, "starts later by itself") || !strings.Contains(said, "before it makes the slot") {
		t.Errorf("said %q", said)
	}
	// It waits for others of the server, too, one after the other.
	becomes(t, s.DSN, fmt.Sprintf("SELECT (reason LIKE '%%before it makes the slot%%process %d of postgres%%')::text FROM pg_stat_pipeline", open.PgConn().PID()), "true")
	harness.Exec(t, s.DSN, "DROP PIPELINE held")
	becomes(t, source, slots, "0")
	long("COMMIT")
	becomes(t, source, "SELECT count(*)::text FROM pg_stat_activity WHERE application_name = 'skipprd' AND datname = current_database()", "0")
	becomes(t, source, slots, "0")

	long("BEGIN")
	long("INSERT INTO n VALUES (2)")
	notices(t, s.DSN, create)
	long("COMMIT")
	becomes(t, s.DSN, "SELECT state FROM pg_stat_pipeline", "running")
	becomes(t, s.DSN, "SELECT count(*)::text FROM held.n", "2")

	becomes(t, s.DSN, "SELECT (slot_state IS NOT NULL)::text FROM pg_stat_pipeline", "true") // it has looked at the slot
	if said := notices(t, s.DSN, "ALTER PIPELINE held PAUSE"); !strings.Contains(said, "MB are kept now") {
		t.Errorf("said %q", said)
	}
	harness.Exec(t, source, "INSERT INTO noise SELECT repeat(md5(g::text), 60) FROM generate_series(1, 100000) g")
	becomes(t, s.DSN, "SELECT (retained_bytes > 8000000 AND slot_state IS NOT NULL)::text FROM pg_stat_pipeline", "true")
	harness.Exec(t, s.DSN, "DROP PIPELINE held")
	becomes(t, source, slots, "0")
}

// TestPasswordRotates: a password changes at the source, then in the file that the
// secret names. The pipeline says meanwhile what is wrong, goes on by itself, and the
// passwords are nowhere to be read.
func TestPasswordRotates(t *testing.T) {
	t.Parallel()
	const first, second = "first-pass-1f3a", "second-pass-9c7e"
	p := pgtest.StartPrivate(t)
	source := p.CreateDatabase(t)
	at, err := pgx.ParseConfig(source)
	if err != nil {
		t.Fatal(err)
	}
	p.Exec(t, source, "CREATE ROLE rot SUPERUSER LOGIN PASSWORD '"+first+"'", "CREATE TABLE n (id bigint PRIMARY KEY)", "INSERT INTO n VALUES (1)")
	p.Write(t, "pg_hba.conf", []byte("local all all trust\nhost all postgres 127.0.0.1/32 trust\nhost all rot 127.0.0.1/32 scram-sha-256\n"))
	p.Control(t, "reload")
	file := filepath.Join(t.TempDir(), "pw")
	password := func(word string) {
		if err := os.WriteFile(file, []byte(word+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	password(first)
	dir := t.TempDir()
	s := harness.New(t, dir)
	s.Start()
	defer s.Stop()
	harness.Exec(t, s.DSN, "CREATE SECRET rot_pw AS 'file:"+file+"'",
		fmt.Sprintf("CREATE CONNECTION c TO POSTGRES (HOST '127.0.0.1', PORT %d, DATABASE '%s', USER 'rot', PASSWORD SECRET rot_pw)", at.Port, at.Database),
		"CREATE PIPELINE rot FROM c FOR ALL TABLES", "SYNC PIPELINE rot")
	p.Exec(t, source, "ALTER ROLE rot PASSWORD '"+second+"'", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rot'", "INSERT INTO n VALUES (2)")
	becomes(t, s.DSN, "SELECT (state = 'error' AND reason LIKE '%password authentication failed%')::text FROM pg_stat_pipeline", "true")
	password(second)
	becomes(t, s.DSN, "SELECT count(*)::text FROM rot.n", "2")
	becomes(t, s.DSN, "SELECT state FROM pg_stat_pipeline", "running")

	told := s.Log(10_000)
	for _, view := range []string{"skippr.events", "skippr.connections", "skippr.secrets", "skippr.pipelines", "skippr.ddl", "pg_stat_pipeline"} {
		rows, err := harness.Connect(t, s.DSN).Query(t.Context(), "SELECT * FROM "+view)
		if err != nil {
			t.Fatalf("%s: %v", view, err)
		}
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				t.Fatalf("%s: %v", view, err)
			}
			told += fmt.Sprint(values...)
		}
		if rows.Err() != nil {
			t.Fatalf("%s: %v", view, rows.Err())
		}
	}
	for _, word := range []string{first, second} {
		if strings.Contains(told, word) {
			t.Errorf("%s is told", word)
		}
	}
	harness.Exec(t, s.DSN, "DROP PIPELINE rot")
}
