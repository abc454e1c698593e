// Package slt reads sqllogictest files and runs them over the Postgres protocol.
//
// The dialect is that of sqllogictest-rs with the directives of the other common
// dialects that have one meaning: statement ok | error | count, query with types,
// sort mode and label, results row by row or value by value, hashing, skipif and
// onlyif, loop and foreach, let and substitution, connections, include, retry. What
// is not understood fails; what needs another engine's machinery (require, load,
// restart, …) is skipped with a reason, never passed.
//
// Reading order: Parse, Record, Runner.
package slt

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Kind is what a record does.
type Kind uint8

// The kinds of records.
const (
	Statement Kind = iota + 1
	Query
	Control   // control sortmode | resultmode | substitution
	Let       // let NAME… then a query
	Sleep     // sleep DURATION
	System    // system ok, then a shell command
	Halt      // stop reading
	Loop      // loop and foreach, with Body
	Subtest   // a label for messages
	Threshold // hash-threshold N
	Skip      // a directive that this runner cannot honour
)

// Record is one record of a file.
type Record struct {
	Kind Kind
	File string
	Line int
	SQL  string
	// Conditions: skipif and onlyif names.
	SkipIf, OnlyIf []string
	Connection     string

	// Statement.
	WantError  bool
	ErrorRegex *regexp.Regexp
	ErrorCode  string
	ErrorText  string // contained in the message
	Count      int64  // -1: not checked

	// Query.
	Types    string
	Sort     string
	Label    string
	Expected []string
	Checked  bool // a ---- line was there

	RetryCount int
	RetryDelay time.Duration

	Words []string // of control, let, skip
	Body  []*Record
	Vars  [][2]string // of a loop: variable and value, one a turn
}

// Parse reads a file and what it includes.
func Parse(path string) ([]*Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer f.Close()
	return parse(f, path, 0)
}

const (
	includeDepthMax = 8
	lineBytesMax    = 16 << 20
)

type reader struct {
	path  string
	lines []string
	at    int
	depth int
}

func parse(in io.Reader, path string, depth int) ([]*Record, error) {
	if depth > includeDepthMax {
		return nil, fmt.Errorf("%s: include is nested more than %d deep", path, includeDepthMax)
	}
	r := &reader{path: path, depth: depth}
	s := bufio.NewScanner(in)
	s.Buffer(nil, lineBytesMax)
	for s.Scan() {
		r.lines = append(r.lines, strings.TrimSuffix(s.Text(), "\r"))
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	out, _, err := r.records(false)
	return out, err
}

func (r *reader) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", r.path, r.at, fmt.Errorf(format, args...))
}

// records reads to the end of the file, or to endloop when inLoop.
func (r *reader) records(inLoop bool) (out []*Record, ended bool, err error) {
	next := &Record{Count: -1}
	connection := ""
	for r.at < len(r.lines) {
		line := r.lines[r.at]
		r.at++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		next.File, next.Line = r.path, r.at
		switch words[0] {
		case "skipif", "onlyif":
			if len(words) < 2 {
				return nil, false, r.errorf("%s needs a name", words[0])
			}
			if words[0] == "skipif" {
				next.SkipIf = append(next.SkipIf, words[1])
			} else {
				next.OnlyIf = append(next.OnlyIf, words[1])
			}
			continue
		case "connection":
			if len(words) != 2 {
				return nil, false, r.errorf("connection needs a name")
			}
			connection = words[1]
			continue
		case "endloop":
			if !inLoop {
				return nil, false, r.errorf("endloop without a loop")
			}
			return out, true, nil
		case "include":
			more, err := r.include(words)
			if err != nil {
				return nil, false, err
			}
			out = append(out, more...)
			next = &Record{Count: -1}
			continue
		}
		next.Connection = connection
		connection = ""
		if err := r.record(next, words); err != nil {
			return nil, false, err
		}
		out = append(out, next)
		next = &Record{Count: -1}
	}
	if inLoop {
		return nil, false, r.errorf("loop without endloop")
	}
	return out, false, nil
}

func (r *reader) include(words []string) ([]*Record, error) {
	if len(words) != 2 {
		return nil, r.errorf("include needs a pattern")
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(r.path), words[1]))
	if err != nil || len(files) == 0 {
		return nil, r.errorf("include %s: no such file", words[1])
	}
	var out []*Record
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, r.errorf("include: %w", err)
		}
		more, err := parse(f, name, r.depth+1)
		f.Close()
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// record reads the rest of one record whose first line is words.
func (r *reader) record(rec *Record, words []string) error {
	rec.Words = words
	switch words[0] {
	case "statement":
		rec.Kind = Statement
		return r.statement(rec, words[1:])
	case "query":
		rec.Kind = Query
		return r.query(rec, words[1:])
	case "halt":
		rec.Kind = Halt
	case "subtest":
		rec.Kind = Subtest
	case "control":
		rec.Kind = Control
	case "hash-threshold":
		rec.Kind = Threshold
	case "sleep":
		rec.Kind = Sleep
	case "let":
		rec.Kind = Let
		rec.SQL, _ = r.body()
	case "system":
		rec.Kind = System
		rec.SQL, _ = r.body()
	case "loop", "foreach":
		return r.loop(rec, words)
	case "require", "require-env", "load", "restart", "reconnect", "unzip", "test-env", "mode", "set", "reset",
		"concurrentloop", "concurrentforeach", "tags", "continue", "user", "repeat", "kvtrace", "async", "awaitstatement":
		rec.Kind = Skip
	default:
		return r.errorf("unknown directive %q", words[0])
	}
	return nil
}

// body reads lines up to a blank line or ----; more tells that ---- ended it.
func (r *reader) body() (sql string, more bool) {
	var lines []string
	for r.at < len(r.lines) {
		line := r.lines[r.at]
		if strings.TrimSpace(line) == "" {
			break
		}
		r.at++
		if strings.TrimSpace(line) == "----" {
			return strings.Join(lines, "\n"), true
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), false
}

func (r *reader) statement(rec *Record, words []string) error {
	if len(words) == 0 {
		return r.errorf("statement needs ok, error or count")
	}
	words, err := r.retry(rec, words)
	if err != nil {
		return err
	}
	switch words[0] {
	case "ok":
		if len(words) > 1 {
			rec.Connection = words[1]
		}
	case "count":
		if len(words) < 2 {
			return r.errorf("statement count needs a number")
		}
		if rec.Count, err = strconv.ParseInt(words[1], 10, 64); err != nil {
			return r.errorf("statement count: %w", err)
		}
	case "error":
		if err := r.wantError(rec, strings.Join(words[1:], " ")); err != nil {
			return err
		}
	default:
		return r.errorf("unknown statement %q", words[0])
	}
	sql, more := r.body()
	rec.SQL = sql
	if more {
		return r.errorBlock(rec)
	}
	return nil
}

// wantError reads what follows "error" on the same line: (SQLSTATE), a regular
// expression, or both.
func (r *reader) wantError(rec *Record, text string) error {
	rec.WantError = true
	if m := sqlstate.FindStringSubmatch(text); m != nil {
		rec.ErrorCode, text = m[1], strings.TrimSpace(m[2])
	}
	if text == "" {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return r.errorf("error pattern: %w", err)
	}
	rec.ErrorRegex = re
	return nil
}

var sqlstate = regexp.MustCompile(`^\(?(?:pgcode )?([0-9A-Z]{5})\)?(?:$|\s+(.*))`)

// errorBlock reads the error text after ----, up to a blank line.
func (r *reader) errorBlock(rec *Record) error {
	text, _ := r.body()
	if pattern, ok := strings.CutPrefix(text, "<REGEX>:"); ok {
		return r.wantError(rec, pattern)
	}
	rec.WantError, rec.ErrorText = true, text
	return nil
}

func (r *reader) query(rec *Record, words []string) error {
	words, err := r.retry(rec, words)
	if err != nil {
		return err
	}
	if len(words) > 0 && words[0] == "error" {
		if err := r.wantError(rec, strings.Join(words[1:], " ")); err != nil {
			return err
		}
		sql, more := r.body()
		rec.SQL = sql
		if more {
			return r.errorBlock(rec)
		}
		return nil
	}
	if len(words) > 0 {
		rec.Types = strings.ToUpper(words[0])
		words = words[1:]
	}
	for _, w := range words {
		switch w {
		case "nosort", "rowsort", "valuesort":
			rec.Sort = w
		default:
			rec.Label = w
		}
	}
	sql, more := r.body()
	rec.SQL, rec.Checked = sql, more
	if !more {
		return nil
	}
	for r.at < len(r.lines) && strings.TrimSpace(r.lines[r.at]) != "" {
		rec.Expected = append(rec.Expected, r.lines[r.at])
		r.at++
	}
	return nil
}

// retry takes "retry N backoff D" off the end of words.
func (r *reader) retry(rec *Record, words []string) ([]string, error) {
	for i, w := range words {
		if w != "retry" || i+3 >= len(words) || words[i+2] != "backoff" {
			continue
		}
		n, err := strconv.Atoi(words[i+1])
		if err != nil {
			return nil, r.errorf("retry: %w", err)
		}
		d, err := time.ParseDuration(words[i+3])
		if err != nil {
			return nil, r.errorf("retry: %w", err)
		}
		rec.RetryCount, rec.RetryDelay = n, d
		return append(words[:i:i], words[i+4:]...), nil
	}
	return words, nil
}

// loop reads loop VAR FROM TO and foreach VAR VALUE….
func (r *reader) loop(rec *Record, words []string) error {
	rec.Kind = Loop
	if len(words) < 3 {
		return r.errorf("%s needs a variable and values", words[0])
	}
	if words[0] == "foreach" {
		for _, v := range words[2:] {
			rec.Vars = append(rec.Vars, [2]string{words[1], v})
		}
	} else {
		if len(words) != 4 {
			return r.errorf("loop needs a variable, a start and an end")
		}
		from, err1 := strconv.Atoi(words[2])
		to, err2 := strconv.Atoi(words[3])
		if err1 != nil || err2 != nil || to-from > 100_000 {
			return r.errorf("loop needs two integers at most 100000 apart")
		}
		for i := from; i < to; i++ {
			rec.Vars = append(rec.Vars, [2]string{words[1], strconv.Itoa(i)})
		}
	}
	body, _, err := r.records(true)
	rec.Body = body
	return err
}
