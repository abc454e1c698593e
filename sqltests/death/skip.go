package death

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
)

// skipped are the scenarios that this machine did not allow.
var skipped struct {
	sync.Mutex
	lines []string
}

// Skip ends a test whose scenario the machine does not allow, loudly.
func Skip(t testing.TB, reason string) {
	t.Helper()
	skipped.Lock()
	skipped.lines = append(skipped.lines, t.Name()+": "+reason)
	skipped.Unlock()
	t.Skip("SKIPPED: " + reason)
}

// Report writes what was skipped to w and, because "go test" hides what a passing
// package prints, to the file that SKIPPRD_SKIPPED names.
func Report(w io.Writer) error {
	skipped.Lock()
	defer skipped.Unlock()
	text := "deaths: no scenario was skipped\n"
	for i, l := range skipped.lines {
		if i == 0 {
			text = ""
		}
		text += "deaths: SKIPPED " + l + "\n"
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("report what was skipped: %w", err)
	}
	path := os.Getenv("SKIPPRD_SKIPPED")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("report what was skipped: %w", err)
	}
	_, err = io.WriteString(f, text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("report what was skipped: %w", err)
	}
	return nil
}

// must ends a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
