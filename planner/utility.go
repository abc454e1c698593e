package planner

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/planner/advisory"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/querylog"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/planner/timeout"
)

// result is what a utility statement returns.
type result struct {
	// tag is the command tag; "SELECT" and "FETCH" get the number of rows.
	tag  string
	rows [][]any
}

// utility is a statement that the server answers itself. Immutable.
type utility struct {
	session *session
	empty   bool
	columns []pgwire.Column
	params  []uint32
	// anyTime says that it runs in an aborted transaction too.
	anyTime bool
	// outside says that it starts no implicit transaction (it controls them).
	outside bool
	run     func(ctx context.Context, sink pgwire.Sink) (*result, error)
}

// prepareCheckpoint answers CHECKPOINT: what was committed is on the disk, or in the object
// store, since its commit was answered.
func (s *session) prepareCheckpoint() pgwire.Statement {
	return &utility{session: s, run: func(context.Context, pgwire.Sink) (*result, error) {
		b := s.book()
		if role := s.who(b).Current; !b.Superuser(role) && !b.HasRole(role, right.Checkpoint) {
			return nil, pgerr.New(codes.InsufficientPrivilege, "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT")
		}
		return &result{tag: "CHECKPOINT"}, nil
	}}
}

// prepareExtension prepares CREATE and DROP EXTENSION; nil for any other statement.
func (s *session) prepareExtension(n *pg.Node) pgwire.Statement {
	switch drop := n.GetDropStmt(); {
	case n.GetCreateExtensionStmt() != nil:
		return s.createExtension(n.GetCreateExtensionStmt())
	case drop != nil && drop.RemoveType == pg.ObjectType_OBJECT_EXTENSION:
		return s.dropExtension(drop)
	}
	return nil
}

// standIns are extensions that migrations ask for, without the need of which they mostly are, by what
// is said of them.
var standIns = map[string]string{
	"plpgsql":   "There are no procedural languages here: DO has statements, IF and EXCEPTION, and CREATE FUNCTION is refused.",
	"pgcrypto":  "gen_random_uuid(), sha256() and its kin are here without it; its other functions are not.",
	"uuid-ossp": "uuid_generate_v4() is here without it; its other functions are not.",
}

// createExtension answers CREATE EXTENSION: there is one, and it is there already. IF NOT EXISTS is
// taken of those that migrations ask for in any case, with a warning.
func (s *session) createExtension(n *pg.CreateExtensionStmt) pgwire.Statement {
	return &utility{session: s, run: func(_ context.Context, sink pgwire.Sink) (*result, error) {
		e := pgerr.Notice("extension \"%s\" already exists, skipping", n.Extname)
		e.Code = codes.DuplicateObject
		switch {
		case n.Extname != "skippr" && n.IfNotExists && standIns[n.Extname] != "":
			e = warning(codes.Warning, "extension \"%s\" is not available, skipping", n.Extname).WithDetail("%s", standIns[n.Extname])
		case n.Extname != "skippr":
			return nil, pgerr.New(codes.FeatureNotSupported, "extension \"%s\" is not available", n.Extname).
				WithDetail("Extensions cannot be added to this server.")
		case !n.IfNotExists:
			return nil, pgerr.New(codes.DuplicateObject, "extension \"skippr\" already exists")
		}
		return &result{tag: "CREATE EXTENSION"}, s.notice(sink, e)
	}}
}

// dropExtension answers DROP EXTENSION.
func (s *session) dropExtension(n *pg.DropStmt) pgwire.Statement {
	return &utility{session: s, run: func(_ context.Context, sink pgwire.Sink) (*result, error) {
		for _, o := range n.Objects {
			name := o.GetString_().GetSval()
			switch {
			case name == "skippr":
				return nil, pgerr.New(codes.DependentObjectsStillExist, "cannot drop extension skippr because the server is of it")
			case !n.MissingOk:
				return nil, pgerr.New(codes.UndefinedObject, "extension \"%s\" does not exist", name)
			}
			if err := s.notice(sink, pgerr.Notice("extension \"%s\" does not exist, skipping", name)); err != nil {
				return nil, err
			}
		}
		return &result{tag: "DROP EXTENSION"}, nil
	}}
}

// vacuumOptions are those of VACUUM, and of ANALYZE true.
var vacuumOptions = map[string]bool{
	"verbose": true, "skip_locked": true, "analyze": false, "freeze": false, "full": false, "disable_page_skipping": false,
	"index_cleanup": false, "process_toast": false, "truncate": false, "parallel": false,
}

// prepareVacuum answers VACUUM and ANALYZE, which find nothing to do: lake and log are
// kept tidy without them, and there are no statistics.
func (s *session) prepareVacuum(n *pg.VacuumStmt) (pgwire.Statement, error) {
	word, analyze := "VACUUM", !n.IsVacuumcmd
	if analyze {
		word = "ANALYZE"
	}
	for _, o := range n.Options {
		name := o.GetDefElem().GetDefname()
		if both, known := vacuumOptions[name]; !known || !both && !n.IsVacuumcmd {
			return nil, pgerr.New(codes.Syntax, "unrecognized %s option \"%s\"", word, name)
		}
		analyze = analyze || name == "analyze"
	}
	return &utility{session: s, run: func(_ context.Context, sink pgwire.Sink) (*result, error) {
		if n.IsVacuumcmd && s.tx.open {
			return nil, pgerr.New(codes.ActiveSQLTransaction, "VACUUM cannot run inside a transaction block")
		}
		for _, r := range n.Rels {
			if err := s.vacuum(r.GetVacuumRelation(), word, analyze, sink); err != nil {
				return nil, err
			}
		}
		return &result{tag: word}, nil
	}}, nil
}

// vacuum looks whether a table, and columns of it, are there.
func (s *session) vacuum(r *pg.VacuumRelation, word string, analyze bool, sink pgwire.Sink) error {
	snap, release := s.now()
	defer release()
	names := s.namesOf(snap)
	rel, err := pgsql.FindRelation(r.Relation, s.env(names))
	if err != nil {
		return hintElsewhere(err, names)
	}
	if len(r.VaCols) > 0 && !analyze {
		return pgerr.New(codes.FeatureNotSupported, "ANALYZE option must be specified when a column list is provided")
	}
	for _, c := range r.VaCols {
		name := c.GetString_().GetSval()
		if !slices.ContainsFunc(rel.Columns, func(c pgsql.RelationColumn) bool { return c.Name == name }) {
			return pgerr.New(codes.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, rel.Name)
		}
	}
	if rel.View == "" {
		return nil
	}
	return s.notice(sink, warning(codes.Warning, "skipping \"%s\" --- cannot %s non-tables or special system tables", rel.Name, strings.ToLower(word)))
}

// Empty implements pgwire.Statement.
func (u *utility) Empty() bool { return u.empty }

// Params implements pgwire.Statement.
func (u *utility) Params() []uint32 { return u.params }

// Columns implements pgwire.Statement.
func (u *utility) Columns() []pgwire.Column { return u.columns }

// AllowedInAborted implements pgwire.Statement.
func (u *utility) AllowedInAborted() bool { return u.anyTime }

// Bind implements pgwire.Statement.
func (u *utility) Bind(_ context.Context, _ [][]byte, _, resultFormats []int16) (pgwire.Portal, error) {
	return &utilityPortal{utility: u, formats: resultFormats}, nil
}

// utilityPortal runs a utility statement once and hands out its rows.
type utilityPortal struct {
	utility *utility
	formats []int16
	result  *result
	at      int
}

// Columns implements pgwire.Portal.
func (p *utilityPortal) Columns() []pgwire.Column { return p.utility.columns }

// Execute implements pgwire.Portal.
func (p *utilityPortal) Execute(ctx context.Context, sink pgwire.Sink, maxRows int) (string, bool, error) {
	u := p.utility
	if u.empty {
		return "", true, nil
	}
	if p.result == nil {
		r, err := p.first(ctx, sink)
		if err != nil {
			return "", false, err
		}
		p.result = r
	}
	rows := p.result.rows[p.at:]
	if maxRows > 0 && len(rows) > maxRows {
		rows = rows[:maxRows]
	}
	var buf []byte
	for _, r := range rows {
		var err error
		if buf, err = u.session.row(buf, u.columns, p.formats, r); err != nil {
			return "", false, err
		}
	}
	if len(rows) > 0 {
		if err := sink.Rows(buf, len(rows)); err != nil {
			return "", false, err
		}
	}
	p.at += len(rows)
	return p.tag(len(rows)), p.at == len(p.result.rows), nil
}

func (p *utilityPortal) tag(n int) string {
	if t := p.result.tag; t == "SELECT" || t == "FETCH" {
		return fmt.Sprintf("%s %d", t, n)
	}
	return p.result.tag
}

func (p *utilityPortal) first(ctx context.Context, sink pgwire.Sink) (*result, error) {
	s := p.utility.session
	if s.tx.aborted && !p.utility.anyTime {
		return nil, errAborted
	}
	if !p.utility.outside {
		s.enter()
	}
	ctx, stop := s.limitTime(ctx)
	defer stop()
	r, err := p.utility.run(ctx, sink)
	if err != nil {
		return nil, err
	}
	return r, s.tell(sink)
}

// Close implements pgwire.Portal.
func (p *utilityPortal) Close() {}

var _ ddl.Querier = ddlSession{}

// Query implements ddl.Querier: it runs a query of a statement's own in its session.
func (d ddlSession) Query(ctx context.Context, sql string) ([][]string, error) {
	st, err := d.session.prepare(ctx, sql, nil)
	if err != nil {
		return nil, err
	}
	portal, err := st.Bind(ctx, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	defer portal.Close()
	rows := &textRows{Sink: d.sink}
	if _, _, err := portal.Execute(ctx, rows, 0); err != nil {
		return nil, err
	}
	return rows.all, nil
}

// textRows is a sink that keeps rows; what else is told goes to the client.
type textRows struct {
	pgwire.Sink
	all [][]string
}

// Rows implements pgwire.Sink. A null is an empty text.
func (t *textRows) Rows(messages []byte, n int) error {
	const header = 5 // kind and length
	for range n {
		if len(messages) < header+2 {
			return fmt.Errorf("row of %d bytes", len(messages))
		}
		size := int(binary.BigEndian.Uint32(messages[1:])) + 1
		if size < header+2 || size > len(messages) {
			return fmt.Errorf("row of %d bytes in %d", size, len(messages))
		}
		b := messages[header:size]
		row := make([]string, binary.BigEndian.Uint16(b))
		b = b[2:]
		for i := range row {
			if len(b) < 4 {
				return fmt.Errorf("value of a row is cut short")
			}
			length := int32(binary.BigEndian.Uint32(b))
			if b = b[4:]; length < 0 {
				continue
			}
			if int(length) > len(b) {
				return fmt.Errorf("value of a row is cut short")
			}
			row[i], b = string(b[:length]), b[length:]
		}
		t.all, messages = append(t.all, row), messages[size:]
	}
	return nil
}

// prepareListen prepares LISTEN, and UNLISTEN of a channel or, when it is "", of all.
func (s *session) prepareListen(tag, channel string) pgwire.Statement {
	return &utility{session: s, run: func(context.Context, pgwire.Sink) (*result, error) {
		s.notes.OnCommit(channel, tag == "LISTEN")
		return &result{tag: tag}, nil
	}}
}

// Listens implements pgwire.Notifier.
func (s *session) Listens() bool { return s.notes.Listens() }

// Notifications implements pgwire.Notifier.
func (s *session) Notifications() []pgwire.Notification {
	var out []pgwire.Notification
	for _, n := range s.notes.Take() {
		out = append(out, pgwire.Notification{PID: n.PID, Channel: n.Channel, Payload: n.Payload})
	}
	return out
}

// listOf is an array of texts as SQL.
func listOf(texts []string) string {
	parts := make([]string, len(texts))
	for i, t := range texts {
		parts[i] = quote.Text(t)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// warn sends the warnings that calls have left.
func (s *session) warn(sink pgwire.Sink) error {
	warnings := s.warnings
	s.warnings = nil
	for _, w := range warnings {
		if err := s.notice(sink, w); err != nil {
			return err
		}
	}
	return nil
}

// void is what a function of no result returns, as SQL.
const void = "''"

// call does an EffectCall, and returns its result as SQL. A call with a null does nothing,
// but for that of pg_notify, to which it is an empty text.
func (s *session) call(ctx context.Context, e pgsql.Effect, params []*string) (string, error) {
	args, err := s.effectArgs(ctx, e.Args, params)
	if err != nil {
		return "", err
	}
	return s.callWith(ctx, e.Name, args)
}

// callWith does a call with its arguments as texts, nil for a null.
func (s *session) callWith(ctx context.Context, name string, args []*string) (string, error) {
	if name == "pg_notify" {
		text := func(t *string) string {
			if t == nil {
				return ""
			}
			return *t
		}
		return void, s.notes.Notify(text(args[0]), text(args[1]))
	}
	if name == "pg_advisory_unlock_all" {
		s.locks.UnlockAll()
		return void, nil
	}
	var n [2]int64
	for i, t := range args {
		if t == nil {
			return "NULL", nil
		}
		var err error
		if n[i], err = strconv.ParseInt(*t, 10, 64); err != nil {
			return "", pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type bigint: \"%s\"", *t)
		}
	}
	key := advisory.Big(n[0])
	if len(args) == 2 {
		key = advisory.Pair(int32(n[0]), int32(n[1]))
	}
	return s.lockAdvisory(ctx, name, key)
}

// lockAdvisory does one of the functions of advisory locks.
func (s *session) lockAdvisory(ctx context.Context, name string, key advisory.Key) (string, error) {
	mode := advisory.Exclusive
	if strings.HasSuffix(name, "_shared") {
		mode = advisory.Share
	}
	tx := strings.Contains(name, "_xact_")
	switch {
	case strings.HasPrefix(name, "pg_try_"):
		ok, err := s.locks.Try(key, mode, tx)
		return strconv.FormatBool(ok), err
	case strings.HasPrefix(name, "pg_advisory_unlock"):
		if s.locks.Unlock(key, mode) {
			return "true", nil
		}
		s.warnings = append(s.warnings, warning("01000", "you don't own a lock of type %s", mode))
		return "false", nil
	}
	limited, stop := timeout.With(ctx, s.engine.deps.Clock, setting.Duration(s.values.Value("lock_timeout")), errLockTimeout)
	defer stop()
	defer waits.On(ctx, waits.Advisory)()
	return void, s.locks.Lock(limited, key, mode, tx)
}

// effectArgs are the arguments of a call as texts, nil for a null.
func (s *session) effectArgs(ctx context.Context, args []pgsql.EffectArg, params []*string) ([]*string, error) {
	out := make([]*string, len(args))
	var list []string
	var columns []pgwire.Column
	for i, a := range args {
		out[i] = a.Text
		if a.SQL != "" {
			list = append(list, "COALESCE('=' || "+a.SQL+", '')") // a null is no text
			columns = append(columns, column("a", pgsql.OIDText))
		}
	}
	if len(list) == 0 {
		return out, nil
	}
	rows, frame, err := s.start(ctx, &pgsql.Analysis{SQL: "SELECT " + strings.Join(list, ", ")}, params,
		s.output(duckdb.OutputRows, columns, nil))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var got textRows
	if frame == nil || got.Rows(frame.Data, 1) != nil || len(got.all[0]) != len(list) {
		return nil, pgerr.New(codes.Internal, "arguments were not computed")
	}
	for i, a := range args {
		if a.SQL == "" {
			continue
		}
		if text, ok := strings.CutPrefix(got.all[0][0], "="); ok {
			out[i] = &text
		}
		got.all[0] = got.all[0][1:]
	}
	return out, nil
}

// limitTime puts statement_timeout on a statement. stop ends the watch and waits for
// it; it must be called.
func (s *session) limitTime(ctx context.Context) (limited context.Context, stop func()) {
	return timeout.With(ctx, s.engine.deps.Clock, setting.Duration(s.values.Value("statement_timeout")), pgwire.ErrStatementTimeout)
}

var _ pgwire.StatementWatcher = (*session)(nil)

// Began implements pgwire.StatementWatcher.
func (s *session) Began(step, text string) {
	if s.log.Log != nil {
		s.log.Began(step, text)
	}
}

// Ended implements pgwire.StatementWatcher.
func (s *session) Ended(step, text string, took time.Duration) {
	if s.log.Log != nil {
		s.log.Ended(step, text, took)
	}
}

// Failed implements pgwire.StatementWatcher.
func (s *session) Failed(step, text string, e *pgerr.Error) {
	if s.log.Log != nil {
		s.log.Failed(step, text, e)
	}
}

// opened has the session log, if there is a log.
func (s *session) opened() {
	if d := &s.engine.deps; d.Log != nil {
		st := &s.startup
		s.log = querylog.Session{Log: d.Log.With("pid", st.PID, "user", st.User, "database", st.Database, "remote", st.RemoteAddr), Values: s.values}
		s.began = d.Clock.Now()
		s.log.Opened()
	}
}

// closed logs the session's end.
func (s *session) closed() {
	if s.log.Log != nil {
		s.log.Closed(s.engine.deps.Clock.Since(s.began))
	}
}
