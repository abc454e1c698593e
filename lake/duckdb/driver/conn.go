package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	b "github.com/duckdb/duckdb-go-bindings"

	"github.com/skipprd/skipprd/lake/vector"
)

// ErrNotQuery says that a statement is not a SELECT (or EXPLAIN): the engine is only
// ever asked to read.
var ErrNotQuery = errors.New("statement is not a query")

// Conn is a connection: one statement at a time, one goroutine at a time.
type Conn struct{ conn b.Connection }

// Close closes the connection, whose stream must be closed.
func (c *Conn) Close() { b.Disconnect(&c.conn) }

// Exec runs statements of our own (settings, macros) and drops their result.
func (c *Conn) Exec(sql string) error {
	var r b.Result
	defer b.DestroyResult(&r)
	if b.Query(c.conn, sql, &r) == b.StateError {
		return resultError(&r)
	}
	return nil
}

// Column is a column of a result.
type Column struct {
	Name string
	Type vector.Type
}

// Describe prepares a query without running it, and returns its columns and the
// types of its parameters $1, $2, …; the zero type where the engine cannot tell.
func (c *Conn) Describe(sql string) (columns []Column, params []vector.Type, err error) {
	st, err := c.prepare(sql)
	if err != nil {
		return nil, nil, err
	}
	defer b.DestroyPrepare(&st)
	for i := range b.NParams(st) {
		t, err := ownedType(b.ParamLogicalType(st, i+1))
		if err != nil {
			return nil, nil, err
		}
		params = append(params, t)
	}
	columns, err = preparedColumns(st)
	return columns, params, err
}

// Query prepares and starts a query. When ctx ends before the stream is closed, the
// engine is interrupted, and the stream or Query reports kind Interrupted. The caller
// closes the stream before anything else is done with the connection.
func (c *Conn) Query(ctx context.Context, sql string) (*Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Kind: Interrupted, Message: "canceled before it began"}
	}
	s := &Stream{over: make(chan struct{})}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		c.interrupt(s.over)
	})
	// A late interrupt must reach neither the next statement nor a closed
	// connection, so whoever ends the stream waits for it.
	s.join = func() {
		close(s.over)
		if !stop() {
			<-interrupted
		}
	}
	if err := s.start(c, sql); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// interruptPause is between two interrupts of one query.
const interruptPause = 5 * time.Millisecond

// interrupt interrupts until over. Once is not enough: the engine forgets an interrupt
// that comes just before a query begins.
func (c *Conn) interrupt(over <-chan struct{}) {
	again := time.NewTicker(interruptPause)
	defer again.Stop()
	for {
		b.Interrupt(c.conn)
		select {
		case <-over:
			return
		case <-again.C:
		}
	}
}

func (c *Conn) prepare(sql string) (b.PreparedStatement, error) {
	var st b.PreparedStatement
	if strings.IndexByte(sql, 0) >= 0 { // it would end the C string
		return st, &Error{Kind: InvalidText, Message: "invalid byte sequence: 0x00"}
	}
	if b.Prepare(c.conn, sql, &st) == b.StateError {
		err := classify(b.PrepareError(st))
		b.DestroyPrepare(&st)
		return st, err
	}
	switch t := b.PreparedStatementType(st); t {
	case b.StatementTypeSelect, b.StatementTypeExplain:
		return st, nil
	default:
		b.DestroyPrepare(&st)
		return st, fmt.Errorf("statement type %d: %w", t, ErrNotQuery)
	}
}

func preparedColumns(st b.PreparedStatement) ([]Column, error) {
	n := b.PreparedStatementColumnCount(st)
	columns := make([]Column, n)
	for i := range n {
		t, err := ownedType(b.PreparedStatementColumnLogicalType(st, i))
		if err != nil {
			return nil, err
		}
		columns[i] = Column{Name: b.PreparedStatementColumnName(st, i), Type: t}
	}
	return columns, nil
}

func resultError(r *b.Result) error {
	e := classify(b.ResultError(r))
	switch b.ResultErrorType(r) {
	case b.ErrorTypeInterrupt:
		e.Kind = Interrupted
	case b.ErrorTypeOutOfMemory:
		e.Kind = OutOfMemory
	}
	return e
}
