// Package pgerr is the error that a client sees: SQLSTATE, message, detail, hint,
// position, in PostgreSQL's style. Codes come from psql-wire's codes package.
package pgerr

import (
	"errors"
	"fmt"

	"github.com/jeroenrinzema/psql-wire/codes"
)

// Error is a statement error or a notice. Values are not changed once returned.
type Error struct {
	Severity string // "ERROR" when empty; FATAL, NOTICE, WARNING, …
	Code     codes.Code
	Message  string
	Detail   string
	Hint     string
	// Position is the 1-based character position in the statement, 0 when unknown.
	Position                                    int32
	Where                                       string
	Schema, Table, Column, DataType, Constraint string
	// Cause is for the log only, never sent.
	Cause error
}

// Error renders "message (SQLSTATE code)".
func (e *Error) Error() string { return fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// New makes an ERROR with a formatted primary message: lower case, no period.
func New(code codes.Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithDetail returns a copy with a detail sentence.
func (e *Error) WithDetail(format string, args ...any) *Error {
	c := *e
	c.Detail = fmt.Sprintf(format, args...)
	return &c
}

// WithHint returns a copy with a hint sentence.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithPosition returns a copy that points at the 1-based character pos.
func (e *Error) WithPosition(pos int32) *Error {
	c := *e
	c.Position = pos
	return &c
}

// WithCause returns a copy that wraps cause for the log.
func (e *Error) WithCause(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// Notice makes a NOTICE (00000).
func Notice(format string, args ...any) *Error {
	return &Error{Severity: "NOTICE", Code: codes.SuccessfulCompletion, Message: fmt.Sprintf(format, args...)}
}

// As returns the *Error in err's chain.
func As(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}
