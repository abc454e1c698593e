// Package planner answers SQL: it stands behind pgwire and in front of the engine.
//
// A statement goes parse → analyse (planner/pgsql) → pin → plan (lake/duckdb.Plan)
// → run → encoded rows to the sink. Statements of ours go to ddl, settings to
// planner/setting, catalog relations come from a SystemRelations (planner/syscat).
// Not for: the wire's bytes, the meaning of DDL, reading files or the log.
//
// Reading order: Deps, Engine, Session, Statement, Portal, pin.
//
// Invariants: a statement reads all its tables at one catalog snapshot (T1, P1); a
// lost slice is an error or a new pin before the first row, never a shorter result
// (P3); REPEATABLE READ pins once.
package planner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/ingest/own/circle"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/advisory"
	"github.com/skipprd/skipprd/planner/copying"
	"github.com/skipprd/skipprd/planner/notify"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/planner/temp"
	"github.com/skipprd/skipprd/wal/change"
)

// Engine answers SQL sessions. Safe for concurrent use.
type Engine struct {
	deps      Deps
	pinner    *Pinner
	functions map[string][]pgsql.Function
	names     atomic.Pointer[names] // of the catalog version seen last
	recovered sync.Map              // of the pipelines whose recovery was waited for
	temp      *temp.Server
	hub       *notify.Hub
	advisory  *advisory.Locks
	copies    copying.Copies
}

var (
	_ pgwire.Engine      = (*Engine)(nil)
	_ pgwire.IdleLimiter = (*session)(nil)
	_ pgwire.Notifier    = (*session)(nil)

	_ pgwire.FunctionCaller = (*session)(nil)
)

// oidDatabase is the OID of the database.
const oidDatabase = 5

// New makes an engine.
func New(deps Deps) *Engine {
	e := &Engine{deps: deps, functions: map[string][]pgsql.Function{}, temp: temp.NewServer(), hub: notify.New()}
	graph := &circle.Graph{}
	if deps.Own != nil {
		graph = deps.Own.Held().Graph(func(id change.TableID) string {
			return fmt.Sprintf("relation %d of database %d", TableOID(id), oidDatabase)
		})
	}
	e.advisory = advisory.New(oidDatabase, graph)
	e.pinner = &Pinner{Catalog: deps.Catalog, Warehouse: deps.Warehouse, Pins: deps.Pins, Logs: deps.Logs, LogDir: deps.LogDir}
	for _, f := range deps.System.Functions() {
		fn := pgsql.Function{Schema: f.Schema, Name: f.Name, Args: f.Args, Result: f.Result, Set: f.Set, Engine: f.Engine}
		for _, c := range f.Fields {
			fn.Fields = append(fn.Fields, pgsql.Field{Name: c.Name, Type: pgsql.Type{OID: c.TypeOID, Mod: c.TypMod}})
		}
		e.functions[f.Name] = append(e.functions[f.Name], fn)
	}
	return e
}

// Prelude holds the statements that every engine instance runs once before any
// query: those of planner/pgsql and of the system relations.
func Prelude(system SystemRelations) []string {
	return slices.Concat(pgsql.Prelude(), system.Prelude())
}

// Role implements pgwire.Engine.
func (e *Engine) Role(_ context.Context, user string) (pgwire.Role, error) {
	b := e.deps.Catalog.Rights()
	r := b.Named(user)
	if r == nil {
		return pgwire.Role{}, pgerr.New(codes.InvalidAuthorizationSpecification, "role \"%s\" does not exist", user)
	}
	out := pgwire.Role{
		Name: r.Name, CanLogin: r.CanLogin, Verifier: r.Verifier, Superuser: r.Superuser, ValidUntil: r.ValidUntil,
		Limited: r.Limited, ConnectionsMax: int(r.ConnectionLimit),
	}
	for of := range b.Members(r.OID) {
		out.MemberOf = append(out.MemberOf, b.Name(of))
	}
	return out, nil
}

// Open implements pgwire.Engine.
func (e *Engine) Open(_ context.Context, st pgwire.Startup) (pgwire.Session, error) {
	if st.Database != e.deps.Database {
		return nil, pgerr.New(codes.InvalidCatalogName, "database \"%s\" does not exist", st.Database).
			WithHint("The database is named \"%s\".", e.deps.Database)
	}
	b := e.deps.Catalog.Rights()
	role := b.Named(st.User)
	if role == nil {
		return nil, pgerr.New(codes.InvalidAuthorizationSpecification, "role \"%s\" does not exist", st.User)
	}
	if b.Has(role.OID, right.Object{Class: right.Database}, right.Connect) == 0 {
		return nil, pgerr.New(codes.InsufficientPrivilege, "permission denied for database \"%s\"", st.Database).
			WithDetail("User does not have CONNECT privilege.")
	}
	server := map[string]string{}
	maps.Copy(server, e.deps.Settings)
	maps.Copy(server, map[string]string{
		"server_version": e.deps.Version, "server_version_num": versionNumber(e.deps.Version),
		"is_superuser": "off", "session_authorization": st.User,
	})
	if role.Superuser {
		server["is_superuser"] = "on"
	}
	begins := beginnings(b, role)
	for _, l := range begins {
		maps.Copy(server, l.values)
	}
	client := startupSettings(st.Params)
	become := client["role"]
	delete(client, "role")
	values, err := setting.NewValues(server, client)
	if err != nil {
		return nil, setting.Starting(client, err)
	}
	for _, l := range slices.Backward(begins) {
		values.From(l.source, l.values)
	}
	s := newSession(e, st, values)
	s.login, s.became = role.OID, map[string]uint32{st.User: role.OID}
	if become != "" {
		if err := s.setIdentity("role", become, false); err != nil {
			return nil, err
		}
	}
	s.opened()
	return s, nil
}

// beginning are values with which sessions begin, and what pg_settings.source says of them.
type beginning struct {
	source string
	values map[string]string
}

// beginnings are those of a role; later ones count.
func beginnings(b *right.Book, role *right.Role) []beginning {
	out := []beginning{{"user", role.Settings}, {"database user", role.Local}}
	if d := b.Entry(right.Object{Class: right.Database}); d != nil {
		out = append([]beginning{{"global", d.RoleSettings}, {"database", d.Settings}}, out...)
	}
	return out
}

// startupSettings leaves out what is no setting. The one that says who the session is has its
// name in lower case, however the client wrote it.
func startupSettings(params map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range params {
		switch strings.ToLower(k) {
		case "user", "database", "options", "replication":
		case "role":
			out["role"] = v
		default:
			if !strings.HasPrefix(k, "_pq_.") {
				out[k] = v
			}
		}
	}
	return out
}

// versionNumber turns "15.8" into "150008".
func versionNumber(v string) string {
	var major, minor int
	_, _ = fmt.Sscanf(v, "%d.%d", &major, &minor) // a version of ours
	return fmt.Sprintf("%d%04d", major, minor)
}

// clientError turns an error of a run into what PostgreSQL would say. An ended
// context and errors of the domain are left to the wire's table.
func clientError(ctx context.Context, err error) error {
	if _, ok := pgerr.As(err); ok || ctx.Err() != nil {
		return err
	}
	if e := EngineError(err); e != nil {
		return e
	}
	return err
}

// EngineError is what a client sees of an error of the query engine, nil when err is
// none: for statements too that use the engine beside queries.
func EngineError(err error) *pgerr.Error {
	var e *duckdb.EngineError
	switch {
	case errors.Is(err, duckdb.ErrOutOfMemory):
		return outOfMemory(err)
	case errors.As(err, &e):
		return engineError(e).WithCause(err)
	case errors.Is(err, duckdb.ErrWorkerDied):
		return pgerr.New(codes.System, "the query engine was restarted while it ran the query").
			WithDetail("No data is affected.").
			WithHint("Run the statement again. If that ends the same way, it may need more memory than there is.").
			WithCause(err)
	case errors.Is(err, duckdb.ErrClosed):
		return pgerr.New(codes.CannotConnectNow, "the database system is shutting down").WithCause(err)
	case errors.Is(err, duckdb.ErrCorrupt):
		return pgerr.New(codes.DataCorrupted, "the log is damaged where the query reads it").WithCause(err)
	case errors.Is(err, duckdb.ErrPlan):
		return pgerr.New(codes.Internal, "internal error").WithDetail("The server log has more.").WithCause(err)
	case errors.Is(err, duckdb.ErrSliceLost), errors.Is(err, lake.ErrNoSnapshot):
		return errTooOld.WithCause(err)
	}
	return nil
}

// outOfMemory is what a client sees of a query that memory, and disk instead of it, does not
// suffice for.
func outOfMemory(err error) *pgerr.Error {
	var e *duckdb.EngineError
	if errors.As(err, &e) && strings.Contains(e.Message, "failed to offload data block") {
		return pgerr.New(codes.ConfigurationLimitExceeded, "temporary file size exceeds engine-temp-limit").
			WithDetail("What the queries that run keep on disk for lack of memory is more than they may.").
			WithHint("Raise --engine-temp-limit or --engine-memory, or read less at once.").WithCause(err)
	}
	return pgerr.New(codes.OutOfMemory, "out of memory").
		WithDetail("The query needs more than the query engine may use.").
		WithHint("Raise --engine-memory, or read less at once.").WithCause(err)
}

// ownCode is how macros of planner/pgsql name their SQLSTATE: "22P02: message". An error of
// the encoder, or of a function in Go, may have a detail and a hint too.
var ownCode = regexp.MustCompile(`(?s)^([0-9A-Z]{5}): (.*?)(?:\nDETAIL: (.*?))?(?:\nHINT: (.*))?$`)

// FromWorker gives an error for clients that arose in the engine's worker the form in which
// it survives the way to the server, where EngineError makes it whole. Others it returns
// as they are.
func FromWorker(err error) error {
	e, ok := pgerr.As(err)
	if !ok {
		return err
	}
	message := string(e.Code) + ": " + e.Message
	if e.Detail != "" {
		message += "\nDETAIL: " + e.Detail
	}
	if e.Hint != "" {
		message += "\nHINT: " + e.Hint
	}
	return &duckdb.EngineError{Kind: duckdb.KindOther, Message: message}
}

// textTypes name the engine's types as PostgreSQL does.
var textTypes = map[string]string{
	"INT32": "integer", "INT64": "bigint", "INT16": "smallint", "INTEGER": "integer", "BIGINT": "bigint",
	"SMALLINT": "smallint",
	"DOUBLE":   "double precision", "FLOAT": "real", "BOOL": "boolean", "BOOLEAN": "boolean", "UUID": "uuid",
	"INT128": "numeric",
	"DATE":   "date", "TIMESTAMP": "timestamp without time zone", "TIME": "time without time zone",
}

var (
	badText  = regexp.MustCompile(`(?s)^Could not convert string ['"](.*)['"] to ([A-Z0-9]+)`)
	grouping = regexp.MustCompile(`column "([^"]*)" must appear in the GROUP BY clause`)
	wrongInt = regexp.MustCompile(`(?i)INT(16|32|64|128)|(SMALLINT|INTEGER|BIGINT)`)
	// wrongDecimal is a cast to a numeric that does not have the digits.
	wrongDecimal = regexp.MustCompile(`(?i)cast.* to (?:type )?DECIMAL\((\d+),(\d+)\)`)
	dateField    = regexp.MustCompile(`^(date|timestamp|time|interval) field value out of range: "(.*)"`)
)

func engineError(e *duckdb.EngineError) *pgerr.Error {
	msg := e.Message
	if m := ownCode.FindStringSubmatch(msg); m != nil {
		return pgerr.New(codes.Code(m[1]), "%s", m[2]).WithDetail("%s", m[3]).WithHint("%s", m[4])
	}
	switch {
	case e.Kind == duckdb.KindDivisionByZero || strings.HasPrefix(msg, "division by zero"):
		return pgerr.New(codes.DivisionByZero, "division by zero")
	case strings.Contains(msg, "More than one row returned by a subquery"):
		return pgerr.New(codes.CardinalityViolation, "more than one row returned by a subquery used as an expression")
	case strings.Contains(msg, "square root of a negative"):
		return pgerr.New(codes.InvalidArgumentForPowerFunction, "cannot take square root of a negative number")
	case strings.Contains(msg, "logarithm of"):
		return pgerr.New(codes.InvalidArgumentForLogarithm, "%s", strings.Replace(msg, "number", "number", 1))
	}
	if m := grouping.FindStringSubmatch(msg); m != nil {
		return pgerr.New(codes.Grouping,
			"column \"%s\" must appear in the GROUP BY clause or be used in an aggregate function", m[1])
	}
	if m := dateField.FindStringSubmatch(msg); m != nil {
		return pgerr.New(codes.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", m[2])
	}
	if m := badText.FindStringSubmatch(msg); m != nil && e.Kind == duckdb.KindInvalidText {
		name := textTypes[m[2]]
		switch {
		case m[2] == "DECIMAL" && strings.EqualFold(m[1], "nan"):
			return pgerr.New(codes.FeatureNotSupported, "NaN in a column of type numeric with a precision is not supported").
				WithHint("Take numeric without a precision, or double precision.")
		case m[2] == "DECIMAL":
			name = "numeric"
		case name == "":
			name = strings.ToLower(m[2])
		}
		return pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", name, m[1])
	}
	return byKind(e)
}

func byKind(e *duckdb.EngineError) *pgerr.Error {
	switch e.Kind {
	case duckdb.KindOutOfRange:
		return outOfRange(e.Message)
	case duckdb.KindInvalidText:
		return pgerr.New(codes.InvalidTextRepresentation, "%s", lowerFirst(e.Message))
	case duckdb.KindInvalidInput:
		return pgerr.New(codes.InvalidParameterValue, "%s", lowerFirst(e.Message))
	case duckdb.KindNotSupported, duckdb.KindBinder, duckdb.KindCatalog, duckdb.KindSyntax:
		return pgerr.New(codes.FeatureNotSupported, "the engine cannot run this query").WithDetail("%s",
			firstLine(e.Message))
	case duckdb.KindIO:
		if strings.Contains(e.Message, "No space left on device") {
			return pgerr.New(codes.DiskFull, "no space left on device").
				WithDetail("The query needs to keep on disk what memory does not hold.").
				WithHint("Make room on the disk of the data directory, or raise --engine-memory.")
		}
		return pgerr.New("58030", "could not read a file of the lake")
	case duckdb.KindInterrupted:
		return pgerr.New(codes.QueryCanceled, "canceling statement due to user request")
	}
	return pgerr.New(codes.Internal, "the engine failed").WithDetail("%s", firstLine(e.Message))
}

// outOfRange says which type a number does not fit, where the engine tells.
func outOfRange(msg string) *pgerr.Error {
	name := "numeric field overflow"
	if all := wrongInt.FindAllString(msg, -1); len(all) > 0 { // of a cast the last is what it is to be
		if t := textTypes[strings.ToUpper(all[len(all)-1])]; t != "" && t != "numeric" {
			name = t + " out of range"
		}
	}
	if strings.Contains(strings.ToLower(msg), "timestamp") {
		return pgerr.New(codes.DatetimeFieldOverflow, "timestamp out of range")
	}
	err := pgerr.New(codes.NumericValueOutOfRange, "%s", name)
	if m := wrongDecimal.FindStringSubmatch(msg); m != nil && name == "numeric field overflow" {
		precision, _ := strconv.Atoi(m[1]) // of digits that were matched
		scale, _ := strconv.Atoi(m[2])
		if precision < 38 { // else it is the engine's own, of a computation
			err = err.WithDetail("%s", numeric.OverflowDetail(precision, scale))
		}
	}
	return err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func lowerFirst(s string) string {
	s = firstLine(s)
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
