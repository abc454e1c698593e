package ddl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal/env"
)

// Executor runs statements of ours against the catalog and the controller. Safe for
// concurrent use.
type Executor struct {
	Catalog    *catalog.Catalog
	Controller Controller
	Clock      env.Clock
}

// Session is what a statement needs of the session that runs it.
type Session interface {
	// Notice sends a NOTICE at once; an error means that the client is gone.
	Notice(e *pgerr.Error) error
	// User is the role that runs the statement.
	User() string
	// Role is its id, to which rights are given.
	Role() uint32
}

// Column is a result column.
type Column struct {
	Name    string
	TypeOID uint32
}

// Result is what a statement returns. A cell is nil, string, int64, float64, bool
// or time.Time, as its column's type says.
type Result struct {
	Tag     string
	Columns []Column
	Rows    [][]any
}

// The type OIDs of result columns.
const (
	oidBool        uint32 = 16
	oidInt8        uint32 = 20
	oidText        uint32 = 25
	oidFloat8      uint32 = 701
	oidTimestampTZ uint32 = 1184
)

// Describe returns the result columns of s without running it; nil if it returns no
// rows.
func Describe(s Statement) []Column {
	switch s := s.(type) {
	case *Discover:
		return discoverColumns
	case *Sync:
		return syncColumns
	case *ValidateConnection:
		return validateColumns
	case *RetryLetters:
		return retryColumns
	case *CreatePipeline:
		if dryRun(s) {
			return planColumns
		}
	case *Verify:
		return verifyColumns
	case *Show:
		return showColumns[s.What]
	}
	return nil
}

// Execute runs s. Errors are *pgerr.Error, or the context's cause.
func (x *Executor) Execute(ctx context.Context, s Statement, session Session) (*Result, error) {
	if err := reserved(s); err != nil {
		return nil, err
	}
	if err := x.authorize(s, session); err != nil {
		return nil, err
	}
	var r *Result
	var err error
	switch s := s.(type) {
	case *CreateSecret:
		err = x.createSecret(ctx, s, session)
	case *CreateConnection:
		err = x.createConnection(ctx, s, session)
	case *AlterConnection:
		err = x.alterConnection(ctx, s)
	case *ValidateConnection:
		r, err = x.validateConnection(ctx, s)
	case *CreatePipeline:
		if dryRun(s) {
			r, err = x.planPipeline(ctx, s, session)
		} else {
			err = x.createPipeline(ctx, s, session)
		}
	case *AlterPipeline:
		err = x.alterPipeline(ctx, s, session)
	case *Drop:
		err = x.drop(ctx, s, session)
	case *Discover:
		r, err = x.discover(ctx, s)
	case *Sync:
		r, err = x.sync(ctx, s, session)
	case *RetryLetters:
		r, err = x.retryLetters(ctx, s, session)
	case *Verify:
		r, err = x.verify(ctx, s, session)
	case *Show:
		r, err = x.show(s, session)
	default:
		err = fmt.Errorf("execute: unknown statement %T", s)
	}
	if err != nil {
		return nil, translate(ctx, err)
	}
	if r == nil {
		r = &Result{}
	}
	if r.Tag == "" {
		r.Tag = s.Tag()
		if r.Columns != nil && r.Tag != "SHOW" {
			r.Tag = fmt.Sprintf("%s %d", r.Tag, len(r.Rows))
		}
	}
	return r, nil
}

// reserved refuses what would change the server's own pipeline.
func reserved(s Statement) error {
	var names []string
	switch s := s.(type) {
	case *CreateConnection:
		names = []string{s.Name}
	case *AlterConnection:
		names = []string{s.Name}
	case *CreatePipeline:
		names = []string{s.Name}
	case *Drop:
		names = []string{s.Name}
	case *AlterPipeline:
		if s.Action != Compact {
			names = []string{s.Name, s.NewName}
		}
	}
	if !slices.Contains(names, catalog.OwnPipeline) {
		return nil
	}
	return pgerr.New(codes.ReservedName, "\"%s\" is the server's own", catalog.OwnPipeline).
		WithDetail("It has the tables made with CREATE TABLE.").WithHint("CREATE TABLE and DROP TABLE change what it has.")
}

// translate turns a controller's Problem and the catalog's sentinels into errors for
// the client.
func translate(ctx context.Context, err error) error {
	if _, ok := pgerr.As(err); ok {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var missing *catalog.NotFoundError
	if errors.As(err, &missing) {
		return notFound(string(missing.Kind), missing.Name)
	}
	var exists *catalog.ExistsError
	if errors.As(err, &exists) && exists.Kind == catalog.KindTable {
		return pgerr.New(codes.DuplicateRelation, "table \"%s\" already exists", exists.Name).
			WithHint("CREATE PIPELINE … SCHEMA 'name_%%s' makes a schema for each schema of the source.")
	}
	if errors.As(err, &exists) {
		return duplicate(string(exists.Kind), exists.Name)
	}
	var p *Problem
	if errors.As(err, &p) {
		e := &pgerr.Error{Code: problemCodes[p.Kind], Message: p.Message, Detail: p.Detail, Hint: p.Hint, Cause: p.Cause}
		if e.Code == "" {
			e.Code = codes.Internal
		}
		return e
	}
	return err
}

var problemCodes = map[ProblemKind]codes.Code{
	Unreachable:  codes.SQLclientUnableToEstablishSQLconnection,
	NotPrepared:  codes.ObjectNotInPrerequisiteState,
	WrongState:   codes.ObjectNotInPrerequisiteState,
	NoSuchTable:  codes.UndefinedTable,
	NotSupported: codes.FeatureNotSupported,
	Busy:         codes.ObjectInUse,
	Ambiguous:    codes.AmbiguousAlias,
}

func notFound(object, name string) *pgerr.Error {
	return pgerr.New(codes.UndefinedObject, "%s \"%s\" does not exist", object, name)
}

func duplicate(object, name string) *pgerr.Error {
	return pgerr.New(codes.DuplicateObject, "%s \"%s\" already exists", object, name)
}

// noticeSkip tells that an IF [NOT] EXISTS statement had nothing to do.
func noticeSkip(session Session, format string, args ...any) error {
	return session.Notice(pgerr.Notice(format+", skipping", args...))
}

// settleTimeout bounds how long CREATE PIPELINE waits for the source.
const settleTimeout = 30 * time.Second
