package slt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// run is one file under way, or one turn of a concurrent loop. Owned by one goroutine.
type run struct {
	cfg     *Config
	dialect Dialect
	shared  *shared

	sessions map[sessionKey]*session
	pending  map[string]*pending
	user     string

	vars   map[string]string
	dollar map[string]bool // variables of "let $NAME"
	turns  []string        // of the loops we are in, for messages

	sort      string
	valuewise bool
	subst     bool
	threshold int
	skipLevel int // of mode skip
	subtest   string
}

func newRun(cfg *Config, d Dialect, sh *shared) *run {
	s := &run{
		cfg: cfg, dialect: d, shared: sh, sort: "nosort",
		sessions: map[sessionKey]*session{}, pending: map[string]*pending{},
		vars: map[string]string{}, dollar: map[string]bool{},
	}
	maps.Copy(s.vars, cfg.Vars)
	return s
}

// What ends records other than their end.
var (
	errHalt     = errors.New("halt")
	errContinue = errors.New("continue")
	errStopped  = errors.New("stopped after a failure")
)

// restError ends a file as skipped.
type restError struct{ reason string }

func (e *restError) Error() string { return e.reason }

func isFlow(err error) bool {
	var rest *restError
	return errors.Is(err, errHalt) || errors.Is(err, errContinue) || errors.Is(err, errStopped) || errors.As(err, &rest)
}

// records runs records in order. It returns nil or one of the errors of isFlow:
// failures are in the outcome already.
func (s *run) records(ctx context.Context, records []*Record) error {
	for _, rec := range records {
		if reason := s.excluded(rec); reason != "" {
			s.shared.skip(rec, reason)
			continue
		}
		for range max(1, rec.Repeat) {
			err := s.record(ctx, rec)
			switch {
			case err == nil:
				continue
			case isFlow(err):
				return err
			}
			s.shared.fail(s.locate(rec, err))
			if !s.cfg.KeepGoing && !s.cfg.Override || ctx.Err() != nil {
				return errStopped
			}
			break
		}
	}
	return nil
}

func (s *run) locate(rec *Record, err error) error {
	where := fmt.Sprintf("%s:%d", rec.File, rec.Line)
	if s.subtest != "" {
		where += " (" + s.subtest + ")"
	}
	if len(s.turns) > 0 {
		where += " with " + strings.Join(s.turns, ", ")
	}
	return fmt.Errorf("%s: %w\n%s", where, err, rec.SQL)
}

// excluded says why a record does not run, or nothing.
func (s *run) excluded(rec *Record) string {
	if s.skipLevel > 0 && rec.Kind != Mode {
		return "mode skip"
	}
	for _, c := range rec.Conditions {
		word := "skipif"
		if c.Only {
			word = "onlyif"
		}
		if s.holds(c) != c.Only {
			return word + " " + c.Name + c.Op + c.Value
		}
	}
	if rec.Kind == Unsupported {
		return rec.Head + " is not supported"
	}
	return ""
}

// holds tells that a condition's label is ours, or its comparison true.
func (s *run) holds(c Condition) bool {
	switch {
	case c.Config:
		return false
	case c.Op == "":
		return slices.Contains(s.cfg.Labels, c.Name)
	}
	v := s.vars[c.Name]
	a, err1 := strconv.ParseFloat(v, 64)
	b, err2 := strconv.ParseFloat(c.Value, 64)
	order := strings.Compare(v, c.Value)
	if err1 == nil && err2 == nil {
		order = 0
		if a < b {
			order = -1
		} else if a > b {
			order = 1
		}
	}
	switch c.Op {
	case "=":
		return order == 0
	case "<>":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func (s *run) record(ctx context.Context, rec *Record) error {
	switch rec.Kind {
	case Statement, Query:
		s.shared.ran()
		return s.retried(ctx, rec)
	case Let:
		s.shared.ran()
		return s.let(ctx, rec)
	case System:
		return s.system(ctx, rec)
	case Loop:
		if rec.Concurrent {
			return s.concurrent(ctx, rec)
		}
		return s.loop(ctx, rec)
	case Include:
		return s.records(ctx, rec.Body)
	case Halt:
		return errHalt
	case Continue:
		return errContinue
	case Sleep:
		return s.cfg.Sleep(ctx, rec.Duration)
	case Await:
		return s.await(rec)
	case Require:
		return s.require(rec)
	case Env:
		return s.env(rec)
	case Rest:
		return &restError{fmt.Sprintf("%s:%d: %s is not supported", rec.File, rec.Line, rec.Head)}
	}
	return s.set(rec)
}

// set runs the records that only change how the following are read.
func (s *run) set(rec *Record) error {
	switch rec.Kind {
	case Subtest:
		s.subtest = strings.Join(rec.Words[1:], " ")
		if s.subtest == "end" {
			s.subtest = ""
		}
	case Control:
		switch rec.Words[1] {
		case "sortmode":
			s.sort = rec.Words[2]
		case "resultmode":
			s.valuewise = rec.Words[2] == "valuewise"
		case "substitution":
			s.subst = rec.Words[2] == "on"
		}
	case Threshold:
		n, err := strconv.Atoi(rec.Words[1])
		s.threshold = n
		return err
	case Mode:
		if s.skipLevel++; rec.Words[1] == "unskip" {
			s.skipLevel -= 2
		}
		if s.skipLevel < 0 {
			return errors.New("mode unskip without mode skip")
		}
	case User:
		s.user = rec.Words[1]
		if s.user == "root" && s.dialect == Cockroach {
			s.user = ""
		}
		if slices.Contains(rec.Words, "newsession") {
			return s.hangUp(sessionKey{user: s.user, name: "default"})
		}
	case Reconnect:
		return s.hangUpAll()
	case Ignored:
	default:
		return fmt.Errorf("record of unknown kind %d", rec.Kind)
	}
	return nil
}

func (s *run) loop(ctx context.Context, rec *Record) error {
	for _, turn := range rec.Turns {
		leave := s.enter(turn)
		err := s.records(ctx, rec.Body)
		leave()
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

// enter sets a turn's variables; what it returns restores them.
func (s *run) enter(turn [][2]string) func() {
	before, turns := maps.Clone(s.vars), s.turns
	for _, v := range turn {
		s.vars[v[0]] = v[1]
		s.turns = append(s.turns[:len(s.turns):len(s.turns)], v[0]+" = "+v[1])
	}
	return func() {
		for _, v := range turn {
			if old, ok := before[v[0]]; ok {
				s.vars[v[0]] = old
			} else {
				delete(s.vars, v[0])
			}
		}
		s.turns = turns
	}
}

// neutral are names of "require" that say what DuckDB was built with, or where it runs,
// and that mean nothing to a server.
var neutral = []string{
	"skip_reload", "notwindows", "notmingw", "notmusl", "noforcestorage", "nothreadsan", "longdouble", "64bit",
	"no_alternative_verify", "no_extension_autoloading", "no_vector_verification", "no_latest_storage",
	"vector_size", "block_size",
}

func (s *run) require(rec *Record) error {
	name := rec.Words[1]
	if slices.Contains(neutral, name) || slices.Contains(s.cfg.Provided, name) {
		return nil
	}
	return &restError{fmt.Sprintf("%s:%d: require %s: not provided", rec.File, rec.Line, name)}
}

// env runs require-env NAME [VALUE] and test-env NAME DEFAULT, which define a variable.
func (s *run) env(rec *Record) error {
	name := rec.Words[1]
	value, ok := s.vars[name]
	if !ok && s.cfg.Env != nil {
		value, ok = s.cfg.Env(name)
	}
	switch {
	case rec.Words[0] == "test-env" && !ok:
		value = rec.Words[2]
	case rec.Words[0] == "require-env" && (!ok || len(rec.Words) == 3 && value != rec.Words[2]):
		return &restError{fmt.Sprintf("%s:%d: %s: not so in the environment", rec.File, rec.Line, rec.Head)}
	}
	s.vars[name] = value
	return nil
}
