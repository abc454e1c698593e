package bench

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestBenchLog runs the log's own benchmark, which measures appends beside one raw stream
// of write and fdatasync, and prints its lines.
func TestBenchLog(t *testing.T) {
	if os.Getenv("SKIPPRD_BENCH") == "" {
		t.Skip("SKIPPED: a benchmark; SKIPPRD_BENCH=1 (make bench) runs it")
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-run", "^$", "-bench", "Append", "-count", "6", "github.com/skipprd/skipprd/wal")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go test -bench: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "Benchmark") {
			row(t, "log append", "%s", strings.Join(strings.Fields(line), " "))
		}
	}
}
