package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// ownWriter commits transactions of two rows, one in each of two tables of our own, and
// moves a counter, until its connection is gone.
type ownWriter struct {
	dsn    string
	number int
	// told are the transactions of which it was told that they are committed; doubtful those
	// whose COMMIT was sent and not answered.
	told, doubtful map[int]bool
	next           int
}

func (w *ownWriter) run(ctx context.Context, r *rand.Rand) {
	conn, err := pgx.Connect(ctx, w.dsn)
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		w.next++
		id := w.number*1_000_000 + w.next
		if err := w.transaction(ctx, conn, id, r.IntN(8) == 0); err != nil {
			if conn.IsClosed() {
				return
			}
			_, _ = conn.Exec(ctx, "ROLLBACK")
		}
	}
}

var errGivenUp = errors.New("rolled back")

// transaction writes the rows of id, in one of several ways, and commits unless giveUp.
func (w *ownWriter) transaction(ctx context.Context, conn *pgx.Conn, id int, giveUp bool) error {
	for _, sql := range []string{
		"BEGIN",
		fmt.Sprintf("INSERT INTO pair_a VALUES (%d, 'first')", id),
		"SAVEPOINT s",
		fmt.Sprintf("INSERT INTO pair_b VALUES (%d, 'lost')", id),
		"ROLLBACK TO s",
		fmt.Sprintf("INSERT INTO pair_b VALUES (%d, 'second')", id),
		fmt.Sprintf("UPDATE pair_a SET v = 'done' WHERE id = %d", id),
		fmt.Sprintf("UPDATE counter SET n = n + 1 WHERE writer = %d", w.number),
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if giveUp {
		return errGivenUp
	}
	_, err := conn.Exec(ctx, "COMMIT")
	var told *pgconn.PgError
	switch {
	case err == nil:
		w.told[id] = true
	case !errors.As(err, &told) || told.Code == "08007":
		w.doubtful[id] = true
	}
	return err
}

// TestOwnTablesKills: sessions change tables of our own while the server is killed; after
// each death what was told of as committed is there, once and whole, and nothing that was
// rolled back.
func TestOwnTablesKills(t *testing.T) {
	t.Parallel()
	seed := uint64(number("SKIPPRD_SEED", 1))
	r := rand.New(rand.NewPCG(seed, 23))
	s := harness.New(t, t.TempDir(), "--commit-interval=300ms")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE TABLE pair_a (id int PRIMARY KEY, v text)", "CREATE TABLE pair_b (id int, v text)",
		"CREATE TABLE counter (writer int PRIMARY KEY, n int NOT NULL)")
	const writers = 3
	var all []*ownWriter
	for i := range writers {
		harness.Exec(t, s.DSN, fmt.Sprintf("INSERT INTO counter VALUES (%d, 0)", i))
		all = append(all, &ownWriter{dsn: s.DSN, number: i, told: map[int]bool{}, doubtful: map[int]bool{}})
	}
	rounds := number("SKIPPRD_KILL_ROUNDS", 6)
	points := []string{"AfterBody", "AfterPublish", "BeforeAck", ""}
	for round := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		before := 0
		for _, w := range all {
			before += len(w.told) + len(w.doubtful)
			wg.Go(func() { w.run(ctx, rand.New(rand.NewPCG(seed, uint64(round*writers+w.number)))) })
		}
		// Some of this round's, so that a round is not for nothing however slow the machine is.
		grown := harness.Until(harness.Patience, func() bool {
			n, err := harness.Text(s.DSN, "SELECT sum(n) > "+fmt.Sprint(before/2)+" FROM counter")
			return err == nil && n == "t" || s.Dead()
		})
		if !grown {
			t.Error("no transaction committed")
		}
		s.WaitFailpoint(time.Duration(r.IntN(300)) * time.Millisecond)
		s.Kill()
		cancel()
		wg.Wait()
		if point := points[round%len(points)]; point != "" && round+1 < rounds {
			s.Setenv(fmt.Sprintf("SKIPPRD_FAILPOINT=%s:%d", point, 20+r.IntN(60)))
		}
		s.Launch()
		s.Unsetenv()
		s.WaitReady(harness.Patience)
		checkOwn(t, s.DSN, all)
		if t.Failed() {
			return
		}
	}
	harness.Exec(t, s.DSN, "ALTER PIPELINE skippr_own COMPACT")
	checkOwn(t, s.DSN, all)
	told := 0
	for _, w := range all {
		told += len(w.told)
	}
	t.Logf("%d transactions, %d deaths", told, rounds)
}

// checkOwn compares the tables with what the writers were told.
func checkOwn(t *testing.T, dsn string, all []*ownWriter) {
	t.Helper()
	conn := harness.Connect(t, dsn)
	a, b := ownRows(t, conn, "pair_a", "done"), ownRows(t, conn, "pair_b", "second")
	for id := range a {
		if b[id] != a[id] {
			t.Errorf("transaction %d is %d times in one table, %d times in the other", id, a[id], b[id])
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d transactions in one table, %d in the other", len(a), len(b))
	}
	for _, w := range all {
		committed := 0
		for id := range w.told {
			if a[id] != 1 {
				t.Errorf("transaction %d was told of as committed, and is there %d times", id, a[id])
			}
		}
		for id := range a {
			if id/1_000_000 == w.number {
				committed++
				if !w.told[id] && !w.doubtful[id] {
					t.Errorf("transaction %d is there and was not committed", id)
				}
			}
		}
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT n FROM counter WHERE writer = $1", w.number).Scan(&n); err != nil || n != committed {
			t.Errorf("counter of writer %d is %d after %d transactions: %v", w.number, n, committed, err)
		}
	}
}

func ownRows(t *testing.T, conn *pgx.Conn, table, value string) map[int]int {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT id, v FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[int]int{}
	for rows.Next() {
		var id int
		var v string
		if err := rows.Scan(&id, &v); err != nil {
			t.Fatal(err)
		}
		if v != value {
			t.Errorf("%s has %d, %s", table, id, v)
		}
		out[id]++
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return out
}

// TestOwnTablesCopy: COPY loads all or nothing, whatever becomes of its client; two
// sessions that write one table take turns, and a circle is told.
func TestOwnTablesCopy(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE TABLE goods (id int PRIMARY KEY, name text, price numeric(10,2) DEFAULT 9.5)", "CREATE TABLE other (id int)")
	conn := harness.Connect(t, s.DSN)
	copyIn := func(sql string, data io.Reader) (int64, error) {
		tag, err := conn.PgConn().CopyFrom(t.Context(), data, sql)
		return tag.RowsAffected(), err
	}
	want := func(rows string) {
		t.Helper()
		if got, err := harness.Text(s.DSN, "SELECT count(*) FROM goods"); err != nil || got != rows {
			t.Errorf("%s rows, want %s: %v", got, rows, err)
		}
	}
	var big strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&big, "%d\tthing %d\n", i, i)
	}
	if n, err := copyIn("COPY goods (id, name) FROM STDIN", strings.NewReader(big.String())); n != 40_000 || err != nil {
		t.Errorf("copied %d: %v", n, err)
	}
	want("40000")
	// The key of the very last row is taken.
	var clash strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&clash, "%d\tx\n", 40_000+i)
	}
	clash.WriteString("7\tx\n")
	var told *pgconn.PgError
	if _, err := copyIn("COPY goods (id, name) FROM STDIN", strings.NewReader(clash.String())); !errors.As(err, &told) || told.Code != "23505" {
		t.Errorf("a key that is taken: %v", err)
	}
	want("40000")
	rows := [][]any{{50_000, "binary", 1.25}, {50_001, nil, nil}}
	if n, err := conn.CopyFrom(t.Context(), pgx.Identifier{"goods"}, []string{"id", "name", "price"}, pgx.CopyFromRows(rows)); n != 2 || err != nil {
		t.Errorf("binary: %d, %v", n, err)
	}
	want("40002")
	if _, err := copyIn("COPY goods (id, name) FROM STDIN", &failing{data: strings.NewReader("60000\tx\n")}); err == nil {
		t.Error("a copy that its client gives up succeeds")
	}
	want("40002")
	gone := harness.Connect(t, s.DSN)
	begun, send := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = gone.PgConn().CopyFrom(context.Background(), begun, "COPY goods (id, name) FROM STDIN")
	}()
	_, _ = send.Write([]byte(big.String()[:1000]))
	_ = gone.PgConn().Conn().Close()
	_ = send.CloseWithError(io.ErrUnexpectedEOF)
	<-ended
	harness.Exec(t, s.DSN, "INSERT INTO goods (id) VALUES (70000)") // the table is free again
	want("40003")

	a, b := harness.Connect(t, s.DSN), harness.Connect(t, s.DSN)
	exec := func(c *pgx.Conn, sql string) error {
		_, err := c.Exec(t.Context(), sql)
		return err
	}
	for _, err := range []error{
		exec(a, "BEGIN; UPDATE goods SET price = price + 1 WHERE id = 1"), exec(b, "BEGIN; INSERT INTO other VALUES (1)"),
		exec(b, "SAVEPOINT s; SET LOCAL lock_timeout = '50ms'"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := exec(b, "DELETE FROM goods WHERE id = 1"); !errors.As(err, &told) || told.Code != "55P03" {
		t.Errorf("a lock that another has: %v", err)
	}
	if err := exec(b, "ROLLBACK TO s"); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() { waits <- exec(b, "UPDATE goods SET price = price + 1 WHERE id = 1") }()
	if !harness.Until(harness.Patience, func() bool {
		n, err := harness.Text(s.DSN, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'UPDATE goods%'")
		return err == nil && n == "1"
	}) {
		t.Error("the second writer is not seen")
	}
	err := exec(a, "INSERT INTO other VALUES (2)")
	deadlock := errors.As(err, &told) && told.Code == "40P01"
	if !deadlock { // the other one may not have waited yet, and is told then
		if err = <-waits; !errors.As(err, &told) || told.Code != "40P01" {
			t.Errorf("a circle: %v", err)
		}
		return
	}
	if err := exec(a, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-waits, exec(b, "COMMIT")); err != nil {
		t.Error(err)
	}
	if got, err := harness.Text(s.DSN, "SELECT price FROM goods WHERE id = 1"); got != "10.50" {
		t.Errorf("price is %s: %v", got, err)
	}
}

// TestOwnTablesRepeatable: in a REPEATABLE READ transaction nobody changes a table that
// others have changed since its moment, in whatever way.
func TestOwnTablesRepeatable(t *testing.T) {
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE TABLE still (id int)")
	for _, other := range []string{
		"UPDATE moves SET v = v + 1 WHERE id = 1", "DELETE FROM moves WHERE id = 1", "TRUNCATE moves",
		"DROP TABLE moves; CREATE TABLE moves (id int PRIMARY KEY, v int)",
	} {
		harness.Exec(t, s.DSN, "DROP TABLE IF EXISTS moves", "CREATE TABLE moves (id int PRIMARY KEY, v int)",
			"INSERT INTO moves VALUES (1, 1), (2, 2)")
		conn := harness.Connect(t, s.DSN)
		if _, err := conn.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM moves"); err != nil {
			t.Fatal(err)
		}
		harness.Exec(t, s.DSN, other)
		if _, err := conn.Exec(t.Context(), "INSERT INTO still VALUES (1)"); err != nil {
			t.Errorf("after %s, a table that did not change: %v", other, err)
		}
		var told *pgconn.PgError
		if _, err := conn.Exec(t.Context(), "UPDATE moves SET v = 9 WHERE id = 2"); !errors.As(err, &told) || told.Code != "40001" {
			t.Errorf("after %s: %v", other, err)
		}
		if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
}

// failing is data that ends with an error of the client's.
type failing struct{ data io.Reader }

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.data.Read(p)
	if err == io.EOF {
		err = errors.New("the client gives up")
	}
	return n, err
}

// TestOwnTablesFullLog: a transaction for which the log has no room fails alone.
func TestOwnTablesFullLog(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir(), "--wal-quota-bytes=16MiB", "--wal-segment-bytes=4MiB", "--buffer-threshold-bytes=1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE TABLE heap (id int, body text)")
	conn := harness.Connect(t, s.DSN)
	_, err := conn.Exec(t.Context(), "INSERT INTO heap SELECT i, repeat(md5(i::text), 1000) FROM generate_series(1, 2000) i")
	var told *pgconn.PgError
	if !errors.As(err, &told) || told.Code != "53100" {
		t.Errorf("64 MB into a log of 16: %v", err)
	}
	harness.Exec(t, s.DSN, "INSERT INTO heap VALUES (1, 'x')")
	if got, err := harness.Text(s.DSN, "SELECT count(*) FROM heap"); got != "1" {
		t.Errorf("%s rows: %v", got, err)
	}
}
