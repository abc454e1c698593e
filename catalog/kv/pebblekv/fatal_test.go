package pebblekv

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"testing"
)

// TestFatalEndsProcess: nobody who recovers panics of his own keeps a process alive whose
// store is broken.
func TestFatalEndsProcess(t *testing.T) {
	const child = "PEBBLEKV_TEST_FATAL"
	if os.Getenv(child) != "" {
		defer func() {
			_ = recover()
			os.Exit(0)
		}()
		logger{slog.New(slog.DiscardHandler)}.Fatalf("commit: %v", errors.New("no disk"))
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFatalEndsProcess$")
	cmd.Env = append(os.Environ(), child+"=1")
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) {
		t.Errorf("the process went on: %v", err)
	}
}
