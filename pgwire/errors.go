package pgwire

import "errors"

// Causes with which a statement's context ends; context.Cause tells them.
var (
	// ErrClientCancel is a CancelRequest, or pg_cancel_backend.
	ErrClientCancel = errors.New("canceled by user request")
	// ErrClientGone is a client that closed or lost its connection.
	ErrClientGone = errors.New("connection to client lost")
	// ErrShutdown is the end of the server's grace period.
	ErrShutdown = errors.New("server is shutting down")
	// ErrTerminated is pg_terminate_backend.
	ErrTerminated = errors.New("terminated by administrator command")
	// ErrStatementTimeout is statement_timeout. The engine sets it on a context of its
	// own.
	ErrStatementTimeout = errors.New("statement timeout")
)

// errServerClosed is returned by Serve after Shutdown.
var errServerClosed = errors.New("server is closed")

// connError is a failed socket: nobody is there to read an answer.
type connError struct{ cause error }

func (e *connError) Error() string { return "client connection: " + e.cause.Error() }

func (e *connError) Unwrap() error { return e.cause }
