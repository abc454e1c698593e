package slt

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// CockroachDB's "retry" tries for 45 seconds.
const (
	cockroachRetries    = 90
	cockroachRetryDelay = 500 * time.Millisecond
	retriesMax          = 10_000
)

// body reads lines up to the end of the record or ----; more tells that ---- ended it.
func (p *parser) body() (sql string, more bool) {
	var lines []string
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		if p.dialect.blank(line) || p.dialect == DuckDB && strings.HasPrefix(line, "#") {
			break
		}
		p.at++
		if strings.TrimSpace(line) == "----" {
			return strings.Join(lines, "\n"), true
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), false
}

// block reads the lines after ----. An error's text ends in sqllogictest-rs with two
// blank lines, all else with one.
func (p *parser) block(isError bool) ([]string, span) {
	s := span{from: p.at}
	for p.at < len(p.lines) {
		if p.dialect.blank(p.lines[p.at]) {
			two := p.at+1 >= len(p.lines) || p.dialect.blank(p.lines[p.at+1])
			if !isError || p.dialect != Rust || two {
				break
			}
		}
		p.at++
	}
	s.to = p.at
	return p.lines[s.from:s.to], s
}

func (p *parser) statement(rec *Record, words []string) error {
	words, err := p.retry(rec, words)
	if err != nil {
		return err
	}
	if len(words) > 1 && words[0] == "async" {
		rec.Async, words = words[1], words[2:]
		if len(words) == 0 {
			words = []string{"ok"}
		}
	}
	if len(words) > 1 && words[0] == "disable-cf-mutator" {
		words = words[1:]
	}
	if len(words) == 0 {
		return p.errorf("statement needs ok, error, count, maybe or notice")
	}
	if err := p.want(rec, words); err != nil {
		return err
	}
	sql, more := p.body()
	if rec.SQL = sql; strings.TrimSpace(sql) == "" {
		return p.errorf("statement without SQL")
	}
	if !more {
		return nil
	}
	if rec.Want == Succeed {
		return p.errorf("a statement that succeeds has no result here; use query")
	}
	return p.errorBlock(rec)
}

// want reads what follows "statement".
func (p *parser) want(rec *Record, words []string) error {
	rest := words[1:]
	switch words[0] {
	case "ok":
		return p.trailingConnection(rec, rest)
	case "maybe":
		rec.Want = Either
		return p.trailingConnection(rec, rest)
	case "count":
		if len(rest) != 1 {
			return p.errorf("statement count needs a number")
		}
		n, err := strconv.ParseInt(rest[0], 10, 64)
		if err != nil || n < 0 {
			return p.errorf("statement count needs a number")
		}
		rec.Count = n
		return nil
	case "error":
		if p.dialect == DuckDB {
			rec.Want = Fail
			return p.trailingConnection(rec, rest)
		}
		return p.wantError(rec, strings.Join(rest, " "))
	case "notice":
		re, err := regexp.Compile(strings.Join(rest, " "))
		if err != nil {
			return p.errorf("notice pattern: %w", err)
		}
		rec.Notice = re
		return nil
	}
	return p.errorf("unknown statement %q", words[0])
}

// trailingConnection is DuckDB's name of the connection at the end of the line.
func (p *parser) trailingConnection(rec *Record, words []string) error {
	if len(words) == 0 {
		return nil
	}
	if p.dialect != DuckDB || len(words) > 1 {
		return p.errorf("unexpected %q", strings.Join(words, " "))
	}
	rec.Connection = words[0]
	return nil
}

var sqlstate = regexp.MustCompile(`^(?:\(([0-9A-Z]{5})\)|pgcode ([0-9A-Z]{5}))(?:\s+(.*))?$`)

// wantError reads what follows "error" on the same line: (SQLSTATE), a regular
// expression, or both.
func (p *parser) wantError(rec *Record, text string) error {
	rec.Want = Fail
	if m := sqlstate.FindStringSubmatch(text); m != nil {
		rec.Error.Code, text = m[1]+m[2], m[3]
	}
	if text == "" {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return p.errorf("error pattern: %w", err)
	}
	rec.Error.Regex = re
	return nil
}

// errorBlock reads the error text after ----.
func (p *parser) errorBlock(rec *Record) error {
	if rec.Error.Regex != nil {
		return p.errorf("an error pattern and an error text after ---- exclude each other")
	}
	lines, at := p.block(true)
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	pattern, ok := strings.CutPrefix(text, "<REGEX>:")
	if !ok {
		pattern, ok = strings.CutPrefix(text, "<!REGEX>:")
		rec.Error.Not = ok
	}
	if !ok {
		rec.Error.Text, rec.Error.block = text, at
		return nil
	}
	re, err := regexp.Compile("(?s)" + pattern)
	if err != nil {
		return p.errorf("error pattern: %w", err)
	}
	rec.Error.Regex = re
	return nil
}

func (p *parser) query(rec *Record, words []string) error {
	words, err := p.retry(rec, words)
	if err != nil {
		return err
	}
	if len(words) > 0 && words[0] == "error" {
		return p.queryError(rec, words[1:])
	}
	if len(words) > 0 {
		rec.Types = strings.ToUpper(words[0])
		if strings.Trim(rec.Types, "ABCDEFGHIJKLMNOPQRSTUVWXYZ?_") != "" {
			return p.errorf("types %q: one letter per column is expected", words[0])
		}
		if err := p.options(rec, words[1:]); err != nil {
			return err
		}
	}
	if p.at < len(p.lines) {
		rec.SQL, rec.Checked = p.body()
	}
	if strings.TrimSpace(rec.SQL) == "" {
		return p.errorf("query without SQL")
	}
	if rec.Checked {
		rec.Expected, rec.block = p.block(false)
	}
	return nil
}

func (p *parser) queryError(rec *Record, words []string) error {
	if err := p.wantError(rec, strings.Join(words, " ")); err != nil {
		return err
	}
	sql, more := p.body()
	if rec.SQL = sql; strings.TrimSpace(sql) == "" {
		return p.errorf("query without SQL")
	}
	if more {
		return p.errorBlock(rec)
	}
	return nil
}

var (
	optionWord  = regexp.MustCompile(`[^,(]+(?:\([^)]*\))?`)
	partialSort = regexp.MustCompile(`^partialsort\((\d+(?:,\d+)*)\)$`)
)

// options reads what follows the types: a comma-separated list, then a label.
func (p *parser) options(rec *Record, words []string) error {
	if len(words) == 0 {
		return nil
	}
	for _, w := range optionWord.FindAllString(words[0], -1) {
		if err := p.option(rec, w, words[0]); err != nil {
			return err
		}
	}
	if len(words) > 2 {
		return p.errorf("unexpected %q", strings.Join(words[2:], " "))
	}
	if len(words) == 2 {
		rec.Label = words[1]
	}
	return nil
}

// columnsMax is PostgreSQL's limit of a result's columns.
const columnsMax = 1664

func (p *parser) option(rec *Record, w, all string) error {
	switch w {
	case "nosort", "rowsort", "valuesort":
		rec.Sort = w
		return nil
	case "sort":
		rec.Sort = "rowsort"
		return nil
	case "colnames":
		rec.ColNames = true
		return nil
	case "noticetrace":
		rec.NoticeTrace = true
		return nil
	case "retry":
		rec.RetryCount, rec.RetryDelay = cockroachRetries, cockroachRetryDelay
		return nil
	}
	if m := partialSort.FindStringSubmatch(w); m != nil {
		rec.Sort = "partialsort"
		for _, n := range strings.Split(m[1], ",") {
			c, err := strconv.Atoi(n)
			if err != nil || c < 1 || c > columnsMax {
				return p.errorf("%s: columns count from 1", w)
			}
			rec.SortColumns = append(rec.SortColumns, c)
		}
		return nil
	}
	switch {
	case p.dialect == Cockroach && strings.HasPrefix(w, "kvtrace"):
		rec.Kind = Unsupported
		return nil
	case p.dialect == Cockroach && strings.HasPrefix(w, "nodeidx="):
		return nil
	case p.dialect == DuckDB && w == all:
		rec.Connection = w
		return nil
	}
	return p.errorf("unknown query option %q", w)
}

// let reads let NAME[, NAME…] and a query.
func (p *parser) let(rec *Record) error {
	if len(rec.Words) < 2 {
		return p.errorf("let needs a name")
	}
	rec.SQL, _ = p.body()
	if strings.TrimSpace(rec.SQL) == "" {
		return p.errorf("let without a query")
	}
	return nil
}

// system reads system ok and a shell command, with what it must print after ----.
func (p *parser) system(rec *Record) error {
	words, err := p.retry(rec, rec.Words[1:])
	if err != nil {
		return err
	}
	if len(words) != 1 || words[0] != "ok" {
		return p.errorf("system must be followed by ok")
	}
	rec.SQL, rec.Checked = p.body()
	if rec.Checked {
		rec.Expected, rec.block = p.block(true)
	}
	return nil
}

// retry takes "retry N backoff D" off the end of words.
func (p *parser) retry(rec *Record, words []string) ([]string, error) {
	for i, w := range words {
		if w != "retry" || i+3 >= len(words) || words[i+2] != "backoff" {
			continue
		}
		n, err := strconv.Atoi(words[i+1])
		if err != nil || n < 0 || n > retriesMax {
			return nil, p.errorf("retry needs a number up to %d", retriesMax)
		}
		d, err := duration(words[i+3:])
		if err != nil {
			return nil, p.errorf("retry: %w", err)
		}
		rec.RetryCount, rec.RetryDelay = n, d
		return words[:i:i], nil
	}
	return words, nil
}
