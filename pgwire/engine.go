package pgwire

import (
	"context"
	"time"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Engine is what stands behind the wire: authentication facts and SQL sessions.
// Safe for concurrent use. Implemented by planner.
type Engine interface {
	// Role returns what is needed to authenticate user, or pgerr 28000 when there
	// is no such role (the server still runs the SCRAM exchange with a mock salt).
	Role(ctx context.Context, user string) (Role, error)
	// Open starts a session for an authenticated user. The error is a *pgerr.Error
	// (3D000 for an unknown database).
	Open(ctx context.Context, s Startup) (Session, error)
}

// Role is a role as authentication sees it.
type Role struct {
	Name     string
	CanLogin bool
	// Verifier is the SCRAM-SHA-256 verifier in PostgreSQL's rolpassword form
	// ("SCRAM-SHA-256$4096:salt$stored:server"); empty when no password is set.
	Verifier string
	// ValidUntil ends the password's validity; zero: it does not end.
	ValidUntil time.Time
	// ConnectionsMax bounds the sessions of a role that is no superuser, if it is Limited.
	Limited        bool
	ConnectionsMax int
	Superuser      bool
	// MemberOf are the names of the roles it is a member of, itself among them.
	MemberOf []string
}

// Startup is what a client asked for at start-up.
type Startup struct {
	User, Database string
	// Params are the remaining start-up parameters (application_name,
	// client_encoding, options already split into settings, …).
	Params map[string]string
	// PID identifies the session in pg_stat_activity and pg_backend_pid().
	PID uint32
	// RemoteAddr is the client's address, for pg_stat_activity.
	RemoteAddr string
	// LocalAddr is the address that the client has connected to.
	LocalAddr string
	TLS       bool
	// Statements are the session's prepared statements, which PREPARE, DEALLOCATE and
	// DISCARD change; nil where nothing but the session prepares any.
	Statements *Statements
	// Portal returns the portal that a client has bound to a name, nil when there is
	// none: FETCH and MOVE take its rows, too. Nil where nothing binds any.
	Portal func(name string) Portal
	// Wake says that the session has notifications for its client, which it is asked for when
	// it idles. Safe for concurrent use. Nil where nobody listens.
	Wake func()
	// Unbind closes and forgets the portal that Portal returns for a name.
	Unbind func(name string)
}

// TxStatus is the transaction status byte of ReadyForQuery.
type TxStatus byte

// The transaction states.
const (
	Idle    TxStatus = 'I'
	InTx    TxStatus = 'T'
	Aborted TxStatus = 'E'
)

// Session is one client's SQL session. Used by one goroutine only. Errors are results
// of the statement, whatever Translate makes of them; what it does not know is XX000.
// A *pgerr.Error of severity FATAL ends the session, as an error of the Sink does,
// which is to be returned as it is, wrapped or not.
type Session interface {
	// Parameters returns the ParameterStatus values to report at start-up.
	Parameters() map[string]string
	// Split parses a simple-protocol string into its statements. A syntax error
	// anywhere is returned with its position before anything runs. An empty string
	// (or only comments and semicolons) gives no statements.
	Split(sql string) ([]string, error)
	// Prepare analyses one statement without running it. types are the OIDs that
	// Parse declared, zero for "you decide". An empty statement is a Statement whose
	// Empty is true.
	Prepare(ctx context.Context, sql string, types []uint32) (Statement, error)
	// Status is the transaction status now.
	Status() TxStatus
	// Fail tells the session that an error ended the current statement outside of
	// it (protocol errors): an open transaction becomes Aborted, an implicit one
	// ends.
	Fail()
	// Sync ends the implicit transaction of an extended-protocol sequence or of a
	// multi-statement simple query, committing it. failed says that it ended in an
	// error.
	Sync(ctx context.Context, failed bool) error
	// Close releases everything. Called once.
	Close()
}

// Statement is an analysed statement. Immutable; usable until the session closes.
type Statement interface {
	Empty() bool
	// Params are the parameter type OIDs, one for each $n.
	Params() []uint32
	// Columns are the result columns, nil for a statement that returns no rows.
	Columns() []Column
	// AllowedInAborted reports whether the statement may run in an aborted
	// transaction (COMMIT, ROLLBACK, …); all others get 25P02.
	AllowedInAborted() bool
	// Bind makes a portal. values[i] is nil for NULL; the callee copies what it
	// keeps. paramFormats and resultFormats are already expanded to one per value
	// and column (0 text, 1 binary).
	Bind(ctx context.Context, values [][]byte, paramFormats, resultFormats []int16) (Portal, error)
}

// Portal is a bound statement.
type Portal interface {
	// Columns are the result columns (nil: none).
	Columns() []Column
	// Execute runs the portal, or continues it, sending results to sink. At most
	// maxRows rows are sent (0: all); done is false when the limit stopped it and
	// more may follow. tag is the command tag when done, for the rows of this call
	// ("SELECT 3"). ctx ends when the client cancels, goes away, or a timeout
	// strikes; context.Cause says which.
	Execute(ctx context.Context, sink Sink, maxRows int) (tag string, done bool, err error)
	// Close releases the portal; safe to call twice.
	Close()
}

// ConstantPortal is a Portal that PostgreSQL computes whole before it tells the columns.
type ConstantPortal interface{ Constant() bool }

// Notification is a message of NOTIFY.
type Notification struct {
	PID              uint32
	Channel, Payload string
}

// Notifier is a Session whose client may listen.
type Notifier interface {
	// Listens reports whether anything may come.
	Listens() bool
	// Notifications hands over what has come.
	Notifications() []Notification
}

// BinaryStatement is a Statement whose rows may be binary in a simple query: those of a BINARY
// cursor.
type BinaryStatement interface{ Binary() bool }

// FunctionCaller is a Session whose functions can be called by their numbers, in function call
// messages.
type FunctionCaller interface {
	// Function returns a query that calls the function of an OID with $1, $2 and so on, which
	// are of types.
	Function(ctx context.Context, oid uint32) (sql string, types []uint32, err error)
}

// EncodedSession is a Session whose client may use another encoding than UTF-8. Its statements,
// values and rows are in UTF-8 all the same, but for the data of COPY.
type EncodedSession interface {
	// ClientEncoding is the value of client_encoding now. It is asked for each message.
	ClientEncoding() string
}

// VanishingPortal is a Portal that may go with the savepoint behind which it was bound.
type VanishingPortal interface{ Gone() bool }

// IdleLimiter is a Session that says itself how long its client may idle.
type IdleLimiter interface {
	// IdleTimeout is the limit in the transaction status as it is now; zero: the
	// server's.
	IdleTimeout() time.Duration
}

// StatementWatcher is a Session that is told of the messages with statements that are served, for
// the log. step is statement, parse, bind or execute; text is that of the whole message.
type StatementWatcher interface {
	Began(step, text string)
	Ended(step, text string, took time.Duration)
	// Failed is told of the error that the client gets, before Ended or behind it.
	Failed(step, text string, e *pgerr.Error)
}

// CursorHolder is a Session with cursors of its own, those of DECLARE, which share the
// portals' names.
type CursorHolder interface {
	// Cursor returns the cursor of a name as a portal whose rows are text, nil when there
	// is none. Its Close closes the cursor.
	Cursor(name string) Portal
}

// Column describes a result column (RowDescription).
type Column struct {
	Name     string
	TableOID uint32
	AttNum   uint16
	TypeOID  uint32
	TypeSize int16
	TypMod   int32
}

// Sink receives what a statement sends to the client. Methods may block on the
// socket; an error means that the client is gone and ends the session.
type Sink interface {
	// Rows takes n complete, encoded DataRow messages, and does not keep them.
	Rows(messages []byte, n int) error
	// Notice sends a NoticeResponse at once.
	Notice(e *pgerr.Error) error
	// ParameterStatus reports a changed setting, before the next ReadyForQuery if it is not
	// what the client knows by then.
	ParameterStatus(name, value string) error
	// CopyOut starts a COPY TO STDOUT; format 0 text or csv, 1 binary.
	CopyOut(format int16, columns int) error
	// CopyData takes complete CopyData messages (already framed), n rows.
	CopyData(messages []byte, n int) error
	// CopyDone ends a COPY TO STDOUT.
	CopyDone() error
	// CopyIn starts a COPY FROM STDIN and returns the client's data stream: Read
	// ends with io.EOF after CopyDone only; a CopyFail is a *pgerr.Error 57014, a
	// vanished client io.ErrUnexpectedEOF.
	CopyIn(format int16, columns int) (CopyReader, error)
}

// CopyReader is the client's side of COPY FROM STDIN.
type CopyReader interface{ Read(p []byte) (int, error) }
