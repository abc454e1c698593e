package slt

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Suite is many files and how they run.
type Suite struct {
	Config Config
	Files  []string
	// Jobs is how many files run at a time; less than 1, and any number with
	// Config.Override, means one.
	Jobs int
	// FailFast starts no further file after one that failed.
	FailFast bool
	// Started and Done, when set, hear of each file. They are called one at a time.
	Started func(file string)
	Done    func(*Outcome)
}

// Report is what became of a suite.
type Report struct {
	// Outcomes in the order of the files.
	Outcomes []*Outcome
	Elapsed  time.Duration
}

// Run runs the files. After ctx ends no further file starts; those left count as skipped.
func (s *Suite) Run(ctx context.Context) *Report {
	start := time.Now()
	jobs := min(max(1, s.Jobs), max(1, len(s.Files)))
	if s.Config.Override {
		jobs = 1
	}
	r := NewRunner(s.Config)
	out := make([]*Outcome, len(s.Files))
	var mu struct {
		sync.Mutex
		next   int
		failed bool
	}
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if mu.next >= len(s.Files) || ctx.Err() != nil || mu.failed {
			return -1
		}
		if s.Started != nil {
			s.Started(s.Files[mu.next])
		}
		mu.next++
		return mu.next - 1
	}
	var wg sync.WaitGroup
	for range jobs {
		wg.Go(func() {
			for i := take(); i >= 0; i = take() {
				out[i] = r.Run(ctx, s.Files[i])
				mu.Lock()
				mu.failed = mu.failed || s.FailFast && out[i].Failure != nil
				if s.Done != nil {
					s.Done(out[i])
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i, o := range out {
		if o == nil {
			out[i] = &Outcome{File: s.Files[i], Rest: "not started: interrupted, or another failed"}
		}
	}
	return &Report{Outcomes: out, Elapsed: time.Since(start)}
}

// Count counts the files of a status, and the records that ran and that did not.
func (r *Report) Count(st Status) (files int) {
	for _, o := range r.Outcomes {
		if o.Status() == st {
			files++
		}
	}
	return files
}

// Records counts the records that ran and those skipped.
func (r *Report) Records() (ran, skipped int) {
	for _, o := range r.Outcomes {
		ran += o.Records
		skipped += len(o.Skipped)
	}
	return ran, skipped
}

// extensions are those of test files below a directory; an argument that is a file is
// taken whatever its name.
var extensions = []string{".slt", ".test"}

// Collect expands directories into the test files below them, and patterns of file
// names, in order and each once. match, when set, is a pattern that the base names of
// files below a directory must match instead of having a known extension. An argument
// that gives nothing is an error.
func Collect(args []string, match string) ([]string, error) {
	var out []string
	for _, a := range args {
		roots, err := filepath.Glob(a)
		if err != nil {
			return nil, fmt.Errorf("pattern %s: %w", a, err)
		}
		before := len(out)
		for _, root := range roots {
			files, err := below(root, match)
			if err != nil {
				return nil, err
			}
			out = append(out, files...)
		}
		if len(out) == before {
			return nil, fmt.Errorf("%s: no test file there", a)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func below(root, match string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		ok := path == root || slices.Contains(extensions, filepath.Ext(path))
		if path != root && match != "" {
			if ok, err = filepath.Match(match, filepath.Base(path)); err != nil {
				return err
			}
		}
		if ok {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find test files: %w", err)
	}
	return out, nil
}
