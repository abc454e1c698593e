package moment

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/ingest/postgres/lsn"
	"github.com/skipprd/skipprd/ingest/postgres/outage"
	"github.com/skipprd/skipprd/ingest/verify"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Config is what a session is told.
type Config struct {
	// Slot names the temporary slot, which must not exist.
	Slot string
	// Publications are those that the pipeline streams: their row filters hold here too.
	Publications []string
	// RowsPerSecond bounds the reading; 0 does not.
	RowsPerSecond int64
	// Version of the server, as server_version_num.
	Version int
	// Pages are how many pages of a table a query reads; default 4096, 32 MiB.
	Pages int64
}

// versionTIDRange is the first version that reads a range of pages without reading all.
const versionTIDRange = 140000

// versionRowFilter is the first version with row filters.
const versionRowFilter = 150000

// lockTimeout is how long a table's lock is waited for: behind the lock that we wait for,
// others would wait for us.
const lockTimeout = 5 * time.Second

// Session is a transaction that reads one moment. Used by one goroutine. It implements
// verify.Source, and verify.Reader for the table that is open.
type Session struct {
	conn  *pgconn.PgConn
	cfg   Config
	clock env.Clock
	point uint64

	table  *verify.Table // open
	leaves []leaf
	filter string // of the publication, "" for none
}

var (
	_ verify.Source = (*Session)(nil)
	_ verify.Reader = (*Session)(nil)
)

// leaf is an ordinary table that holds rows of the open one.
type leaf struct {
	oid   string
	name  string // as SQL
	pages int64
	rows  int64 // estimated
}

// Open begins the transaction on a connection that takes replication commands, which the
// session owns from here on, error or not. The server waits until every transaction that
// is open now has ended.
func Open(ctx context.Context, conn *pgconn.PgConn, cfg Config, clock env.Clock) (*Session, error) {
	if cfg.Pages <= 0 {
		cfg.Pages = 4096
	}
	s := &Session{conn: conn, cfg: cfg, clock: clock}
	if err := s.begin(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) begin(ctx context.Context) error {
	if _, err := s.query(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	slot := quote.Name(s.cfg.Slot)
	rows, err := s.query(ctx, "CREATE_REPLICATION_SLOT "+slot+" TEMPORARY LOGICAL pgoutput USE_SNAPSHOT")
	if err != nil {
		return fmt.Errorf("make a slot for the moment: %w", err)
	}
	if len(rows) != 1 || len(rows[0]) < 2 {
		return errors.New("make a slot for the moment: the server gave no position")
	}
	high, low, _ := strings.Cut(string(rows[0][1]), "/")
	h, err1 := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("make a slot for the moment: %w", err)
	}
	s.point = h<<32 | l
	if _, err := s.query(ctx, "DROP_REPLICATION_SLOT "+slot); err != nil {
		return fmt.Errorf("drop the slot of the moment: %w", err)
	}
	_, err = s.query(ctx, "SET LOCAL lock_timeout = "+strconv.FormatInt(lockTimeout.Milliseconds(), 10))
	return err
}

// Before implements verify.Source.
func (s *Session) Before() int64 { return int64(s.point) } // an order token is an LSN

// Position implements verify.Source.
func (s *Session) Position() change.Position {
	return lsn.LSN(s.point).Position()
}

// Close implements verify.Source.
func (s *Session) Close() {
	_ = s.conn.Conn().Close() // nothing depends on how it ended
	_ = s.conn.Close(context.Background())
}

// query runs a statement by the simple protocol, the only one of such a connection, and
// returns its rows as text. They are few.
func (s *Session) query(ctx context.Context, sql string) ([][][]byte, error) {
	results, err := s.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, sourceError(err)
	}
	if len(results) == 0 {
		return nil, nil
	}
	return results[len(results)-1].Rows, nil
}

// stream runs a query and hands over its rows as they come.
func (s *Session) stream(ctx context.Context, sql string, emit func(row [][]byte) error) error {
	reader := s.conn.Exec(ctx, sql)
	var failed error
	for reader.NextResult() {
		rows := reader.ResultReader()
		for rows.NextRow() {
			if failed == nil {
				failed = emit(rows.Values())
			}
		}
		_, _ = rows.Close() // reader says it again
	}
	if err := reader.Close(); err != nil && failed == nil {
		return sourceError(err)
	}
	return failed
}

// sourceError marks err as the source's.
func sourceError(err error) error { return outage.Wrap("read the source", err) }

// SQLSTATEs that say something about one table.
const (
	codeUndefinedTable  = "42P01"
	codeUndefinedColumn = "42703"
	codePrivilege       = "42501"
	codeLockTimeout     = "55P03"
	codeNoUTF8          = "22P05"
)

// skip turns an error that is about one table into why it cannot be compared.
func skip(err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return err
	}
	switch server.Code {
	case codeUndefinedTable:
		return &verify.SkipError{Reason: "it was dropped or renamed at the source"}
	case codeUndefinedColumn:
		return &verify.SkipError{Reason: "a column was dropped or renamed at the source, and the pipeline has not got there: run it again"}
	case codePrivilege:
		return &verify.SkipError{Reason: "the role may not read it: GRANT SELECT on it to the connection's user"}
	case codeNoUTF8:
		return &verify.SkipError{Reason: "its name, or that of a partition of it, or a text of it that is not taken in, has what UTF-8 has no equivalent of"}
	case codeLockTimeout:
		return &verify.SkipError{Reason: "it is locked at the source: run it again", Passes: true}
	}
	return err
}

// leavesQuery lists the ordinary tables that hold the rows of table %d at the moment:
// their names now, the files they have now and had then, their size.
const leavesQuery = `WITH RECURSIVE tree(relid) AS (
  SELECT %[1]d::oid
  UNION ALL
  SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_class p ON p.oid = tree.relid AND p.relkind = 'p'
    JOIN pg_catalog.pg_inherits i ON i.inhparent = tree.relid)
SELECT c.oid, c.oid::pg_catalog.regclass::text, coalesce(pg_catalog.pg_relation_filenode(c.oid), 0), c.relfilenode,
       (coalesce(pg_catalog.pg_relation_size(c.oid), 0) / current_setting('block_size')::int8)::int8,
       greatest(c.reltuples, 0)::int8
  FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.relid
 WHERE c.relkind = 'r' ORDER BY c.oid`

// Open implements verify.Source.
func (s *Session) Open(ctx context.Context, t *verify.Table) (verify.Reader, error) {
	if _, err := s.query(ctx, "SAVEPOINT opened"); err != nil {
		return nil, err
	}
	if err := s.open(ctx, t); err != nil {
		return nil, errors.Join(skip(err), s.Done(ctx)) // Done fails where the connection is gone
	}
	return s, nil
}

func (s *Session) open(ctx context.Context, t *verify.Table) error {
	s.table, s.leaves, s.filter = t, nil, ""
	found, err := s.query(ctx, fmt.Sprintf(leavesQuery, t.OID))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return &verify.SkipError{Reason: "the source had no such table at the position"}
	}
	for _, r := range found {
		if string(r[0]) == string(r[1]) {
			return &verify.SkipError{Reason: "it, or a partition of it, was dropped at the source"}
		}
		pages, err1 := strconv.ParseInt(string(r[4]), 10, 64)
		rows, err2 := strconv.ParseInt(string(r[5]), 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("read the size of %s: %w", r[1], err)
		}
		l := leaf{oid: string(r[0]), name: string(r[1]), pages: pages, rows: rows}
		err := s.locked(ctx, l, func() error {
			_, err := s.query(ctx, "LOCK TABLE ONLY "+l.name+" IN ACCESS SHARE MODE")
			return err
		})
		if err != nil {
			return err
		}
		s.leaves = append(s.leaves, l)
	}
	return s.readFilter(ctx, t)
}

// lockedQuery is what a leaf is called now, and the files that it has now and had at the moment.
const lockedQuery = `SELECT c.oid::pg_catalog.regclass::text, coalesce(pg_catalog.pg_relation_filenode(c.oid), 0), c.relfilenode
  FROM pg_catalog.pg_class c WHERE c.oid = %s`

// locked has read ask for rows of a leaf, by which the server locks it, and sees that it was the
// leaf and has the rows of the moment.
func (s *Session) locked(ctx context.Context, l leaf, read func() error) error {
	return s.released(ctx, func() error {
		if err := read(); err != nil {
			return err
		}
		now, err := s.query(ctx, fmt.Sprintf(lockedQuery, l.oid))
		switch {
		case err != nil:
			return err
		case len(now) != 1 || string(now[0][0]) != l.name:
			return &verify.SkipError{Reason: "it was renamed at the source: run it again", Passes: true}
		case string(now[0][1]) != string(now[0][2]):
			return &verify.SkipError{Reason: "it was truncated or rewritten at the source after the position: run it again", Passes: true}
		}
		return nil
	})
}

// released lets go of the locks that read takes: whoever waits to change a table, and all who wait
// behind that one, wait no longer than for this. After an error only Done helps.
func (s *Session) released(ctx context.Context, read func() error) error {
	if _, err := s.query(ctx, "SAVEPOINT locked"); err != nil {
		return err
	}
	if err := read(); err != nil {
		return err
	}
	_, err := s.query(ctx, "ROLLBACK TO SAVEPOINT locked; RELEASE SAVEPOINT locked")
	return err
}

// readFilter reads the publication's row filter, "" when some publication sends all rows.
func (s *Session) readFilter(ctx context.Context, t *verify.Table) error {
	if s.cfg.Version < versionRowFilter || len(s.cfg.Publications) == 0 {
		return nil
	}
	names := make([]string, len(s.cfg.Publications))
	for i, p := range s.cfg.Publications {
		names[i] = quote.Literal(p)
	}
	rows, err := s.query(ctx, fmt.Sprintf(`SELECT pg_catalog.pg_get_expr(r.prqual, r.prrelid)
	  FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid
	 WHERE r.prrelid = %d AND p.pubname IN (%s)`, t.OID, strings.Join(names, ", ")))
	if err != nil {
		return err
	}
	var terms []string
	for _, r := range rows {
		if r[0] == nil {
			return nil
		}
		terms = append(terms, "("+string(r[0])+")")
	}
	s.filter = strings.Join(terms, " OR ")
	return nil
}

// Done implements verify.Reader.
func (s *Session) Done(ctx context.Context) error {
	s.table, s.leaves = nil, nil
	_, err := s.query(ctx, "ROLLBACK TO SAVEPOINT opened; RELEASE SAVEPOINT opened")
	return err
}
