package slt

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config is how a Runner runs files.
type Config struct {
	// DSN of the server, as a URL or key=value string.
	DSN string
	// Labels are the names that skipif and onlyif know the server by.
	Labels []string
	// Dialect of the files; Auto looks at each.
	Dialect Dialect
	// Extended runs each record by Parse/Bind/Execute instead of a simple query.
	Extended bool
	// System allows "system ok" records, which run shell commands.
	System bool
	// Source, when set, is the server of the connection named "source".
	Source string
	// Vars are defined before the first record, for substitution.
	Vars map[string]string
	// Env answers for what substitution and require-env do not find in Vars; nil: nothing.
	Env func(name string) (string, bool)
	// Provided are names that "require" finds.
	Provided []string
	// Strict checks what sqllogictest-rs reads and does not hold a file to: the number of
	// columns and equal results under one label.
	Strict bool
	// KeepGoing runs on after a failure.
	KeepGoing bool
	// Override writes what the server gave over results that differ, in the files.
	Override bool
	// Isolation gives each file a database or a schema of its own.
	Isolation Isolation
	// KeepFailed leaves the database or schema of a file that failed.
	KeepFailed bool
	// RecordTimeout bounds each statement and query; 0: not at all.
	RecordTimeout time.Duration
	// Sleep waits; tests replace it.
	Sleep func(ctx context.Context, d time.Duration) error

	databaseName string // instead of the DSN's
	schema       string // first in search_path
}

// now is $__NOW__: nanoseconds since 1970.
func (c *Config) now() string { return strconv.FormatInt(time.Now().UnixNano(), 10) }

// database is $__DATABASE__.
func (c *Config) database() (string, error) {
	if c.databaseName != "" {
		return c.databaseName, nil
	}
	cfg, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return "", fmt.Errorf("server address: %w", err)
	}
	return cfg.Database, nil
}

// Status is what became of a file.
type Status uint8

// What became of a file: Skipped is one of which a part or all did not run because this
// runner or the server lacks something, and which did not fail before.
const (
	Passed Status = iota
	Failed
	Skipped
)

// String is the word that Progress prints.
func (s Status) String() string { return [...]string{"ok", "FAIL", "skip"}[s] }

// Outcome is what became of a file, in detail.
type Outcome struct {
	File    string
	Dialect Dialect
	Elapsed time.Duration
	// Records that ran.
	Records int
	// Skipped are reasons, one per record not run.
	Skipped []string
	// Rest is why the file was not run to its end, empty when it was.
	Rest string
	// Failures are the differences, in order; without KeepGoing at most one.
	Failures []error
	// Failure is the first of them, nil when there is none.
	Failure error
	// Rewritten counts the expectations that Override changed in files.
	Rewritten int
}

// Status sums an outcome up. A file that ran no record did not pass.
func (o *Outcome) Status() Status {
	switch {
	case o.Failure != nil:
		return Failed
	case o.Rest != "" || o.Records == 0:
		return Skipped
	}
	return Passed
}

func (o *Outcome) fail(err error) {
	if o.Failures = append(o.Failures, err); o.Failure == nil {
		o.Failure = err
	}
}

// Runner runs files, each on fresh connections. Safe for concurrent use, save with
// Override, where two files may include the same third.
type Runner struct {
	cfg   Config
	spare atomic.Int64 // numbers the databases and schemas of Isolation
}

// NewRunner makes a runner.
func NewRunner(cfg Config) *Runner {
	if cfg.Sleep == nil {
		cfg.Sleep = sleep
	}
	return &Runner{cfg: cfg}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Run runs one file. Only a broken file or server is an error of the outcome; Run
// itself never fails.
func (r *Runner) Run(ctx context.Context, path string) *Outcome {
	start := time.Now()
	out := &Outcome{File: path}
	r.run(ctx, path, out)
	out.Elapsed = time.Since(start)
	return out
}

func (r *Runner) run(ctx context.Context, path string, out *Outcome) {
	script, err := Parse(path, r.cfg.Dialect)
	if err != nil {
		out.fail(err)
		return
	}
	out.Dialect = script.Dialect
	cfg, drop, err := r.isolate(ctx)
	if err != nil {
		out.fail(fmt.Errorf("%s: %w", path, err))
		return
	}
	sh := newShared(out)
	s := newRun(&cfg, script.Dialect, sh)
	err = s.records(ctx, script.Records)
	s.end()
	var rest *restError
	if errors.As(err, &rest) {
		out.Rest = rest.Error()
	}
	if ctx.Err() != nil && out.Failure == nil {
		out.fail(fmt.Errorf("%s: %w", path, context.Cause(ctx)))
	}
	if cfg.Override && ctx.Err() == nil {
		if out.Rewritten, err = sh.rewrite(); err != nil {
			out.fail(err)
		}
	}
	if err := sh.removeTestDir(); err != nil {
		out.fail(err)
	}
	if cfg.KeepFailed && out.Failure != nil {
		return
	}
	if err := drop(); err != nil {
		out.fail(err)
	}
}
