package slt

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Config is how a Runner runs files.
type Config struct {
	// DSN of the server.
	DSN string
	// Labels are the names that skipif and onlyif know us by.
	Labels []string
	// Extended runs each record by Parse/Bind/Execute instead of a simple query.
	Extended bool
	// System allows "system ok" records, which run shell commands.
	System bool
	// Source, when set, is the server of the connection named "source".
	Source string
	// Vars are defined before the first record, for substitution.
	Vars map[string]string
	// Sleep waits; tests replace it.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Outcome is what became of a file.
type Outcome struct {
	File    string
	Records int
	// Skipped are reasons, one per record not run.
	Skipped []string
	// Failure is the first difference, nil when the file passed.
	Failure error
}

// Runner runs files one after the other, each on fresh connections. Not safe for
// concurrent use.
type Runner struct{ cfg Config }

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

// run is the state of one file.
type run struct {
	cfg       Config
	conns     map[string]*pgx.Conn
	out       *Outcome
	vars      map[string]string
	labels    map[string]string // query label to its result
	sort      string
	valuewise bool
	subst     bool
	subtest   string
}

var errHalt = errors.New("halt")

// Run runs one file. Only a broken file or server is an error of the outcome; Run
// itself never fails.
func (r *Runner) Run(ctx context.Context, path string) *Outcome {
	out := &Outcome{File: path}
	records, err := Parse(path)
	if err != nil {
		out.Failure = err
		return out
	}
	s := &run{cfg: r.cfg, conns: map[string]*pgx.Conn{}, out: out, vars: map[string]string{}, labels: map[string]string{}}
	for k, v := range r.cfg.Vars {
		s.vars[k] = v
	}
	defer s.close()
	if err := s.records(ctx, records); err != nil && !errors.Is(err, errHalt) {
		out.Failure = err
	}
	return out
}

func (s *run) close() {
	for _, c := range s.conns {
		_ = c.Close(context.WithoutCancel(context.Background())) // a client goes away
	}
}

func (s *run) records(ctx context.Context, records []*Record) error {
	for _, rec := range records {
		if reason := s.excluded(rec); reason != "" {
			s.out.Skipped = append(s.out.Skipped, fmt.Sprintf("%s:%d: %s", rec.File, rec.Line, reason))
			continue
		}
		s.out.Records++
		if err := s.record(ctx, rec); err != nil {
			if errors.Is(err, errHalt) {
				return err
			}
			where := fmt.Sprintf("%s:%d", rec.File, rec.Line)
			if s.subtest != "" {
				where += " (" + s.subtest + ")"
			}
			var placed *placedError
			if errors.As(err, &placed) {
				return err
			}
			return &placedError{fmt.Errorf("%s: %w\n%s", where, err, rec.SQL)}
		}
	}
	return nil
}

type placedError struct{ error }

func (e *placedError) Unwrap() error { return e.error }

func (s *run) excluded(rec *Record) string {
	has := func(name string) bool {
		for _, l := range s.cfg.Labels {
			if l == name {
				return true
			}
		}
		return false
	}
	for _, n := range rec.SkipIf {
		if has(n) {
			return "skipif " + n
		}
	}
	if len(rec.OnlyIf) > 0 {
		for _, n := range rec.OnlyIf {
			if has(n) {
				return ""
			}
		}
		return "onlyif " + strings.Join(rec.OnlyIf, " ")
	}
	if rec.Kind == Skip {
		return strings.Join(rec.Words, " ") + " is not supported"
	}
	if rec.Kind == System && !s.cfg.System {
		return "system is not allowed"
	}
	return ""
}

func (s *run) record(ctx context.Context, rec *Record) error {
	switch rec.Kind {
	case Statement, Query:
		return s.retried(ctx, rec)
	case Halt:
		return errHalt
	case Subtest:
		s.subtest = strings.Join(rec.Words[1:], " ")
	case Control:
		return s.control(rec)
	case Threshold:
		if len(rec.Words) != 2 {
			return fmt.Errorf("hash-threshold needs a number")
		}
		_, err := strconv.Atoi(rec.Words[1]) // an expected digest says by itself that it is one
		return err
	case Sleep:
		if len(rec.Words) != 2 {
			return fmt.Errorf("sleep needs a duration")
		}
		d, err := time.ParseDuration(rec.Words[1])
		if err != nil {
			return err
		}
		return s.cfg.Sleep(ctx, d)
	case Let:
		return s.let(ctx, rec)
	case System:
		if text, err := exec.CommandContext(ctx, "sh", "-c", s.substitute(rec.SQL)).CombinedOutput(); err != nil {
			return fmt.Errorf("system: %w: %s", err, text)
		}
	case Loop:
		return s.loop(ctx, rec)
	default:
		return fmt.Errorf("record of unknown kind %d", rec.Kind)
	}
	return nil
}

func (s *run) loop(ctx context.Context, rec *Record) error {
	for _, v := range rec.Vars {
		old, had := s.vars[v[0]]
		s.vars[v[0]] = v[1]
		if err := s.records(ctx, rec.Body); err != nil {
			return fmt.Errorf("with %s = %s: %w", v[0], v[1], err)
		}
		if had {
			s.vars[v[0]] = old
		} else {
			delete(s.vars, v[0])
		}
	}
	return nil
}

func (s *run) control(rec *Record) error {
	if len(rec.Words) != 3 {
		return fmt.Errorf("control needs a name and a value")
	}
	switch name, value := rec.Words[1], rec.Words[2]; name {
	case "sortmode":
		s.sort = value
	case "resultmode":
		s.valuewise = value == "valuewise"
	case "substitution":
		s.subst = value == "on"
	default:
		return fmt.Errorf("unknown control %q", name)
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{(\w+)(?::([^}]*))?\}|\$(\w+)`)

// substitute replaces ${NAME}, ${NAME:default} always for loop variables, and $NAME
// too when substitution is on. What is not defined stays as it is.
func (s *run) substitute(sql string) string {
	if len(s.vars) == 0 {
		return sql
	}
	return variable.ReplaceAllStringFunc(sql, func(m string) string {
		g := variable.FindStringSubmatch(m)
		name := g[1]
		if name == "" {
			if !s.subst {
				return m
			}
			name = g[3]
		}
		if v, ok := s.vars[name]; ok {
			return v
		}
		if g[2] != "" {
			return g[2]
		}
		return m
	})
}

func (s *run) let(ctx context.Context, rec *Record) error {
	res, err := s.execute(ctx, rec)
	if err != nil {
		return err
	}
	names := strings.FieldsFunc(strings.Join(rec.Words[1:], " "), func(r rune) bool { return r == ',' || r == ' ' })
	if len(res.rows) != 1 || len(res.rows[0]) != len(names) {
		return fmt.Errorf("let %v: the query gave %d rows", names, len(res.rows))
	}
	for i, n := range names {
		s.vars[strings.TrimPrefix(n, "$")] = res.rows[0][i]
	}
	return nil
}

func (s *run) retried(ctx context.Context, rec *Record) error {
	for try := 0; ; try++ {
		err := s.once(ctx, rec)
		if err == nil || try >= rec.RetryCount {
			return err
		}
		if err := s.cfg.Sleep(ctx, rec.RetryDelay); err != nil {
			return err
		}
	}
}

func (s *run) once(ctx context.Context, rec *Record) error {
	res, err := s.execute(ctx, rec)
	var pgErr *pgconn.PgError
	switch {
	case err != nil && !errors.As(err, &pgErr):
		return err
	case rec.WantError:
		return checkError(rec, pgErr)
	case pgErr != nil:
		return fmt.Errorf("%s (SQLSTATE %s) %s", pgErr.Message, pgErr.Code, pgErr.Detail)
	case rec.Kind == Statement:
		if rec.Count >= 0 && res.affected != rec.Count {
			return fmt.Errorf("%d rows affected, %d expected", res.affected, rec.Count)
		}
		return nil
	}
	return s.compare(rec, res)
}

func checkError(rec *Record, e *pgconn.PgError) error {
	switch {
	case e == nil:
		return errors.New("succeeded, an error is expected")
	case rec.ErrorCode != "" && rec.ErrorCode != e.Code:
		return fmt.Errorf("SQLSTATE %s (%s), %s expected", e.Code, e.Message, rec.ErrorCode)
	case rec.ErrorRegex != nil && !rec.ErrorRegex.MatchString(e.Message):
		return fmt.Errorf("error %q does not match %q", e.Message, rec.ErrorRegex)
	case rec.ErrorText != "" && !strings.Contains(e.Message, rec.ErrorText) && !strings.Contains(rec.ErrorText, e.Message):
		return fmt.Errorf("error %q, %q expected", e.Message, rec.ErrorText)
	}
	return nil
}

// result is a statement's rows as text, NULL as "NULL" and ” as "(empty)".
type result struct {
	rows     [][]string
	affected int64
}

func (s *run) conn(ctx context.Context, name string) (*pgx.Conn, error) {
	if name == "" {
		name = "default"
	}
	if c := s.conns[name]; c != nil && !c.IsClosed() {
		return c, nil
	}
	dsn := s.cfg.DSN
	if name == "source" && s.cfg.Source != "" {
		dsn = s.cfg.Source
	}
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s.conns[name] = c
	return c, nil
}

func (s *run) execute(ctx context.Context, rec *Record) (*result, error) {
	c, err := s.conn(ctx, rec.Connection)
	if err != nil {
		return nil, err
	}
	sql := s.substitute(rec.SQL)
	if s.cfg.Extended {
		res := c.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil).Read()
		return toResult(res), res.Err
	}
	all, err := c.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return &result{}, nil
	}
	return toResult(all[len(all)-1]), nil
}

func toResult(res *pgconn.Result) *result {
	out := &result{affected: res.CommandTag.RowsAffected()}
	for _, row := range res.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			switch {
			case v == nil:
				cells[i] = "NULL"
			case len(v) == 0:
				cells[i] = "(empty)"
			default:
				cells[i] = string(v)
			}
		}
		out.rows = append(out.rows, cells)
	}
	return out
}
