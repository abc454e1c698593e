// Package bench measures the shipped binary against a baseline run beside it:
// CPU-seconds, peak memory and ratios, printed as the tables of docs/performance.md.
// It never judges a time. SKIPPRD_BENCH=1 runs it; sizes come from the environment.
package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

func begin(t *testing.T) *pgtest.Server {
	t.Helper()
	if os.Getenv("SKIPPRD_BENCH") == "" {
		t.Skip("SKIPPED: a benchmark; SKIPPRD_BENCH=1 (make bench) runs it")
	}
	return pgtest.Start(t)
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

func cpu(t testing.TB, pid int) float64 {
	t.Helper()
	c, err := harness.CPUSeconds(pid)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func server(t *testing.T, args ...string) *harness.Server {
	t.Helper()
	s := harness.New(t, t.TempDir(), args...)
	s.Start()
	return s
}

// slots counts replication slots, whose names are the PostgreSQL server's.
var slots atomic.Int64

// create makes the pipeline p of all tables of a source and copies them. Its slot goes
// when the test ends, so that the source need not keep its log for it.
func create(t *testing.T, s *harness.Server, dsn string) {
	t.Helper()
	harness.Exec(t, s.DSN, fmt.Sprintf("CREATE PIPELINE p FROM POSTGRES %s FOR ALL TABLES WITH (slot_name = bench_%d_%d)",
		quote.Text(dsn), os.Getpid(), slots.Add(1)))
	harness.Exec(t, s.DSN, "SYNC PIPELINE p UNTIL CAUGHT UP")
}

// finish drops the pipeline with its slot and stops the server.
func finish(t *testing.T, s *harness.Server) {
	t.Helper()
	harness.Exec(t, s.DSN, "DROP PIPELINE p")
	s.Stop()
}

// median of a copy of v.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}

// row prints one line of a result table.
func row(t testing.TB, name, format string, args ...any) {
	t.Helper()
	fmt.Printf("| %s | %s |\n", name, fmt.Sprintf(format, args...))
}

// profile records where the server's time goes, by perf(1), into
// SKIPPRD_BENCH_PERF/name.perf, until the returned function is called.
func profile(t testing.TB, s *harness.Server, name string) (stop func()) {
	t.Helper()
	dir := os.Getenv("SKIPPRD_BENCH_PERF")
	if dir == "" {
		return func() {}
	}
	var pids []string
	for _, p := range append([]int{s.PID()}, harness.Children(s.PID())...) {
		pids = append(pids, strconv.Itoa(p))
	}
	cmd := exec.Command("perf", "record", "-q", "-F", "499", "-g", "-o", filepath.Join(dir, name+".perf"), "-p", strings.Join(pids, ","))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // perf says nothing when it is ready
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // it writes its file and ends
		_ = cmd.Wait()                         // by that signal
	}
}
