package catalog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
)

var (
	// ErrTableNotFound, ErrPipelineNotFound and so on mean that there is no object of
	// that kind and name. They come as a *NotFoundError.
	ErrTableNotFound      = errors.New("table does not exist")
	ErrPipelineNotFound   = errors.New("pipeline does not exist")
	ErrConnectionNotFound = errors.New("connection does not exist")
	ErrSecretNotFound     = errors.New("secret does not exist")
	ErrRoleNotFound       = errors.New("role does not exist")
	ErrSchemaNotFound     = errors.New("schema does not exist")
	ErrCompactionNotFound = errors.New("compaction does not exist")
	ErrSegmentNotFound    = errors.New("segment does not exist")
	// ErrExists means that an object of that kind and name exists. It comes as an
	// *ExistsError.
	ErrExists = errors.New("object exists")
	// ErrAmbiguous means that a name without a schema is that of several tables. It comes as
	// an *AmbiguousError.
	ErrAmbiguous = errors.New("table name is ambiguous")
	// ErrCompactionAcked means that a compaction with this id has been acked (C2): its
	// work is done.
	ErrCompactionAcked = errors.New("compaction has been acked")
	// ErrStale means that a compaction no longer fits its table: the table was reset, or a
	// slice is not live. Its output must be dropped.
	ErrStale = errors.New("compaction does not fit its table any more")
	// ErrSegmentLive means that a segment has slices that are not compacted (R1).
	ErrSegmentLive = errors.New("segment has live slices")
	// ErrSecretUnavailable means that a secret's environment variable or file cannot be
	// read.
	ErrSecretUnavailable = errors.New("secret cannot be read")
	// ErrKey means that the secret key is not the one the catalog was made with, or that
	// sealed data was tampered with.
	ErrKey = errors.New("wrong secret key")
	// ErrFormat means that the catalog was written in a format that this program does not
	// read.
	ErrFormat = errors.New("unknown catalog format")
	// ErrCorrupt means that a stored fact cannot be decoded.
	ErrCorrupt = errors.New("corrupt catalog row")
	// ErrRebuilding means that a lost catalog has not yet all that the pipeline's log and
	// lake hold: see Catalog.Replay.
	ErrRebuilding = errors.New("catalog is being rebuilt")
	// ErrNoBackup means that the store is new, that there is data of an earlier one, and
	// no backup that says what it is.
	ErrNoBackup = errors.New("catalog is lost and so is its backup")
	// ErrClosed means that the catalog was closed.
	ErrClosed = errors.New("catalog is closed")
	// ErrInDoubt means that it is not known whether a transaction was committed: who opens the
	// catalog again sees.
	ErrInDoubt = errors.New("it is not known whether the catalog's transaction was committed")
	// ErrBroken means that an earlier commit had an unknown outcome: close the catalog and
	// open it again.
	ErrBroken = errors.New("catalog is broken by an earlier error")
)

// DeniedError is a definition that the role which a transaction acts for has no right to.
type DeniedError struct{ Message string }

// Error implements error.
func (e *DeniedError) Error() string { return e.Message }

// ObjectKind is a kind of named object, as messages write it.
type ObjectKind string

// The kinds.
const (
	KindTable      ObjectKind = "table"
	KindView       ObjectKind = "view"
	KindSequence   ObjectKind = "sequence"
	KindType       ObjectKind = "type"
	KindPipeline   ObjectKind = "pipeline"
	KindConnection ObjectKind = "connection"
	KindSecret     ObjectKind = "secret"
	KindRole       ObjectKind = "role"
	KindSchema     ObjectKind = "schema"
	KindCompaction ObjectKind = "compaction"
)

var notFound = map[ObjectKind]error{
	KindTable: ErrTableNotFound, KindView: ErrTableNotFound, KindSequence: ErrTableNotFound, KindType: ErrTableNotFound, KindPipeline: ErrPipelineNotFound,
	KindConnection: ErrConnectionNotFound, KindSecret: ErrSecretNotFound,
	KindRole: ErrRoleNotFound, KindSchema: ErrSchemaNotFound,
	KindCompaction: ErrCompactionNotFound,
}

// NotFoundError says which object does not exist.
type NotFoundError struct {
	Kind ObjectKind
	Name string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s %s does not exist", e.Kind, quote.Name(e.Name))
}

// Unwrap is the sentinel of the kind.
func (e *NotFoundError) Unwrap() error { return notFound[e.Kind] }

// ExistsError says which object exists.
type ExistsError struct {
	Kind ObjectKind
	Name string
}

// Error implements error.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s %s already exists", e.Kind, quote.Name(e.Name))
}

// Unwrap makes errors.Is(err, ErrExists) true.
func (e *ExistsError) Unwrap() error { return ErrExists }

// AmbiguousError says which tables a name without a schema may mean.
type AmbiguousError struct {
	Name   string
	Tables []string // as SQL writes them, by their names here
}

// Error implements error.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("table name %s is ambiguous: it may be %s", quote.Name(e.Name), strings.Join(e.Tables, " or "))
}

// Unwrap makes errors.Is(err, ErrAmbiguous) true.
func (e *AmbiguousError) Unwrap() error { return ErrAmbiguous }

// SecretError is ErrSecretUnavailable with the secret's name and the reason, a clause.
type SecretError struct {
	Name, Reason string
	Cause        error // nil when the reason is all
}

// Error names the secret.
func (e *SecretError) Error() string { return e.Message() + ": " + e.Reason }

// Message is the error without its reason.
func (e *SecretError) Message() string {
	return fmt.Sprintf("secret %s cannot be read", quote.Name(e.Name))
}

// Unwrap returns the sentinel and the cause.
func (e *SecretError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrSecretUnavailable}
	}
	return []error{ErrSecretUnavailable, e.Cause}
}
