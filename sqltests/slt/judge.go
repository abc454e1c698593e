package slt

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// retried runs a record until it holds, as often as it says.
func (s *run) retried(ctx context.Context, rec *Record) error {
	if rec.Async != "" {
		return s.async(ctx, rec)
	}
	for try := 0; ; try++ {
		err := s.once(ctx, rec)
		if err == nil || try >= rec.RetryCount {
			return s.settle(rec, err)
		}
		if err := s.cfg.Sleep(ctx, rec.RetryDelay); err != nil {
			return err
		}
	}
}

func (s *run) once(ctx context.Context, rec *Record) error {
	sql, on, err := s.prepare(ctx, rec)
	if err != nil {
		return err
	}
	ans, err := s.cfg.execute(ctx, on, sql)
	if err != nil {
		return err
	}
	return s.judge(rec, ans)
}

// settle is the end of a record's tries: with Override a difference that can be written
// down becomes an edit instead of a failure.
func (s *run) settle(rec *Record, err error) error {
	if !s.cfg.Override {
		return err
	}
	var d *differs
	if err != nil && (!errors.As(err, &d) || d.fix == nil) {
		return err
	}
	var fix *edit
	if d != nil {
		fix = d.fix
	}
	return s.shared.edit(rec, fix, err)
}

// judge holds an answer against what the record expects.
func (s *run) judge(rec *Record, ans *answer) error {
	switch {
	case rec.Want == Fail && ans.err == nil:
		return errors.New("succeeded, an error is expected")
	case rec.Want != Succeed && ans.err != nil:
		return s.judgeError(rec, ans.err)
	case ans.err != nil:
		return unexpected(ans.err)
	case rec.Notice != nil && !slices.ContainsFunc(ans.notices, rec.Notice.MatchString):
		return fmt.Errorf("no notice matches %q; there were %q", rec.Notice, ans.notices)
	case rec.Kind == Statement && rec.Count >= 0 && ans.affected != rec.Count:
		d := &differs{text: fmt.Sprintf("%d rows affected, %d expected", ans.affected, rec.Count)}
		head := countWord.ReplaceAllString(rec.Head, "${1}"+strconv.FormatInt(ans.affected, 10))
		return d.over(rec.head(), []string{head})
	case rec.Kind == Query && rec.NoticeTrace:
		return s.compareLines(rec, ans.notices)
	case rec.Kind == Query:
		return s.compare(rec, ans)
	}
	return nil
}

var countWord = regexp.MustCompile(`(statement\s+(?:async\s+\S+\s+)?count\s+)\d+`)

// head is the span of a record's first line.
func (r *Record) head() span { return span{r.Line - 1, r.Line} }

func unexpected(e *pgconn.PgError) error {
	text := fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
	if e.Detail != "" {
		text += " " + e.Detail
	}
	return errors.New(text)
}

// fullText is an error as psql and the drivers of the other runners print it.
func fullText(e *pgconn.PgError) string {
	text := e.Severity + ": " + e.Message
	if e.Detail != "" {
		text += "\nDETAIL: " + e.Detail
	}
	if e.Hint != "" {
		text += "\nHINT: " + e.Hint
	}
	return text
}

// texts are the forms in which a file may know an error.
func texts(e *pgconn.PgError) []string {
	full := fullText(e)
	return []string{e.Message, full, "db error: " + full, "pq: " + e.Message}
}

func (s *run) judgeError(rec *Record, e *pgconn.PgError) error {
	want := rec.Error
	if want.Code != "" && want.Code != e.Code {
		d := &differs{text: fmt.Sprintf("SQLSTATE %s (%s), %s expected", e.Code, e.Message, want.Code)}
		return d.overHead(rec, want.Code, e.Code)
	}
	if want.Regex != nil && slices.ContainsFunc(texts(e), want.Regex.MatchString) == want.Not {
		verb := "does not match"
		if want.Not {
			verb = "matches"
		}
		d := &differs{text: fmt.Sprintf("error %q (SQLSTATE %s) %s %q", e.Message, e.Code, verb, want.Regex)}
		return d.overHead(rec, want.Regex.String(), regexp.QuoteMeta(e.Message))
	}
	text, err := s.expand(want.Text)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(texts(e), func(t string) bool { return strings.Contains(t, text) }) {
		return nil
	}
	d := &differs{text: fmt.Sprintf("error %q (SQLSTATE %s), %q expected", e.Message, e.Code, text)}
	line := e.Message
	if strings.HasPrefix(text, "db error: ") {
		line = "db error: " + fullText(e)
	}
	return d.over(want.block, strings.Split(line, "\n"))
}

// overHead is a difference that another word on the record's first line settles.
func (d *differs) overHead(rec *Record, old, now string) error {
	if strings.Count(rec.Head, old) != 1 || rec.RetryCount > 0 || strings.Contains(now, "\n") {
		return d
	}
	return d.over(rec.head(), []string{strings.Replace(rec.Head, old, now, 1)})
}
