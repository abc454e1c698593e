package ddl

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// RetryLetters is
//
//	RETRY DEAD LETTERS FROM pipeline [WHERE condition]
//
// where the condition is on the columns of skippr.dead_letters.
type RetryLetters struct {
	Pipeline string
	Where    string // as written, "" for all
}

// Tag implements Statement.
func (*RetryLetters) Tag() string { return "RETRY" }

// Transactional implements Statement.
func (*RetryLetters) Transactional() bool { return false }

// Retrier is a Controller of sources whose changes may become dead letters.
type Retrier interface {
	// RetryLetters applies open dead letters of a pipeline again; only are their ids, nil
	// for all. tell gets a line for each table, and for letters that stay.
	RetryLetters(ctx context.Context, pipeline string, only map[uint64]bool, tell func(string)) (RetriedLetters, error)
}

// RetriedLetters is what became of dead letters.
type RetriedLetters struct{ Retried, Superseded, Failing int64 }

// Querier is a Session that runs queries for a statement.
type Querier interface {
	// Query returns the rows of a query, each value in its text form.
	Query(ctx context.Context, sql string) ([][]string, error)
}

var retryColumns = []Column{{"retried", oidInt8}, {"superseded", oidInt8}, {"failing", oidInt8}}

// retry parses what follows RETRY.
func (p *parser) retry() (Statement, error) {
	if err := p.expectWord("dead", "letters", "from"); err != nil {
		return nil, err
	}
	s := &RetryLetters{}
	var err error
	if s.Pipeline, err = p.name(); err != nil {
		return nil, err
	}
	if !p.word("where") {
		return s, nil
	}
	from := p.peek()
	for t := p.peek(); t.kind != tokEOF && (t.kind != tokPunct || t.text != ";"); t = p.peek() {
		p.next()
	}
	all := []rune(p.src)
	s.Where = strings.TrimSpace(string(all[from.pos-1 : p.peek().pos-1]))
	if s.Where == "" {
		return nil, p.unexpected(from)
	}
	return s, nil
}

func (x *Executor) retryLetters(ctx context.Context, s *RetryLetters, session Session) (*Result, error) {
	snap := x.Catalog.Snapshot()
	p, err := snap.Pipeline(s.Pipeline)
	snap.Close()
	if err != nil {
		return nil, err
	}
	retrier, ok := x.Controller.(Retrier)
	if !ok {
		return nil, pgerr.New(codes.FeatureNotSupported, "dead letters cannot be retried here")
	}
	only, err := lettersWhere(ctx, p.Name, s.Where, session)
	if err != nil {
		return nil, err
	}
	var lost error
	tell := func(line string) {
		if lost == nil {
			lost = session.Notice(pgerr.Notice("%s", line))
		}
	}
	res, err := retrier.RetryLetters(ctx, p.Name, only, tell)
	if err == nil {
		err = lost
	}
	if err != nil {
		return nil, err
	}
	return &Result{
		Tag: fmt.Sprintf("RETRY %d", res.Retried), Columns: retryColumns,
		Rows: [][]any{{res.Retried, res.Superseded, res.Failing}},
	}, nil
}

// lettersWhere are the ids of a pipeline's letters that a condition holds for, nil for all
// of them.
func lettersWhere(ctx context.Context, pipeline, where string, session Session) (map[uint64]bool, error) {
	if where == "" {
		return nil, nil
	}
	q, ok := session.(Querier)
	if !ok {
		return nil, pgerr.New(codes.FeatureNotSupported, "WHERE is not supported here")
	}
	rows, err := q.Query(ctx, fmt.Sprintf("SELECT id FROM skippr.dead_letters WHERE pipeline = %s AND (\n%s\n)", quote.Text(pipeline), where))
	if err != nil {
		if e, ok := pgerr.As(err); ok {
			e.Position = 0 // of a query that the client has not written
		}
		return nil, err
	}
	only := make(map[uint64]bool, len(rows))
	for _, r := range rows {
		id, err := strconv.ParseUint(r[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read id of a dead letter: %w", err)
		}
		only[id] = true
	}
	return only, nil
}
