package pgwire

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"syscall"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/segment"
)

// Codes that the codes package does not name.
const (
	codeIOError           codes.Code = "58030"
	codeCompletionUnknown codes.Code = "40003"
)

// translation is a row of the table: what a domain error is to a client. message is
// empty where the error's own text is for clients too.
type translation struct {
	is      error
	code    codes.Code
	message string
	hint    string
}

// translations is the whole table for sentinels. The first row that matches counts:
// damage comes first, then what is more specific.
var translations = []translation{
	{is: catalog.ErrCorrupt, code: codes.DataCorrupted},
	{is: catalog.ErrFormat, code: codes.DataCorrupted},
	{is: catalog.ErrNoBackup, code: codes.DataCorrupted},
	{is: segment.ErrPromise, code: codes.DataCorrupted},
	{is: segment.ErrDigest, code: codes.DataCorrupted},
	{is: segment.ErrChecksum, code: codes.DataCorrupted},
	{is: segment.ErrMagic, code: codes.DataCorrupted},
	{is: segment.ErrVersion, code: codes.DataCorrupted},
	{is: segment.ErrReserved, code: codes.DataCorrupted},
	{is: segment.ErrLength, code: codes.DataCorrupted},
	{is: segment.ErrIdentity, code: codes.DataCorrupted},
	{is: segment.ErrGroup, code: codes.DataCorrupted},
	{is: segment.ErrKind, code: codes.DataCorrupted},

	{is: catalog.ErrTableNotFound, code: codes.UndefinedTable},
	{is: catalog.ErrSchemaNotFound, code: codes.InvalidSchemaName},
	{is: catalog.ErrPipelineNotFound, code: codes.UndefinedObject},
	{is: catalog.ErrConnectionNotFound, code: codes.UndefinedObject},
	{is: catalog.ErrSecretNotFound, code: codes.UndefinedObject},
	{is: catalog.ErrRoleNotFound, code: codes.UndefinedObject},
	{is: catalog.ErrCompactionNotFound, code: codes.UndefinedObject},
	{is: catalog.ErrSegmentNotFound, code: codes.UndefinedObject},
	{is: catalog.ErrAmbiguous, code: codes.AmbiguousAlias},
	{is: catalog.ErrExists, code: codes.DuplicateObject},
	{is: catalog.ErrCompactionAcked, code: codes.ObjectNotInPrerequisiteState},
	{is: catalog.ErrStale, code: codes.ObjectNotInPrerequisiteState},
	{is: catalog.ErrRebuilding, code: codes.ObjectNotInPrerequisiteState},
	{is: catalog.ErrSegmentLive, code: codes.ObjectInUse},
	{is: catalog.ErrSecretUnavailable, code: codes.ObjectNotInPrerequisiteState},
	{is: catalog.ErrKey, code: codes.ObjectNotInPrerequisiteState},
	{is: catalog.ErrInDoubt, code: codeCompletionUnknown, hint: "Restart the server, and see whether the statement took effect."},
	{is: catalog.ErrBroken, code: codeIOError},
	{is: catalog.ErrClosed, code: codes.CannotConnectNow, message: "the database system is shutting down"},
	{is: kv.ErrClosed, code: codes.CannotConnectNow, message: "the database system is shutting down"},
	{is: schema.ErrIncompatible, code: codes.DatatypeMismatch},
	{is: schema.ErrInitial, code: codes.DatatypeMismatch},
	{is: schema.ErrInvalid, code: codes.InvalidTableDefinition},

	{
		is: wal.ErrSliceLost, code: codes.SerializationFailure,
		message: "rows of the query were moved to the lake while it ran", hint: "Run the statement again.",
	},
	{is: wal.ErrQuota, code: codes.DiskFull, hint: "Raise the log's quota (wal-quota-bytes), or wait for compaction."},
	{is: wal.ErrFull, code: codes.DiskFull, hint: "Wait for compaction, or raise the log's quota."},
	{is: wal.ErrPoisoned, code: codeIOError, hint: "The log's disk failed a write. See the server log."},
	{is: wal.ErrLocked, code: codes.ObjectInUse},
	{is: wal.ErrBusy, code: codes.ConfigurationLimitExceeded},
	{is: wal.ErrClosed, code: codes.CannotConnectNow, message: "the database system is shutting down"},
	{is: wal.ErrUnpublished, code: codes.ObjectNotInPrerequisiteState},
	{is: wal.ErrFenced, code: codes.ReadOnlySQLTransaction, hint: "Another host writes this pipeline. Connect there."},
	{is: wal.ErrHeld, code: codes.ObjectInUse},
	{is: wal.ErrActive, code: codes.ObjectNotInPrerequisiteState},
	{is: wal.ErrBehind, code: codes.DataCorrupted},
	{is: segment.ErrTooLarge, code: codes.ProgramLimitExceeded},

	{is: objstore.ErrUnsuitable, code: codes.ConfigFile},
	{is: objstore.ErrDamaged, code: codes.DataCorrupted},
	{is: objstore.ErrUnavailable, code: codeIOError, hint: "The log's object store does not answer. Run the statement again when it does."},
	{is: objstore.ErrUnknown, code: codeCompletionUnknown, hint: "The object store did not answer. See whether the statement took effect."},
	{is: objstore.ErrConflict, code: codes.SerializationFailure, hint: "Run the statement again."},
	{is: objstore.ErrPrecondition, code: codes.SerializationFailure, hint: "Run the statement again."},
	{is: objstore.ErrNotFound, code: codes.DataCorrupted},
	{is: objstore.ErrRange, code: codes.DataCorrupted},
	{is: objstore.ErrKey, code: codes.ConfigFile},

	{is: lake.ErrConflict, code: codes.SerializationFailure, hint: "Run the statement again."},
	{is: lake.ErrFenced, code: codes.ReadOnlySQLTransaction},
	{is: lake.ErrNoSnapshot, code: codes.SerializationFailure, hint: "Run the statement again."},
	{is: lake.ErrNoWidening, code: codes.DatatypeMismatch},
	{is: lake.ErrOutcomeUnknown, code: codeCompletionUnknown},

	{is: syscall.ENOSPC, code: codes.DiskFull, message: "no space left on device"},
}

// stateError is an error of a package that pgwire does not import and that knows its
// SQLSTATE, such as the engine's. Its text is for clients.
type stateError interface {
	error
	SQLState() string
}

// Translate is what a client sees of err: the one place where domain errors become
// SQLSTATEs. A *pgerr.Error in err's chain is taken as it is. An error of a context
// that ended is told by the context's cause; ctx is the statement's. But an error that
// says that nobody knows whether the statement took effect is told as that, unless the
// session ends. What nothing here knows is XX000, with its text in the log only. It never
// returns nil.
func Translate(ctx context.Context, err error) *pgerr.Error {
	e := fromCause(context.Cause(ctx))
	if e == nil {
		e = fromCause(err)
	}
	if open := inDoubt(err); open != nil && !mutant.On(mutant.DoubtToldCanceled) && (e == nil || e.Severity != "FATAL") {
		return open
	}
	if e != nil {
		return e.WithCause(err)
	}
	if e, ok := pgerr.As(err); ok {
		return e
	}
	var corrupt *segment.CorruptError
	if errors.As(err, &corrupt) {
		return pgerr.New(codes.DataCorrupted, "%s", corrupt.Error()).WithCause(err)
	}
	for _, t := range translations {
		if errors.Is(err, t.is) {
			return t.apply(err)
		}
	}
	var known stateError
	if errors.As(err, &known) {
		return pgerr.New(codes.Code(known.SQLState()), "%s", known.Error()).WithCause(err)
	}
	return fromSystem(err)
}

// inDoubt is what a client sees of an error that leaves open whether the statement took
// effect: nil when err is none.
func inDoubt(err error) *pgerr.Error {
	if e, ok := pgerr.As(err); ok {
		if e.Code == codes.TransactionResolutionUnknown || e.Code == codeCompletionUnknown {
			return e
		}
		return nil
	}
	for _, t := range translations {
		if t.code == codeCompletionUnknown && errors.Is(err, t.is) {
			return t.apply(err)
		}
	}
	return nil
}

// fromCause recognises the causes of an ended statement.
func fromCause(err error) *pgerr.Error {
	switch {
	case err == nil:
	case errors.Is(err, ErrStatementTimeout):
		return pgerr.New(codes.QueryCanceled, "canceling statement due to statement timeout")
	case errors.Is(err, ErrClientCancel):
		return pgerr.New(codes.QueryCanceled, "canceling statement due to user request")
	case errors.Is(err, ErrShutdown), errors.Is(err, ErrTerminated):
		return errAdminShutdown()
	case errors.Is(err, ErrClientGone):
		return fatal(codes.ConnectionFailure, "connection to client lost")
	}
	return nil
}

// fromSystem is for errors without a sentinel of ours.
func fromSystem(err error) *pgerr.Error {
	var path *fs.PathError
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return pgerr.New(codes.QueryCanceled, "canceling statement due to user request").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return pgerr.New(codes.QueryCanceled, "canceling statement due to statement timeout").WithCause(err)
	case errors.As(err, &path):
		return pgerr.New(codeIOError, "could not %s a file", path.Op).WithCause(err)
	case errors.As(err, &network):
		return pgerr.New(codes.SQLclientUnableToEstablishSQLconnection, "could not reach a remote server").WithCause(err)
	}
	return pgerr.New(codes.Internal, "internal error").WithDetail("The server log has more.").WithCause(err)
}

// apply renders err by the row. Typed errors of the catalog name their object.
func (t translation) apply(err error) *pgerr.Error {
	message, code := t.message, t.code
	if message == "" {
		message = t.is.Error()
	}
	var missing *catalog.NotFoundError
	var exists *catalog.ExistsError
	switch {
	case errors.As(err, &missing):
		message = missing.Error()
		if missing.Kind == catalog.KindTable {
			message = "relation \"" + missing.Name + "\" does not exist"
		}
	case errors.As(err, &exists):
		message = exists.Error()
		switch exists.Kind {
		case catalog.KindTable:
			code, message = codes.DuplicateRelation, "relation \""+exists.Name+"\" already exists"
		case catalog.KindSchema:
			code = codes.DuplicateSchema
		}
	}
	e := pgerr.New(code, "%s", message).WithCause(err)
	e.Hint = t.hint
	return e
}
