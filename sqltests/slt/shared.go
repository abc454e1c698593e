package slt

import (
	"fmt"
	"os"
	"sync"
)

// shared is what the turns of a concurrent loop have in common. Safe for concurrent use.
type shared struct {
	mu struct {
		sync.Mutex
		out    *Outcome
		labels map[string]string
		dir    string
		edits  map[editKey]*edit
		seen   map[*Record]wished
	}
}

func newShared(out *Outcome) *shared {
	sh := &shared{}
	sh.mu.out = out
	sh.mu.labels = map[string]string{}
	sh.mu.edits = map[editKey]*edit{}
	sh.mu.seen = map[*Record]wished{}
	return sh
}

func (sh *shared) fail(err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.mu.out.fail(err)
}

func (sh *shared) skip(rec *Record, reason string) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.mu.out.Skipped = append(sh.mu.out.Skipped, fmt.Sprintf("%s:%d: %s", rec.File, rec.Line, reason))
}

func (sh *shared) ran() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.mu.out.Records++
}

// label holds a result against an earlier one of the same label.
func (sh *shared) label(name, values string) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if old, ok := sh.mu.labels[name]; ok && old != values {
		return fmt.Errorf("the result differs from an earlier one labelled %s", name)
	}
	sh.mu.labels[name] = values
	return nil
}

// testDir is __TEST_DIR__, made when first asked for and removed after the file.
func (sh *shared) testDir() (string, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.mu.dir != "" {
		return sh.mu.dir, nil
	}
	dir, err := os.MkdirTemp("", "slt-")
	if err != nil {
		return "", fmt.Errorf("make __TEST_DIR__: %w", err)
	}
	sh.mu.dir = dir
	return dir, nil
}

func (sh *shared) removeTestDir() error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.mu.dir == "" {
		return nil
	}
	return os.RemoveAll(sh.mu.dir)
}
