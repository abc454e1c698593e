package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/skipprd/skipprd/sqltests/slt"
)

const sltHelp = `
Runs sqllogictest files against any Postgres address, and compares what it answers with
what they expect. The dialects of sqlite, DuckDB, CockroachDB and sqllogictest-rs
(RisingWave) are read; docs/suites.md lists their words.

Directories are searched for .slt and .test files. The exit code is 0 when no file
failed, 1 when one did, 2 for wrong use.`

// sltFlags are those of "skipprd slt".
type sltFlags struct {
	client
	dialect, labels, source, isolate, junit, provide, match string

	extended, system, override, strict, keepGoing, failFast, keepFailed, quiet, verbose bool

	jobs    int
	timeout time.Duration
}

func (f *sltFlags) define(fs *flag.FlagSet) {
	f.client.flags(fs)
	fs.StringVar(&f.dialect, "dialect", "auto", "auto, sqlite, duckdb, cockroach or risingwave")
	fs.StringVar(&f.labels, "labels", "", "comma-separated names that skipif and onlyif know the server by "+
		"(default postgres,postgresql, and skipprd where the server is one)")
	fs.StringVar(&f.source, "source", "", "server of the connection named source, and the value of $SOURCE")
	fs.BoolVar(&f.extended, "extended", false, "use the extended protocol")
	fs.BoolVar(&f.system, "allow-system", false, "run the shell commands of 'system ok' records; without it such a file ends as skipped")
	fs.BoolVar(&f.override, "override", false, "write what the server gives into the files where they expect something else (one file at a time)")
	fs.IntVar(&f.jobs, "j", 1, "how many files run at a time")
	fs.StringVar(&f.isolate, "isolate", "none", "what each file has to itself: none, database or schema")
	fs.StringVar(&f.junit, "junit", "", "write a report in JUnit's XML to this file")
	fs.BoolVar(&f.keepGoing, "keep-going", false, "run on in a file after a record failed")
	fs.BoolVar(&f.failFast, "fail-fast", false, "start no further file after one failed")
	fs.BoolVar(&f.keepFailed, "keep-failed", false, "leave the database or schema of a file that failed")
	fs.BoolVar(&f.strict, "strict", false, "check the number of columns and equal labels in sqllogictest-rs files, too")
	fs.StringVar(&f.provide, "provide", "", "comma-separated names that 'require' finds")
	fs.DurationVar(&f.timeout, "timeout", 0, "fail a record that has no answer within this time (0: wait)")
	fs.StringVar(&f.match, "match", "", "pattern of the base names of files below directories, instead of the extensions .slt and .test")
	fs.BoolVar(&f.quiet, "q", false, "print only files that failed, and the totals")
	fs.BoolVar(&f.verbose, "v", false, "print every skipped record, too")
}

// errSuiteFailed is the end of a run with files that failed; they are printed already.
var errSuiteFailed = errors.New("a file failed")

// runSlt runs a user's suite against a server.
func runSlt(ctx context.Context, args []string) error {
	var f sltFlags
	fs := newFlags("slt", "[flags] FILE|DIRECTORY|PATTERN…", sltHelp)
	f.define(fs)
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	if fs.NArg() == 0 {
		return fmt.Errorf("%w: slt needs files or directories", errUsage)
	}
	files, err := slt.Collect(fs.Args(), f.match)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	cfg, err := f.config(ctx)
	if err != nil {
		return err
	}
	p := &slt.Progress{Out: os.Stdout, Files: len(files), Terminal: isTerminal(os.Stdout), Quiet: f.quiet, Verbose: f.verbose}
	s := &slt.Suite{Config: cfg, Files: files, Jobs: f.jobs, FailFast: f.failFast, Started: p.Started, Done: p.Done}
	report := s.Run(ctx)
	report.Summary(os.Stdout)
	if err := f.writeJUnit(report); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	case report.Count(slt.Failed) > 0:
		return fmt.Errorf("%w: %d of %d", errSuiteFailed, report.Count(slt.Failed), len(files))
	}
	return nil
}

func (f *sltFlags) config(ctx context.Context) (slt.Config, error) {
	cfg := slt.Config{
		DSN: f.address(), Source: f.source, Env: os.LookupEnv, Extended: f.extended, System: f.system,
		Override: f.override, Strict: f.strict, KeepGoing: f.keepGoing,
		KeepFailed: f.keepFailed, RecordTimeout: f.timeout, Provided: split(f.provide),
	}
	if f.source != "" {
		cfg.Vars = map[string]string{"SOURCE": f.source}
	}
	var err1, err2 error
	cfg.Dialect, err1 = slt.ParseDialect(f.dialect)
	cfg.Isolation, err2 = slt.ParseIsolation(f.isolate)
	if err := errors.Join(err1, err2); err != nil {
		return cfg, fmt.Errorf("%w: %w", errUsage, err)
	}
	conn, err := f.connect(ctx, nil)
	if err != nil {
		return cfg, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if cfg.Labels = split(f.labels); len(cfg.Labels) > 0 {
		return cfg, nil
	}
	cfg.Labels = []string{"postgres", "postgresql"}
	var version string
	if err := conn.QueryRow(ctx, "SELECT version()").Scan(&version); err != nil {
		return cfg, fmt.Errorf("ask for the server's version: %w", err)
	}
	if strings.Contains(version, "skipprd") {
		cfg.Labels = append(cfg.Labels, "skipprd")
	}
	return cfg, nil
}

func split(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
}

func (f *sltFlags) writeJUnit(r *slt.Report) error {
	if f.junit == "" {
		return nil
	}
	file, err := os.Create(f.junit)
	if err != nil {
		return fmt.Errorf("make JUnit report: %w", err)
	}
	return errors.Join(r.JUnit(file, "skipprd slt"), file.Close())
}
