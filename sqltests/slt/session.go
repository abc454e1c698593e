package slt

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sessionKey names a session: whose, and the word after "connection".
type sessionKey struct{ user, name string }

// session is a connection and the notices of its statement.
type session struct {
	conn    *pgx.Conn
	notices []string
	busy    string // the async statement that runs on it
}

// value is one cell as the server wrote it.
type value struct {
	text string
	null bool
}

// answer is what became of a statement: rows of its last result, or an error.
type answer struct {
	columns  []string
	oids     []uint32
	rows     [][]value
	affected int64
	notices  []string
	err      *pgconn.PgError
}

// session returns the session of a name, connected.
func (s *run) session(ctx context.Context, name string) (*session, error) {
	if name == "" {
		name = "default"
	}
	key := sessionKey{user: s.user, name: name}
	if c := s.sessions[key]; c != nil && (c.busy != "" || !c.conn.IsClosed()) {
		return c, nil
	}
	c, err := s.cfg.connect(ctx, key)
	if err != nil {
		return nil, err
	}
	s.sessions[key] = c
	return c, nil
}

func (c *Config) connect(ctx context.Context, key sessionKey) (*session, error) {
	dsn := c.DSN
	toSource := key.name == "source" && c.Source != ""
	if toSource {
		dsn = c.Source
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("server address: %w", err)
	}
	if key.user != "" {
		cfg.User = key.user
	}
	if c.databaseName != "" && !toSource {
		cfg.Database = c.databaseName
	}
	if c.schema != "" && !toSource {
		cfg.RuntimeParams["search_path"] = c.schema + ",public"
	}
	out := &session{}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		out.notices = append(out.notices, n.Severity+": "+n.Message)
	}
	if out.conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return out, nil
}

func (s *run) hangUp(key sessionKey) error {
	c := s.sessions[key]
	if c == nil {
		return nil
	}
	if c.busy != "" {
		return fmt.Errorf("statement %s still runs there", c.busy)
	}
	delete(s.sessions, key)
	_ = c.conn.Close(context.Background()) // a client goes away
	return nil
}

func (s *run) hangUpAll() error {
	for key := range s.sessions {
		if err := s.hangUp(key); err != nil {
			return err
		}
	}
	return nil
}

// prepare expands a record's SQL and finds its session.
func (s *run) prepare(ctx context.Context, rec *Record) (string, *session, error) {
	sql, err := s.expand(rec.SQL)
	if err != nil {
		return "", nil, err
	}
	name, err := s.expand(rec.Connection)
	if err != nil {
		return "", nil, err
	}
	on, err := s.session(ctx, name)
	if err == nil && on.busy != "" {
		err = fmt.Errorf("statement %s still runs on this connection; await it, or take another", on.busy)
	}
	return sql, on, err
}

// execute runs sql. The error is one of the connection; one of the statement is in the
// answer.
func (c *Config) execute(ctx context.Context, on *session, sql string) (*answer, error) {
	if c.RecordTimeout > 0 {
		var cancel context.CancelFunc
		cause := fmt.Errorf("no answer within %v", c.RecordTimeout)
		ctx, cancel = context.WithTimeoutCause(ctx, c.RecordTimeout, cause)
		defer cancel()
	}
	on.notices = nil
	res, err := c.send(ctx, on.conn.PgConn(), sql)
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr):
		return &answer{err: pgErr, notices: on.notices}, nil
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	out := &answer{notices: on.notices}
	if res == nil {
		return out, nil
	}
	out.affected = res.CommandTag.RowsAffected()
	for _, f := range res.FieldDescriptions {
		out.columns = append(out.columns, f.Name)
		out.oids = append(out.oids, f.DataTypeOID)
	}
	for _, row := range res.Rows {
		cells := make([]value, len(row))
		for i, v := range row {
			cells[i] = value{text: string(v), null: v == nil}
		}
		out.rows = append(out.rows, cells)
	}
	return out, nil
}

// copyIn recognises a statement that waits for data, of which a file has none.
var copyIn = regexp.MustCompile(`(?is)^\s*copy\b.*\bfrom\s+stdin\b`)

func (c *Config) send(ctx context.Context, conn *pgconn.PgConn, sql string) (*pgconn.Result, error) {
	if copyIn.MatchString(sql) {
		tag, err := conn.CopyFrom(ctx, strings.NewReader(""), sql)
		return &pgconn.Result{CommandTag: tag}, err
	}
	if c.Extended {
		res := read(conn.ExecParams(ctx, sql, nil, nil, nil, nil))
		return res, res.Err
	}
	var last *pgconn.Result
	all := conn.Exec(ctx, sql)
	for all.NextResult() {
		last = read(all.ResultReader())
	}
	return last, all.Close()
}

// read reads a result, whose columns are known also where it has no rows.
func read(r *pgconn.ResultReader) *pgconn.Result {
	columns := slices.Clone(r.FieldDescriptions())
	res := r.Read()
	res.FieldDescriptions = columns
	return res
}

// let sets variables to the one row of a query.
func (s *run) let(ctx context.Context, rec *Record) error {
	sql, on, err := s.prepare(ctx, rec)
	if err != nil {
		return err
	}
	ans, err := s.cfg.execute(ctx, on, sql)
	if err != nil {
		return err
	}
	if ans.err != nil {
		return unexpected(ans.err)
	}
	names := strings.FieldsFunc(strings.Join(rec.Words[1:], " "), func(r rune) bool { return r == ',' || r == ' ' })
	if len(ans.rows) != 1 || len(ans.rows[0]) != len(names) {
		return fmt.Errorf("let %s: the query gave %d rows of %d columns", strings.Join(names, ", "), len(ans.rows), len(ans.columns))
	}
	for i, n := range names {
		name, dollar := strings.CutPrefix(n, "$")
		if s.vars[name] = ans.rows[0][i].text; ans.rows[0][i].null {
			s.vars[name] = "NULL"
		}
		s.dollar[name] = dollar
	}
	return nil
}
