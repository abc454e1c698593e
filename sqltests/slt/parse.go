package slt

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const (
	fileBytesMax    = 256 << 20
	includeDepthMax = 8
	loopDepthMax    = 16
	loopTurnsMax    = 100_000
)

// parser reads one file; at is the next line.
type parser struct {
	path    string
	dialect Dialect
	lines   []string
	at      int
	include int // depth
	loop    int // depth
}

// Parse reads a file and what it includes. Any word it does not know is an error that
// names file and line.
func Parse(path string, d Dialect) (*Script, error) {
	return parseFile(path, d, 0)
}

func parseFile(path string, d Dialect, include int) (*Script, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if info.Size() > fileBytesMax {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), fileBytesMax)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return parseText(string(text), path, d, include)
}

func parseText(text, path string, d Dialect, include int) (*Script, error) {
	if include > includeDepthMax {
		return nil, fmt.Errorf("%s: include is nested more than %d deep", path, includeDepthMax)
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	if d == Auto {
		d = detect(path, lines)
	}
	p := &parser{path: path, dialect: d, lines: lines, include: include}
	records, err := p.records(false)
	if err != nil {
		return nil, err
	}
	return &Script{File: path, Dialect: d, Records: records}, nil
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", p.path, p.at, fmt.Errorf(format, args...))
}

// prefix is what stands on lines of its own before a record.
type prefix struct {
	conditions []Condition
	connection string
	repeat     int
	retry      bool
}

func (f *prefix) empty() bool {
	return len(f.conditions) == 0 && f.connection == "" && f.repeat == 0 && !f.retry
}

// records reads to the end of the file, or to endloop when inLoop.
func (p *parser) records(inLoop bool) ([]*Record, error) {
	var out []*Record
	var before prefix
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		p.at++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if isPrefix, err := p.prefix(&before, words); err != nil {
			return nil, err
		} else if isPrefix {
			continue
		}
		if words[0] == "endloop" {
			if !inLoop || !before.empty() {
				return nil, p.errorf("endloop without a loop, or after skipif, onlyif or connection")
			}
			return out, nil
		}
		rec := &Record{File: p.path, Line: p.at, Head: line, Words: words, Count: -1}
		if err := p.record(rec); err != nil {
			return nil, err
		}
		if !p.carries(rec.Kind) {
			p.take(rec, &before)
		}
		out = append(out, rec)
	}
	if inLoop {
		return nil, p.errorf("loop without endloop")
	}
	if !before.empty() {
		return nil, p.errorf("skipif, onlyif, connection, repeat or retry without a record")
	}
	return out, nil
}

// carries tells that what stands before a record of this kind is for the next one.
func (p *parser) carries(k Kind) bool {
	return p.dialect == Rust && (k == Control || k == Sleep || k == Subtest || k == Threshold)
}

func (p *parser) take(rec *Record, before *prefix) {
	rec.Conditions = before.conditions
	if before.connection != "" {
		rec.Connection = before.connection
	}
	rec.Repeat = before.repeat
	if before.retry && rec.RetryCount == 0 {
		rec.RetryCount, rec.RetryDelay = cockroachRetries, cockroachRetryDelay
	}
	*before = prefix{}
}

// prefix reads a line that is for the next record.
func (p *parser) prefix(before *prefix, words []string) (bool, error) {
	switch words[0] {
	case "skipif", "onlyif":
		c, err := p.condition(words)
		before.conditions = append(before.conditions, c)
		return true, err
	case "connection":
		if len(words) != 2 {
			return true, p.errorf("connection needs a name")
		}
		before.connection = words[1]
		return true, nil
	case "repeat":
		n, err := p.number(words)
		before.repeat = n
		return true, err
	case "retry":
		before.retry = true
		return true, nil
	case "skip_on_retry":
		return true, nil
	}
	return false, nil
}

var comparison = regexp.MustCompile(`^(\w+)(=|<>|<=|>=|<|>)(\S+)$`)

func (p *parser) condition(words []string) (Condition, error) {
	for i, w := range words {
		if strings.HasPrefix(w, "#") { // sqlite's files say why
			words = words[:i]
			break
		}
	}
	if len(words) < 2 {
		return Condition{}, p.errorf("%s needs a name", words[0])
	}
	c := Condition{Only: words[0] == "onlyif", Name: words[1]}
	if words[1] == "config" && len(words) > 2 {
		c.Config = true
		return c, nil
	}
	if len(words) > 2 {
		return c, p.errorf("%s takes one name", words[0])
	}
	if m := comparison.FindStringSubmatch(words[1]); m != nil {
		c.Name, c.Op, c.Value = m[1], m[2], m[3]
	}
	return c, nil
}

func (p *parser) number(words []string) (int, error) {
	if len(words) != 2 {
		return 0, p.errorf("%s needs a number", words[0])
	}
	n, err := strconv.Atoi(words[1])
	if err != nil || n < 0 || n > loopTurnsMax {
		return 0, p.errorf("%s needs a number from 0 to %d", words[0], loopTurnsMax)
	}
	return n, nil
}

// record reads the rest of one record whose first line is rec.Words.
func (p *parser) record(rec *Record) error {
	switch rec.Words[0] {
	case "statement":
		rec.Kind = Statement
		return p.statement(rec, rec.Words[1:])
	case "query":
		rec.Kind = Query
		return p.query(rec, rec.Words[1:])
	case "let":
		rec.Kind = Let
		return p.let(rec)
	case "system":
		rec.Kind = System
		return p.system(rec)
	case "include":
		rec.Kind = Include
		return p.includes(rec)
	case "loop", "foreach", "concurrentloop", "concurrentforeach":
		rec.Kind = Loop
		return p.loops(rec)
	}
	return p.directive(rec)
}

// includes reads the files that match a pattern, relative to this file.
func (p *parser) includes(rec *Record) error {
	if len(rec.Words) != 2 {
		return p.errorf("include needs a pattern")
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(p.path), rec.Words[1]))
	if err != nil || len(files) == 0 {
		return p.errorf("include %s: no such file", rec.Words[1])
	}
	for _, name := range files {
		more, err := parseFile(name, p.dialect, p.include+1)
		if err != nil {
			return fmt.Errorf("%s:%d: include: %w", p.path, p.at, err)
		}
		rec.Body = append(rec.Body, more.Records...)
	}
	return nil
}

// loops reads loop VAR FROM TO and foreach VAR VALUE…, and the body.
func (p *parser) loops(rec *Record) error {
	if p.loop++; p.loop > loopDepthMax {
		return p.errorf("loops are nested more than %d deep", loopDepthMax)
	}
	defer func() { p.loop-- }()
	words := rec.Words
	if len(words) < 3 {
		return p.errorf("%s needs a variable and values", words[0])
	}
	rec.Concurrent = strings.HasPrefix(words[0], "concurrent")
	var err error
	if strings.HasSuffix(words[0], "foreach") {
		rec.Turns, err = p.foreach(words[1], words[2:])
	} else {
		rec.Turns, err = p.counted(words)
	}
	if err != nil {
		return err
	}
	rec.Body, err = p.records(true)
	return err
}

func (p *parser) counted(words []string) ([][][2]string, error) {
	if len(words) != 4 {
		return nil, p.errorf("%s needs a variable, a start and an end", words[0])
	}
	from, err1 := strconv.Atoi(words[2])
	to, err2 := strconv.Atoi(words[3])
	if err1 != nil || err2 != nil || to < from || to-from > loopTurnsMax {
		return nil, p.errorf("%s needs two integers at most %d apart", words[0], loopTurnsMax)
	}
	var out [][][2]string
	for i := from; i < to; i++ {
		out = append(out, [][2]string{{words[1], strconv.Itoa(i)}})
	}
	return out, nil
}

// typeLists are DuckDB's names for lists of types.
var typeLists = map[string]string{
	"<signed>":   "tinyint smallint integer bigint hugeint",
	"<unsigned>": "utinyint usmallint uinteger ubigint uhugeint",
	"<integral>": "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint",
	"<numeric>":  "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint float double",
	"<alltypes>": "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint float double " +
		"bool interval varchar",
}

// foreach makes a turn of each value; "a,b" takes values like "1,2".
func (p *parser) foreach(names string, values []string) ([][][2]string, error) {
	var flat []string
	for _, v := range values {
		switch {
		case typeLists[v] != "":
			flat = append(flat, strings.Fields(typeLists[v])...)
		case strings.HasPrefix(v, "<") && strings.HasSuffix(v, ">"):
			return nil, p.errorf("foreach does not know the list %s", v)
		case strings.HasPrefix(v, "!") && len(flat) > 0:
			for i, f := range flat {
				if f == v[1:] {
					flat = append(flat[:i:i], flat[i+1:]...)
					break
				}
			}
		default:
			flat = append(flat, v)
		}
	}
	vars := strings.Split(names, ",")
	var out [][][2]string
	for _, v := range flat {
		parts := []string{v}
		if len(vars) > 1 {
			parts = strings.Split(v, ",")
		}
		if len(parts) != len(vars) {
			return nil, p.errorf("foreach %s: %s has %d values", names, v, len(parts))
		}
		var turn [][2]string
		for i, name := range vars {
			turn = append(turn, [2]string{name, parts[i]})
		}
		out = append(out, turn)
	}
	return out, nil
}
