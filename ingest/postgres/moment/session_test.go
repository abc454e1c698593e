package moment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/ingest/verify"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/env"
)

// rig is a database with a session that reads one moment of it.
type rig struct {
	*Session
	t   *testing.T
	sql *pgx.Conn
}

func newRig(t *testing.T, cfg Config, statements ...string) *rig {
	t.Helper()
	server := pgtest.Start(t)
	dsn := server.CreateDatabase(t)
	server.Exec(t, dsn, statements...)
	sql, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sql.Close(context.Background()) })
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"replication": "database", "search_path": "pg_catalog", "DateStyle": "ISO, MDY", "TimeZone": "UTC", "bytea_output": "hex",
	} {
		config.RuntimeParams[name] = value
	}
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	clock, _ := env.System()
	cfg.Slot = "moment_of_a_test"
	if cfg.Version == 0 {
		cfg.Version = 150000
	}
	s, err := Open(t.Context(), conn, cfg, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &rig{Session: s, t: t, sql: sql}
}

func (r *rig) exec(sql string) {
	r.t.Helper()
	if _, err := r.sql.PgConn().Exec(r.t.Context(), sql).ReadAll(); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// table describes a table of schema public.
func (r *rig) table(name string, key []int, columns ...string) *verify.Table {
	r.t.Helper()
	v := &verify.Table{Name: "p." + name, Schema: "public", SourceName: name, Columns: columns, Key: key, IntegerKey: len(key) > 0 && columns[key[0]] == "id"}
	if err := r.sql.QueryRow(r.t.Context(), "SELECT $1::regclass::oid", "public."+name).Scan(&v.OID); err != nil {
		r.t.Fatal(err)
	}
	return v
}

// mirror is our side with the rows that a query gives as text.
type mirror struct{ rows [][]*string }

// Rows implements verify.Here.
func (m mirror) Rows(_ context.Context, _ *verify.Table, emit func(verify.Cells) error) error {
	for _, r := range m.rows {
		cells := make(verify.Cells, len(r))
		for i, c := range r {
			if c != nil {
				cells[i] = []byte(*c)
			}
		}
		if err := emit(cells); err != nil {
			return err
		}
	}
	return nil
}

// copyOf reads rows by the simple protocol, as text.
func (r *rig) copyOf(sql string) mirror {
	r.t.Helper()
	results, err := r.sql.PgConn().Exec(r.t.Context(), sql).ReadAll()
	if err != nil {
		r.t.Fatal(err)
	}
	var m mirror
	for _, row := range results[0].Rows {
		out := make([]*string, len(row))
		for i, c := range row {
			if c != nil {
				text := string(c)
				out[i] = &text
			}
		}
		m.rows = append(m.rows, out)
	}
	return m
}

// compare runs a comparison and renders its lines but for ranges.
func (r *rig) compare(t *verify.Table, here mirror) string {
	r.t.Helper()
	lines, err := verify.Run(r.t.Context(), []*verify.Table{t}, r.Session, here, verify.Options{Ranges: 8}, func(string, float64) {})
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, l := range lines {
		text := fmt.Sprintf("%s %s %s", l.State, l.Key, l.Detail)
		if l.Counted() {
			text = fmt.Sprintf("%s %d/%d", l.State, l.RowsSource, l.RowsHere)
		}
		out = append(out, strings.TrimSpace(text))
	}
	return strings.Join(out, "; ")
}

// TestMoment: a session sees what was there at its moment and nothing since, whatever the
// kind of the table, and both sides work out the same hashes.
func TestMoment(t *testing.T) {
	r := newRig(t, Config{Pages: 1},
		`CREATE TABLE odd (id int PRIMARY KEY, t text, c char(5), b bytea, a text[], n numeric, ts timestamptz, bo bool, r int4range, j json)`,
		`INSERT INTO odd SELECT i, E'q"\\,() \t\n' || i, 'x', decode('00ff', 'hex'), ARRAY['a b', NULL, ''], 'NaN', 'infinity', i % 2 = 0, '[1,5)', '{"a": 1}' FROM generate_series(-1000, 1000) i`,
		`INSERT INTO odd VALUES (5000, '', '', '', '{}', NULL, NULL, NULL, 'empty', NULL)`,
		`CREATE TABLE words (w text COLLATE "C", k int, v text, PRIMARY KEY (w, k))`,
		`INSERT INTO words SELECT chr(97 + i % 7) || chr(228 + i % 5) || ' "' || i, i, 'v' FROM generate_series(1, 2000) i`,
		`CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)`,
		`CREATE TABLE parted_a PARTITION OF parted FOR VALUES FROM (0) TO (10)`, `CREATE TABLE parted_b PARTITION OF parted DEFAULT`,
		`INSERT INTO parted SELECT i, 'v' FROM generate_series(0, 19) i`,
		`CREATE TABLE equals (a int, b text)`, `INSERT INTO equals SELECT i % 3, NULL FROM generate_series(1, 10) i`,
	)
	odd := r.copyOf("SELECT * FROM public.odd")
	words := r.copyOf("SELECT w, k, v FROM public.words ORDER BY k DESC")
	parted := r.copyOf("SELECT * FROM public.parted")
	equals := r.copyOf("SELECT * FROM public.equals ORDER BY 1")
	if n := r.copyOf("SELECT slot_name FROM pg_replication_slots WHERE slot_name = 'moment_of_a_test'").rows; len(n) != 0 {
		t.Error("the slot of the moment stays")
	}
	r.exec(`UPDATE odd SET t = 'later'; DELETE FROM words; INSERT INTO parted VALUES (100, 'later'); DELETE FROM parted WHERE id = 3; INSERT INTO equals VALUES (9, '9')`)

	oddTable := r.table("odd", []int{0}, "id", "t", "c", "b", "a", "n", "ts", "bo", "r", "j")
	for _, c := range []struct {
		table *verify.Table
		here  mirror
		want  string
	}{
		{oddTable, odd, "equal 2002/2002"},
		{r.table("words", []int{0, 1}, "w", "k", "v"), words, "equal 2000/2000"},
		{r.table("parted", []int{0}, "id", "v"), parted, "equal 20/20"},
		{r.table("equals", nil, "a", "b"), equals, "equal 10/10"},
		{r.table("equals", nil, "a", "b"), mirror{equals.rows[1:]}, "differs 10/9; missing here md5 " + verify.HashText([]byte("(0,)")).String()},
		{r.table("parted", []int{0}, "id", "v"), mirror{append(slices.Clone(parted.rows[:19]), parted.rows[0])}, "differs 7/8; extra here 0; equal 7/7; differs 6/5; missing here 19"},
	} {
		if got := r.compare(c.table, c.here); got != c.want {
			t.Errorf("%s: %s, not %s", c.table.Name, got, c.want)
		}
	}
	later := "later"
	odd.rows[7][1] = &later
	if got := r.compare(oddTable, odd); !strings.Contains(got, "different -993 t") || strings.Count(got, "differs") != 1 {
		t.Errorf("one cell: %s", got)
	}
}

// TestMomentSkips: what an old snapshot cannot show is a reason for that table, and the
// others are read.
func TestMomentSkips(t *testing.T) {
	r := newRig(t, Config{Version: 130000},
		"CREATE TABLE truncated (id int PRIMARY KEY)", "CREATE TABLE rewritten (id int PRIMARY KEY)", "CREATE TABLE dropped (id int PRIMARY KEY)",
		"CREATE TABLE renamed (id int PRIMARY KEY, v int)", "CREATE TABLE locked (id int PRIMARY KEY)", "CREATE TABLE fine (id int PRIMARY KEY)",
		"INSERT INTO fine VALUES (1)", "INSERT INTO truncated VALUES (1)", "INSERT INTO rewritten VALUES (1)",
	)
	tables := map[string]*verify.Table{}
	for _, name := range []string{"truncated", "rewritten", "dropped", "renamed", "locked", "fine"} {
		tables[name] = r.table(name, []int{0}, "id")
	}
	tables["renamed"].Columns = []string{"id", "v"}
	r.exec("TRUNCATE truncated; ALTER TABLE rewritten ALTER id TYPE bigint; DROP TABLE dropped; ALTER TABLE renamed RENAME v TO w")
	r.exec("CREATE TABLE made (id int PRIMARY KEY); BEGIN; LOCK TABLE locked")
	tables["made"] = r.table("made", []int{0}, "id")
	for name, want := range map[string]string{
		"truncated": "truncated or rewritten", "rewritten": "truncated or rewritten", "dropped": "dropped", "renamed": "a column was dropped or renamed",
		"locked": "locked", "made": "no such table", "fine": "equal 1/1",
	} {
		if got := r.compare(tables[name], mirror{[][]*string{{ptr("1")}}}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	r.exec("ROLLBACK")
	// Cancelled in the middle, the session is over.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Open(ctx, tables["fine"]); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: %v", err)
	}
}

// TestMomentLetsGo: a comparison that takes its time keeps nobody from changing the table for longer
// than a piece of it takes to read. What then cannot be read any more is found out.
func TestMomentLetsGo(t *testing.T) {
	for change, want := range map[string]string{
		"ALTER TABLE large ADD w int DEFAULT 1":              "equal 3000/3000",
		"ALTER TABLE large ALTER v TYPE text USING upper(v)": "skipped  it was truncated or rewritten at the source after the position: run it again",
		"TRUNCATE large":                     "skipped  it was truncated or rewritten at the source after the position: run it again",
		"ALTER TABLE large RENAME TO larger": "skipped  it was dropped or renamed at the source",
		"ALTER TABLE large RENAME v TO w":    "skipped  a column was dropped or renamed at the source, and the pipeline has not got there: run it again",
		"DROP TABLE large":                   "skipped  it was dropped or renamed at the source",
		"ALTER TABLE large RENAME TO larger; CREATE TABLE large (id int PRIMARY KEY, v text)": "skipped  it was renamed at the source: run it again",
	} {
		r := newRig(t, Config{Pages: 1},
			"CREATE TABLE large (id int PRIMARY KEY, v text)", "INSERT INTO large SELECT i, 'v' FROM generate_series(1, 3000) i")
		here := r.copyOf("SELECT * FROM public.large")
		r.exec("SET search_path = public; SET lock_timeout = '2s'")
		changed := false
		lines, err := verify.Run(t.Context(), []*verify.Table{r.table("large", []int{0}, "id", "v")}, r.Session, here, verify.Options{Ranges: 8},
			func(string, float64) {
				if !changed {
					changed = true
					r.exec(change)
				}
			})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, l := range lines {
			got += fmt.Sprintf("%s  %s", l.State, l.Detail)
			if l.Counted() {
				got = fmt.Sprintf("%s %d/%d", l.State, l.RowsSource, l.RowsHere)
			}
		}
		if !changed || got != want {
			t.Errorf("%s:\n got %s\nwant %s", change, got, want)
		}
	}
}

func ptr(s string) *string { return &s }

// TestMomentFilter: a publication's row filter holds.
func TestMomentFilter(t *testing.T) {
	r := newRig(t, Config{Publications: []string{"it's"}},
		"CREATE TABLE few (id int PRIMARY KEY, v text)", "INSERT INTO few SELECT i, 'v' FROM generate_series(1, 10) i",
		`CREATE PUBLICATION "it's" FOR TABLE few WHERE (id > 7 AND v <> 'x')`)
	if got := r.compare(r.table("few", []int{0}, "id", "v"), r.copyOf("SELECT * FROM few WHERE id > 7")); got != "equal 3/3" {
		t.Error(got)
	}
}
