package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/charset"
	"github.com/skipprd/skipprd/ingest/postgres/visible"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// temporarySuffix precedes a random number in the name of a session's own slot.
const temporarySuffix = "_c"

// backfill is a reading session. Its holder keeps the snapshot for as long as the
// session lives, so that a reader can be replaced at any time.
type backfill struct {
	source  *Source
	exact   bool
	horizon LSN
	version int
	domains map[uint32]domain
	texts   *charset.Charset // what we convert them from; nil: the server does
	// snapshot is the holder's own export, good while holder is.
	snapshot string
	limit    *limiter
	refusals ingest.CopyRefusals // nil: a row that cannot be taken in ends the copy
	rows     *visible.Rows
	// readers lends connections: nil stands for one not made yet.
	readers chan *pgconn.PgConn
	// fetcher lends the one that reads by key, likewise.
	fetcher chan *pgconn.PgConn

	// mu.holder answers Plan; it is taken out while it is in use.
	holder chan *pgx.Conn
	close  sync.Once
}

// Backfill implements ingest.Source. Right after Setup made the slot the session
// reads the slot's own snapshot, and its horizon is the stream's start.
//
// A later session makes a temporary slot for a snapshot of its own. That costs a slot
// for a moment, and gives what no other snapshot does: a horizon that is exact, for
// the rows read are those of the transactions that commit before the horizon, and of
// no others. A stream that skips what commits before the horizon (StreamTable.After)
// neither loses nor doubles a row, which matters for tables without a key; for tables
// with a key a stream from before the horizon converges. And making it waits for the
// transactions that were open when a table was added to the publication, whose changes
// before that the stream does not have.
func (s *Source) Backfill(ctx context.Context) (ingest.Backfill, error) {
	st, err := s.current()
	if err != nil {
		return nil, fmt.Errorf("open backfill: %w", err)
	}
	e := s.takeExporter()
	b := &backfill{
		source: s, exact: e != nil,
		limit:   &limiter{clock: s.clock, perSecond: s.rowsPerSecond},
		readers: make(chan *pgconn.PgConn, s.cfg.parallel), // one per reader
		fetcher: make(chan *pgconn.PgConn, 1),              // one
		holder:  make(chan *pgx.Conn, 1),                   // the one connection
		rows:    &visible.Rows{Source: s.visible()},
	}
	err = s.withControl(ctx, func(conn *pgx.Conn) error {
		v, err := readSettings(ctx, conn)
		if err != nil {
			return err
		}
		b.version = v.version
		if b.domains, err = readDomains(ctx, conn); err != nil {
			return err
		}
		return nil
	})
	if err == nil {
		b.texts, err = s.charset(ctx)
	}
	if err == nil && e == nil {
		name := fmt.Sprintf("%s%s%016x", st.Slot, temporarySuffix, s.ids.Uint64())
		e, err = s.temporarySlot(ctx, name)
	}
	if e != nil {
		defer closeNow(e.conn) // the holder has the snapshot by then, or we fail
	}
	if err != nil {
		return nil, fmt.Errorf("open backfill: %w", err)
	}
	b.horizon = e.point
	if err := b.hold(ctx, e.snapshot); err != nil {
		return nil, fmt.Errorf("open backfill: %w", err)
	}
	if err := b.awaitMoment(ctx); err != nil {
		_ = b.Close()
		return nil, fmt.Errorf("open backfill: %w", err)
	}
	for range s.cfg.parallel {
		b.readers <- nil
	}
	b.fetcher <- nil
	s.log.Info("backfill opened", env.KeyLSN, b.horizon.String(), "exact", b.exact)
	return b, nil
}

// Describe implements ingest.Backfill.
func (b *backfill) Describe(ctx context.Context, wanted map[uint32]catalog.SelectedTable, outOfRangeText bool,
) (out map[uint32]ingest.SourceTable, err error) {
	select {
	case conn := <-b.holder:
		defer func() { b.holder <- conn }()
		err = unlocked(ctx, conn.PgConn(), func() error {
			out, err = describeAt(ctx, conn, wanted, outOfRangeText, &b.source.cfg)
			return err
		})
		return out, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// describeAt describes tables at a connection's snapshot.
func describeAt(ctx context.Context, conn *pgx.Conn, wanted map[uint32]catalog.SelectedTable, outOfRangeText bool, cfg *config,
) (map[uint32]ingest.SourceTable, error) {
	tables := make([]ingest.SourceTable, 0, len(wanted))
	for oid := range wanted {
		tables = append(tables, ingest.SourceTable{OID: oid})
	}
	there, _, err := present(ctx, conn, tables)
	if err != nil {
		return nil, err
	}
	sel := catalog.TableSelection{OutOfRangeText: outOfRangeText}
	for _, t := range there {
		w := wanted[t.OID]
		w.Schema, w.Name, w.Where = t.Schema, t.Name, ""
		sel.Tables = append(sel.Tables, w)
	}
	found, err := discover(ctx, conn, sel, cfg)
	if err != nil {
		return nil, err
	}
	out := make(map[uint32]ingest.SourceTable, len(found))
	for _, t := range found {
		if t.OID != 0 && t.Unsupported == "" {
			t.Filter = wanted[t.OID].Where
			out[t.OID] = t
		}
	}
	return out, nil
}

// hold takes over a snapshot.
func (b *backfill) hold(ctx context.Context, snapshot string) error {
	conn, err := b.source.dial(ctx)
	if err != nil {
		return err
	}
	if err := importSnapshot(ctx, conn.PgConn(), snapshot); err != nil {
		closeNow(conn.PgConn())
		return err
	}
	row, err := oneRow(ctx, conn.PgConn(), "SELECT pg_catalog.pg_export_snapshot()")
	if err != nil {
		closeNow(conn.PgConn())
		return unavailable("export snapshot", err)
	}
	b.snapshot = row[0]
	b.holder <- conn
	return nil
}

// awaitMoment waits until all that is asked of the source from now on is as of the moment
// or later: the columns of tables are.
func (b *backfill) awaitMoment(ctx context.Context) error {
	conn := <-b.holder
	defer func() { b.holder <- conn }()
	row, err := oneRow(ctx, conn.PgConn(), "SELECT pg_catalog.txid_current_snapshot()")
	if err != nil {
		return unavailable("read snapshot", err)
	}
	return b.source.visible().Moment(ctx, row[0])
}

// importSnapshot begins a transaction that sees what the snapshot's owner sees.
func importSnapshot(ctx context.Context, conn *pgconn.PgConn, snapshot string) error {
	sql := "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT " + quoteLiteral(snapshot)
	if err := run(ctx, conn, sql); err != nil {
		return unavailable("import snapshot", err)
	}
	return nil
}

// Horizon implements ingest.Backfill.
func (b *backfill) Horizon() change.Position { return b.horizon.Position() }

// Exact implements ingest.Backfill.
func (b *backfill) Exact() bool { return b.exact }

// Parallel implements ingest.Backfill.
func (b *backfill) Parallel() int { return b.source.cfg.parallel }

// Close implements ingest.Backfill. No Read or Plan may be running.
func (b *backfill) Close() error {
	b.close.Do(func() {
		for drained := false; !drained; {
			select {
			case conn := <-b.readers:
				if conn != nil {
					closeNow(conn)
				}
			case conn := <-b.fetcher:
				if conn != nil {
					closeNow(conn)
				}
			case conn := <-b.holder:
				closeNow(conn.PgConn())
			default:
				drained = true
			}
		}
	})
	return nil
}

// reader lends a connection that reads at the session's snapshot. give takes it back;
// bad says that it must not be used again.
func (b *backfill) reader(ctx context.Context) (conn *pgconn.PgConn, give func(bad bool), err error) {
	select {
	case conn = <-b.readers:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	give = func(bad bool) {
		if bad && conn != nil {
			closeNow(conn)
			conn = nil
		}
		b.readers <- conn
	}
	if conn != nil {
		return conn, give, nil
	}
	if conn, err = b.dialReader(ctx); err != nil {
		give(true)
		return nil, nil, err
	}
	return conn, give, nil
}

// dialReader makes a connection that reads at the session's snapshot.
func (b *backfill) dialReader(ctx context.Context) (*pgconn.PgConn, error) {
	made, err := b.source.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := importSnapshot(ctx, made.PgConn(), b.snapshot); err != nil {
		closeNow(made.PgConn())
		return nil, err
	}
	return made.PgConn(), nil
}
