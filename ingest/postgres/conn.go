package postgres

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/charset"
	"github.com/skipprd/skipprd/ingest/postgres/outage"
	"github.com/skipprd/skipprd/ingest/postgres/visible"
	"github.com/skipprd/skipprd/pgwire/charmap"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/env"
)

// unavailable marks err as the source's.
func unavailable(verb string, err error) error { return outage.Wrap(verb, err) }

// dial opens an ordinary connection.
func (s *Source) dial(ctx context.Context) (*pgx.Conn, error) {
	cfg := s.cfg.conn.Copy()
	cfg.DialFunc = patient(cfg.DialFunc, s.clock)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, unavailable("connect", err)
	}
	return conn, nil
}

// dialReplication opens a connection that understands replication commands.
func (s *Source) dialReplication(ctx context.Context) (*pgconn.PgConn, error) {
	return s.dialReplicationAs(ctx, func(*pgconn.Config) {})
}

// dialReplicationAs is dialReplication with settings changed.
func (s *Source) dialReplicationAs(ctx context.Context, change func(*pgconn.Config)) (*pgconn.PgConn, error) {
	cfg := s.cfg.conn.Config.Copy()
	cfg.RuntimeParams["replication"] = "database"
	build := cfg.BuildFrontend
	var paced *pacedReader // of the last address tried, which is the one connected to
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		paced = &pacedReader{from: r, clock: s.clock}
		return build(paced, w)
	}
	change(cfg)
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, unavailable("connect for replication", err)
	}
	paced.socket = rawSocket(conn.Conn())
	return conn, nil
}

// withControl lends the control connection to f, connecting first where need be. The
// connection is thrown away after an error that is not the server's own answer.
func (s *Source) withControl(ctx context.Context, f func(conn *pgx.Conn) error) error {
	var conn *pgx.Conn
	select {
	case conn = <-s.control:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { s.returnControl(conn) }()
	if conn == nil || conn.IsClosed() {
		var err error
		if conn, err = s.dial(ctx); err != nil {
			conn = nil
			return err
		}
	}
	err := f(conn)
	if err != nil && code(err) == "" && !keepsConnection(err) {
		closeNow(conn.PgConn())
		conn = nil
	}
	return err
}

// lockWait is how long a question by the control connection waits for a table's lock
// before it gives the connection to others, in milliseconds.
const lockWait = 500

// withControlUnlocked is withControl for what waits for locks of tables, as the text of an
// expression does. Whoever has them may want the connection: a chunk that is being copied
// keeps an ALTER TABLE waiting, for which we wait, and asks for the names of its columns.
// So f is called again after a pause, as often as it takes.
func (s *Source) withControlUnlocked(ctx context.Context, f func(conn *pgx.Conn) error) error {
	for {
		err := s.withControl(ctx, func(conn *pgx.Conn) error {
			if err := run(ctx, conn.PgConn(), fmt.Sprintf("SET lock_timeout = %d", lockWait)); err != nil {
				return unavailable("limit waits for locks", err)
			}
			err := f(conn)
			if !conn.IsClosed() {
				err = errors.Join(err, run(ctx, conn.PgConn(), "SET lock_timeout = 0"))
			}
			return err
		})
		if code(err) != codeLockTimeout {
			return err
		}
		if err := s.clock.Sleep(ctx, lockWait*time.Millisecond); err != nil {
			return err
		}
	}
}

// charset is the encoding that we convert the database's texts from, as they come in copies
// and in the stream: the server would end these at a text that UTF-8 does not have. It is nil
// where there is nothing to convert, and where the server does not convert as we do.
func (s *Source) charset(ctx context.Context) (c *charset.Charset, err error) {
	s.mu.Lock()
	known := s.mu.texts
	s.mu.Unlock()
	if known.asked {
		return known.from, nil
	}
	err = s.withControl(ctx, func(conn *pgx.Conn) error {
		name := conn.PgConn().ParameterStatus("server_encoding")
		if c, err = charset.Of(name); err != nil || c == nil {
			return err
		}
		text, here := c.Sample()
		var there []byte
		const convert = "SELECT pg_catalog.convert($1::pg_catalog.bytea, $2::pg_catalog.name, 'UTF8')"
		if err := conn.QueryRow(ctx, convert, text, name).Scan(&there); err != nil && code(err) != deadletter.CodeNoUTF8 {
			return unavailable("compare encodings", err)
		}
		if !bytes.Equal(here, there) {
			s.log.Warn("source converts its encoding in a way of its own", env.KeyReason, name)
			c = nil
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.mu.texts.asked, s.mu.texts.from = true, c
	s.mu.Unlock()
	return c, nil
}

// asBytes is text in the database's encoding.
func asBytes(ctx context.Context, conn *pgconn.PgConn, text string) (string, error) {
	if charmap.IsASCII([]byte(text)) {
		return text, nil
	}
	row, err := oneRow(ctx, conn, "SELECT pg_catalog.encode(pg_catalog.convert_to("+quoteLiteral(text)+", pg_catalog.getdatabaseencoding()), 'hex')")
	if err != nil {
		return "", err
	}
	b, err := hex.DecodeString(row[0])
	return string(b), err
}

// inUTF8 is an error of a session that sends texts as they are.
func inUTF8(err error, texts *charset.Charset) error {
	var pg *pgconn.PgError
	if texts != nil && errors.As(err, &pg) {
		for _, s := range []*string{&pg.Message, &pg.Detail, &pg.Hint, &pg.Where} {
			*s = texts.String(*s)
		}
	}
	return err
}

// visible asks what others see, by the control connection.
func (s *Source) visible() visible.Source {
	return visible.Source{Lend: s.withControl, Clock: s.clock}
}

// awaitSeen waits until others see what a streamed transaction has done. The server may have taken
// our own stream for the synchronous standby that the transaction's commit waits for
// (synchronous_standby_names = '*' does), and that commit would wait for what we have after the
// wait. So we are none meanwhile, and the server goes by its other standbys.
func (s *Source) awaitSeen(ctx context.Context, xid uint32) error {
	v := s.visible()
	v.Slow = func() {
		s.noStandby.Store(true)
		s.pokeFeedback()
	}
	defer func() {
		if s.noStandby.CompareAndSwap(true, false) {
			s.pokeFeedback()
		}
	}()
	return v.Transaction(ctx, xid)
}

// keepsConnection says that err is about what we found, not about the connection.
func keepsConnection(err error) bool {
	var setup *SetupError
	return errors.As(err, &setup) || errors.Is(err, ErrSlotLost) || errors.Is(err, ErrSlotInUse) ||
		errors.Is(err, ErrOtherServer) || errors.Is(err, ErrDiverged)
}

func (s *Source) returnControl(conn *pgx.Conn) {
	s.mu.Lock()
	closed := s.mu.closed
	s.mu.Unlock()
	if closed && conn != nil {
		closeNow(conn.PgConn())
		conn = nil
	}
	s.control <- conn
}

// closeNow ends a connection without waiting for the server.
func closeNow(conn *pgconn.PgConn) {
	_ = conn.Conn().Close() // nothing depends on how it ended
	_ = conn.Close(context.Background())
}

// run executes statements by the simple protocol, without results.
func run(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	_, err := conn.Exec(ctx, sql).ReadAll()
	return err
}

// oneRow executes a query by the simple protocol and returns its only row as text.
func oneRow(ctx context.Context, conn *pgconn.PgConn, sql string) ([]string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, errors.New("query did not return one row")
	}
	out := make([]string, len(results[0].Rows[0]))
	for i, v := range results[0].Rows[0] {
		out[i] = string(v)
	}
	return out, nil
}

// quoteIdent writes a name as SQL.
func quoteIdent(parts ...string) string { return quote.Name(parts...) }

// quoteLiteral writes a string as SQL, for sessions with standard strings.
func quoteLiteral(text string) string { return quote.Literal(text) }
