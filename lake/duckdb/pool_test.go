package duckdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/wal/env"
)

// TestMain makes the test binary its own worker, as the server is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "engine-worker" {
		cfg, err := ReadWorkerConfig(os.Stdin)
		if err == nil {
			cfg.Ready = os.Stdout
			err = ServeWorker(context.Background(), cfg, lineFactory)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// lineEncoder is the tests' row encoder: VARCHAR columns, a line per row.
type lineEncoder struct{}

func lineFactory(Output, []vector.Type) (RowEncoder, error) { return lineEncoder{}, nil }

func (lineEncoder) Header(dst []byte) []byte  { return dst }
func (lineEncoder) Trailer(dst []byte) []byte { return dst }

func (lineEncoder) Chunk(dst []byte, c *vector.Chunk) ([]byte, error) {
	for i := range c.Rows {
		for k := range c.Columns {
			v := &c.Columns[k]
			switch {
			case k > 0:
				dst = append(dst, '|')
			}
			if !v.Valid(i) {
				dst = append(dst, "∅"...)
			} else if v.Type.Kind == vector.String {
				dst = append(dst, v.Bytes(i)...)
			} else {
				return dst, fmt.Errorf("column %d is not text", k)
			}
		}
		dst = append(dst, '\n')
	}
	return dst, nil
}

func newTestPool(t testing.TB, cfg PoolConfig, slices SliceReader) *Pool {
	t.Helper()
	clock, _ := env.System()
	if cfg.Worker.Threads == 0 {
		cfg.Worker.Threads = 2
	}
	p, err := NewPool(cfg, Deps{Clock: clock, Encoder: lineFactory, Slices: slices, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func rowsOutput(n int) Output { return Output{Kind: OutputRows, Columns: make([]OutputColumn, n)} }

// run returns the lines of a query whose columns are made text.
func run(ctx context.Context, p *Pool, plan *Plan) ([]string, error) {
	s, err := p.Query(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var text []byte
	rows := 0
	for {
		f, err := s.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		text = append(text, f.Data...)
		rows += f.Rows
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(text) == 0 {
		lines = nil
	}
	if len(lines) != rows {
		return nil, fmt.Errorf("%d lines in frames of %d rows", len(lines), rows)
	}
	return lines, nil
}

func mustRun(t testing.TB, p *Pool, plan *Plan) []string {
	t.Helper()
	lines, err := run(context.Background(), p, plan)
	if err != nil {
		t.Fatalf("%s: %v", plan.SQL, err)
	}
	return lines
}

func one(sql string) *Plan { return &Plan{SQL: sql, Output: rowsOutput(1)} }

func TestQueryInWorkerProcess(t *testing.T) {
	p := newTestPool(t, PoolConfig{Worker: WorkerConfig{
		Prelude: []string{"CREATE MACRO twice(x) AS x * 2"}, TempDir: t.TempDir(), AllowedDirs: []string{t.TempDir()},
	}}, nil)
	if pid := p.Stats().PID; pid == 0 || pid == os.Getpid() {
		t.Fatalf("worker pid %d", pid)
	}
	text := "it's $1"
	plan := one("SELECT twice(CAST($1 AS BIGINT))::VARCHAR || CAST($2 AS VARCHAR) || '$1' || (5 / 2)::VARCHAR || CAST($3 AS VARCHAR) IS NULL")
	plan.SQL = "SELECT twice(CAST($1 AS BIGINT))::VARCHAR || CAST($2 AS VARCHAR) || '$1' || (5 / 2)::VARCHAR || coalesce(CAST($3 AS VARCHAR), '-')"
	n := "21"
	plan.Params = []*string{&n, &text, nil}
	if got := mustRun(t, p, plan); got[0] != "42it's $1$12-" {
		t.Errorf("got %q", got)
	}
	zone := one("SELECT current_setting('TimeZone')")
	zone.Settings = map[string]string{"TimeZone": "Asia/Tokyo"}
	for _, c := range []struct {
		plan *Plan
		want string
	}{{zone, "Asia/Tokyo"}, {one("SELECT current_setting('TimeZone')"), "UTC"}} {
		if got := mustRun(t, p, c.plan); got[0] != c.want {
			t.Errorf("TimeZone %q, want %q", got, c.want)
		}
	}
	_, err := run(context.Background(), p, one("SELECT content FROM read_text('/etc/passwd')"))
	var e *EngineError
	if !errors.As(err, &e) {
		t.Errorf("read outside of the allowed directories: %v", err)
	}
	if got := mustRun(t, p, one("SELECT i::VARCHAR FROM range(300000) t(i) ORDER BY i")); len(got) != 300000 || got[299999] != "299999" {
		t.Errorf("%d rows", len(got))
	}
}

func TestStatementErrorLeavesConnectionUsable(t *testing.T) {
	p := newTestPool(t, PoolConfig{InProcess: true, MaxQueries: 1}, nil)
	for sql, kind := range map[string]ErrorKind{
		"SELEC":                            KindSyntax,
		"SELECT x":                         KindBinder,
		"SELECT 'a'::INT::VARCHAR":         KindInvalidText,
		"SELECT error('division by zero')": KindDivisionByZero,
		"SELECT (CASE WHEN i < 200000 THEN i::VARCHAR ELSE error('late') END) FROM range(300000) t(i)": KindInvalidInput,
	} {
		_, err := run(context.Background(), p, one(sql))
		var e *EngineError
		if !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%s: %v", sql, err)
		}
		if got := mustRun(t, p, one("SELECT 'ok'")); got[0] != "ok" {
			t.Fatal(got)
		}
	}
	if _, err := run(context.Background(), p, one("CREATE TABLE t(i INT)")); err == nil {
		t.Error("CREATE TABLE ran")
	}
}

const endless = "SELECT (a.i + b.i)::VARCHAR FROM range(10000000) a(i), range(10000000) b(i) WHERE (a.i + b.i) %% %d = 0"

func TestCancel(t *testing.T) {
	cause := errors.New("user asked")
	for _, inProcess := range []bool{true, false} {
		p := newTestPool(t, PoolConfig{InProcess: inProcess, MaxQueries: 1}, nil)
		for name, sql := range map[string]string{
			"before rows": fmt.Sprintf(endless, 1_000_000_007), "with rows": fmt.Sprintf(endless, 1),
		} {
			ctx, cancel := context.WithCancelCause(context.Background())
			stop := time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
			_, err := run(ctx, p, one(sql))
			if !errors.Is(err, cause) {
				t.Errorf("%s: %v", name, err)
			}
			stop.Stop()
			if got := mustRun(t, p, one("SELECT 'ok'")); got[0] != "ok" {
				t.Fatal(got)
			}
		}
		s, err := p.Query(context.Background(), one(fmt.Sprintf(endless, 1)))
		if err != nil {
			t.Fatal(err)
		}
		s.Close() // an abandoned stream ends, and its place is free
		mustRun(t, p, one("SELECT 'ok'"))
		if st := p.Stats(); st.Active != 0 || st.Restarts != 0 {
			t.Errorf("stats %+v", st)
		}
	}
}

func TestKilledWorkerIsReplaced(t *testing.T) {
	p := newTestPool(t, PoolConfig{BackoffMin: time.Millisecond}, nil)
	s, err := p.Query(context.Background(), one(fmt.Sprintf(endless, 1)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := syscall.Kill(p.Stats().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = s.Next(context.Background())
	}
	if !errors.Is(err, ErrWorkerDied) {
		t.Errorf("query in flight: %v", err)
	}
	// Until the pool has seen the death, a new query may meet it too.
	for range 100 {
		if _, err = run(context.Background(), p, one("SELECT 'ok'")); err == nil {
			break
		}
		if !errors.Is(err, ErrWorkerDied) {
			t.Fatal(err)
		}
	}
	if err != nil || p.Stats().Restarts != 1 {
		t.Errorf("after the restart: %v, %+v", err, p.Stats())
	}
}

// TestSilentWorkerIsReplaced: a worker that lives and does nothing any more ends its
// queries too, and not only those that somebody cancels. A busy one is left alone.
func TestSilentWorkerIsReplaced(t *testing.T) {
	p := newTestPool(t, PoolConfig{BackoffMin: time.Millisecond, SilenceTimeout: 5 * time.Second}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 7*time.Second)
	defer cancel()
	if _, err := run(ctx, p, one(fmt.Sprintf(endless, 2))); !errors.Is(err, context.DeadlineExceeded) || p.Stats().Restarts != 0 {
		t.Fatalf("a long query ended with %v, %+v", err, p.Stats())
	}
	stopProcess(t, p.Stats().PID)
	ctx, cancel = context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if _, err := run(ctx, p, one("SELECT 'ok'")); !errors.Is(err, ErrWorkerDied) {
		t.Fatalf("a query in a stopped worker ended with %v", err)
	}
	mustRun(t, p, one("SELECT 'ok'"))
}

// stopProcess stops a process, and waits until all its threads have stopped: each does when
// it gets to run.
func stopProcess(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	running := func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // none on other systems
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(threads, func(name string) bool {
			text, err := os.ReadFile(name)
			_, state, _ := strings.Cut(string(text), ") ") // after the name of the thread
			return err == nil && !strings.HasPrefix(state, "T")
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(3 * time.Minute); running(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("process %d does not stop", pid)
		}
	}
}

func TestHundredQueriesAtOnce(t *testing.T) {
	p := newTestPool(t, PoolConfig{MaxQueries: 8}, nil)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			got, err := run(context.Background(), p, one(fmt.Sprintf("SELECT count(*)::VARCHAR FROM range(%d)", 1000+i)))
			if err != nil || got[0] != fmt.Sprint(1000+i) {
				t.Errorf("query %d: %v %v", i, got, err)
			}
		})
	}
	all.Wait()
	if s := p.Stats(); s.Queries != 100 || s.Active != 0 || s.Rows != 100 {
		t.Errorf("stats %+v", s)
	}
}

func TestAdmissionWaitsForItsTurn(t *testing.T) {
	p := newTestPool(t, PoolConfig{InProcess: true, MaxQueries: 1}, nil)
	s, err := p.Query(context.Background(), one("SELECT 'a'"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Query(ctx, one("SELECT 'b'")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second query: %v", err)
	}
	s.Close()
	mustRun(t, p, one("SELECT 'c'"))
}

func TestMemoryLimitIsAnError(t *testing.T) {
	p := newTestPool(t, PoolConfig{Worker: WorkerConfig{MemoryLimit: 100 << 20}}, nil)
	_, err := run(context.Background(), p, one("SELECT length(string_agg(i::VARCHAR || repeat('x', 100), ',' ORDER BY i % 77))::VARCHAR FROM range(5000000) t(i)"))
	if !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("err = %v", err)
	}
	mustRun(t, p, one("SELECT 'ok'"))
}

func TestDescribe(t *testing.T) {
	p := newTestPool(t, PoolConfig{InProcess: true}, nil)
	plan := &Plan{
		SQL:       `SELECT t.*, CAST($1 AS DATE) d FROM "R 0" t`,
		Relations: []Relation{{Name: "R 0", Columns: []Column{{Name: "id", FieldID: 1, EngineType: "BIGINT"}, {Name: "Ü", FieldID: 2, EngineType: "DECIMAL(10,2)[]"}}}},
	}
	for range 2 {
		d, err := p.Describe(context.Background(), plan)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Columns) != 3 || d.Columns[1].Name != "Ü" || d.Columns[1].Type.Elem[0].Width != 10 ||
			d.Params[0].Kind != vector.Date {
			t.Errorf("%+v", d)
		}
	}
	if _, err := p.Describe(context.Background(), one("SELECT nope")); err == nil {
		t.Error("no error")
	}
}

func TestArrowOutput(t *testing.T) {
	p := newTestPool(t, PoolConfig{InProcess: true}, nil)
	plan := &Plan{Output: Output{Kind: OutputArrow}, SQL: `SELECT i::INTEGER i, CASE WHEN i % 3 > 0 THEN 'value number ' || i END s,
		[i, NULL] l, (i / 8.0)::DECIMAL(20,3) d, TIMESTAMP '2024-01-01' + to_seconds(i) ts, {'a': i, 'b': 'x'} st,
		i % 2 = 0 b, uuid() u, i::HUGEINT h, NULL n, DATE '2024-01-01' dt FROM range(50000) t(i)`}
	s, err := p.Query(context.Background(), plan)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var stream bytes.Buffer
	for {
		f, err := s.Next(context.Background())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		stream.Write(f.Data)
	}
	r, err := ipc.NewReader(&stream)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for r.Next() {
		rec := r.RecordBatch()
		for row := range int(rec.NumRows()) {
			i := int(rec.Column(0).(*array.Int32).Value(row))
			if i != n {
				t.Fatalf("row %d has i = %d", n, i)
			}
			if s := rec.Column(1).(*array.String); s.IsNull(row) != (i%3 == 0) || i%3 != 0 && s.Value(row) != fmt.Sprint("value number ", i) {
				t.Fatalf("row %d: %s", i, s.ValueStr(row))
			}
			if l := rec.Column(2).ValueStr(row); l != fmt.Sprintf("[%d,null]", i) {
				t.Fatalf("row %d: list %s", i, l)
			}
			n++
		}
	}
	if n != 50000 || r.Err() != nil {
		t.Errorf("%d rows, %v", n, r.Err())
	}
	empty := &Plan{SQL: "SELECT 1 a WHERE false", Output: Output{Kind: OutputArrow}}
	s2, err := p.Query(context.Background(), empty)
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close()
	f, err := s2.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := ipc.NewReader(bytes.NewReader(f.Data)); err != nil || r.Schema().Field(0).Name != "a" {
		t.Errorf("empty result: %v", err)
	}
}
