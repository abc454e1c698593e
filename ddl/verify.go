package ddl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// Verify is VERIFY PIPELINE.
type Verify struct {
	Name string
	// Tables are names at the source; empty: all.
	Tables  []catalog.SelectedTable
	Options []Option
}

// Tag implements Statement.
func (*Verify) Tag() string { return "VERIFY" }

// Transactional implements Statement.
func (*Verify) Transactional() bool { return false }

// VerifyRequest is what a controller is asked to compare.
type VerifyRequest struct {
	Pipeline string
	Tables   []catalog.SelectedTable // at the source; empty: all
	// Ranges is how many ranges a table is cut into at most, Keys how many of its keys are
	// named; RowsPerSecond bounds the reading at the source, 0 does not.
	Ranges, Keys  int
	RowsPerSecond int64
	// Wait bounds how long the pipeline may take to reach the position of the comparison.
	Wait time.Duration
}

// VerifyLine is a line of the result: ranges that are equal, one that differs, a key of it,
// or a table that was left out.
type VerifyLine struct {
	Table                string
	Low, High            *string
	RowsSource, RowsHere *int64
	State                string
	Key, Detail          string
}

var verifyOptions = []OptionDoc{
	{"ranges", "integer", "64", "ranges of the key that a table is cut into at most", checkInt(1, 4096)},
	{"keys", "integer", "100", "differing keys of a table that are named at most", checkInt(1, 100_000)},
	{"rows_per_second", "integer", "0", "most rows that are read at the source in a second; 0 is unlimited", checkInt(0, 1<<40)},
	{"wait", "interval", "5 min", "how long the pipeline may take to reach the position of the comparison", checkDuration(time.Second, 24*time.Hour)},
}

var verifyColumns = []Column{
	{"table", oidText},
	{"range_low", oidText},
	{"range_high", oidText},
	{"rows_source", oidInt8},
	{"rows_here", oidInt8},
	{"state", oidText},
	{"key", oidText},
	{"detail", oidText},
}

// verify parses VERIFY PIPELINE name [TABLE a, b] [WITH (…)].
func (p *parser) verify() (Statement, error) {
	if err := p.expectWord("pipeline"); err != nil {
		return nil, err
	}
	s := &Verify{}
	var err error
	if s.Name, err = p.name(); err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind == tokWord && t.text == "table" {
		if s.Tables, err = p.tableList(nil, ""); err != nil {
			return nil, err
		}
	}
	if !p.word("with") {
		return s, nil
	}
	if err := p.expectPunct("("); err != nil {
		return nil, err
	}
	s.Options, err = p.options(strings.ToLower)
	return s, err
}

// request checks the options.
func (s *Verify) request() (VerifyRequest, error) {
	r := VerifyRequest{Pipeline: s.Name, Tables: s.Tables, Ranges: 64, Keys: 100, Wait: 5 * time.Minute}
	for _, o := range s.Options {
		value, err := checkOption(verifyOptions, o, "VERIFY")
		if err != nil {
			return r, err
		}
		n, _ := strconv.ParseInt(value, 10, 64) // checked
		switch o.Name {
		case "ranges":
			r.Ranges = int(n)
		case "keys":
			r.Keys = int(n)
		case "rows_per_second":
			r.RowsPerSecond = n
		case "wait":
			r.Wait, _ = time.ParseDuration(value) // checked
		}
	}
	return r, nil
}

// verify compares a pipeline with its source, telling progress as NOTICEs.
func (x *Executor) verify(ctx context.Context, s *Verify, session Session) (*Result, error) {
	request, err := s.request()
	if err != nil {
		return nil, err
	}
	snap := x.Catalog.Snapshot()
	p, err := snap.Pipeline(s.Name)
	snap.Close()
	if err != nil {
		return nil, notFound("pipeline", s.Name)
	}
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	lines, err := x.Controller.Verify(ctx, request, func(line string) {
		if err := session.Notice(pgerr.Notice("%s", line)); err != nil {
			gone(err) // nobody is there any more to read the result
		}
	})
	if err != nil {
		return nil, err
	}
	r := &Result{Columns: verifyColumns}
	var differ []string // a name for each range
	for _, l := range lines {
		row := []any{l.Table, textOrNull(l.Low), textOrNull(l.High), numberOrNull(l.RowsSource), numberOrNull(l.RowsHere), l.State, orNull(l.Key), orNull(l.Detail)}
		r.Rows = append(r.Rows, row)
		if l.State == "differs" && l.RowsSource != nil {
			differ = append(differ, l.Table)
		}
	}
	if len(differ) > 0 {
		err = session.Notice(x.differs(p, differ))
	}
	return r, err
}

// differs is the warning of a pipeline of which ranges differ: tables are their tables, each
// as often as it has such a range.
func (x *Executor) differs(p *catalog.Pipeline, tables []string) *pgerr.Error {
	ranges := "one range"
	if n := len(tables); n > 1 {
		ranges = fmt.Sprintf("%d ranges", n)
	}
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	var names []string
	for _, t := range snap.Tables(p.ID) {
		if slices.Contains(tables, t.Schema+"."+t.Name) {
			names = append(names, quotedTable(t))
		}
	}
	e := &pgerr.Error{
		Severity: "WARNING", Code: codes.Warning,
		Message: fmt.Sprintf("pipeline %s differs from its source in %s", quote.Name(p.Name), ranges),
	}
	if len(names) > 0 { // not dropped meanwhile
		e.Hint = p.Exact("ALTER PIPELINE … RESYNC TABLE " + strings.Join(names, ", ") + "; copies anew what differs.")
	}
	return e
}

func textOrNull(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

func numberOrNull(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}
