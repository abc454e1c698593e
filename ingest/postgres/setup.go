package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/env"
)

// Setup implements ingest.Source. With no state it makes the publications, then the
// slot, whose snapshot it keeps for the next Backfill. A slot of our name that it
// finds then is of an attempt that crashed before its state was durable: nothing was
// ever streamed from it, so it is dropped and made anew.
func (s *Source) Setup(ctx context.Context, prior []byte, tables []ingest.SourceTable) (ingest.SetupResult, error) {
	var out ingest.SetupResult
	err := s.withControl(ctx, func(conn *pgx.Conn) error {
		v, err := readSettings(ctx, conn)
		if err != nil {
			return err
		}
		tables, gone, err := present(ctx, conn, tables)
		if err != nil {
			return err
		}
		if len(prior) > 0 {
			out, err = s.resume(ctx, conn, v, prior, tables)
		} else {
			out, err = s.create(ctx, conn, v, tables)
		}
		out.Warnings = append(append(v.warnings(), notes(tables)...), gone...)
		return err
	})
	if err != nil {
		return ingest.SetupResult{}, fmt.Errorf("set up slot %s: %w", s.cfg.slot, err)
	}
	return out, nil
}

func notes(tables []ingest.SourceTable) []string {
	var out []string
	for _, t := range tables {
		if t.Unsupported == "" {
			out = append(out, t.Notes...)
		}
	}
	return out
}

// resume checks that the slot is where the state says, and adds tables.
func (s *Source) resume(ctx context.Context, conn *pgx.Conn, v settings, prior []byte,
	tables []ingest.SourceTable,
) (ingest.SetupResult, error) {
	st, err := decodeState(prior)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	if err := joined(v.problems(true)); err != nil {
		return ingest.SetupResult{}, err
	}
	id, err := s.identify(ctx)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	if id.system != st.SystemID || v.database != st.Database {
		return ingest.SetupResult{}, fmt.Errorf("%w: system %s, database %s instead of system %s, database %s",
			ErrOtherServer, id.system, v.database, st.SystemID, st.Database)
	}
	sl, err := readSlot(ctx, conn, st.Slot, v.version)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	if err := sl.usable(v.database); err != nil {
		return ingest.SetupResult{}, err
	}
	if err := addTables(ctx, conn, st, tables, v); err != nil {
		return ingest.SetupResult{}, err
	}
	s.settle(st, nil)
	return result(st, prior, false)
}

// create makes publications and slot.
func (s *Source) create(ctx context.Context, conn *pgx.Conn, v settings,
	tables []ingest.SourceTable,
) (ingest.SetupResult, error) {
	sl, err := readSlot(ctx, conn, s.cfg.slot, v.version)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	if err := joined(v.problems(sl.exists)); err != nil {
		return ingest.SetupResult{}, err
	}
	if sl.exists {
		if err := s.dropOrphan(ctx, conn, v, sl); err != nil {
			return ingest.SetupResult{}, err
		}
	}
	names, owned, err := ensurePublications(ctx, conn, s.cfg.publication, tables, v)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	id, err := s.identify(ctx)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	s.logOpen(ctx, conn, s.cfg.slot)
	e, err := s.createSlot(ctx, s.cfg.slot, v.version, false)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	st := &state{
		Slot: s.cfg.slot, Publications: names, Owned: owned,
		SystemID: id.system, Timeline: id.timeline, Database: v.database, Start: e.point.String(),
	}
	if len(owned) > 0 {
		mark := fmt.Sprintf("COMMENT ON PUBLICATION %s IS %s", quoteIdent(names[0]), quoteLiteral(markStart+st.Start))
		if err := run(ctx, conn.PgConn(), mark); err != nil {
			closeNow(e.conn)
			return ingest.SetupResult{}, unavailable("mark publication "+names[0], err)
		}
	}
	s.settle(st, e)
	s.log.Info("replication slot made", env.KeySlot, st.Slot, env.KeyLSN, st.Start)
	b, err := st.encode()
	if err != nil {
		return ingest.SetupResult{}, err
	}
	return result(st, b, true)
}

func result(st *state, encoded []byte, created bool) (ingest.SetupResult, error) {
	start, err := parseLSN(pos(st.Start))
	if err != nil {
		return ingest.SetupResult{}, fmt.Errorf("source state: %w", err)
	}
	// Every change streamed commits at or after start.
	return ingest.SetupResult{State: encoded, Created: created, Start: start.Position(), Token: int64(start) - 1}, nil
}

// identity is which server this is.
type identity struct {
	system   string
	timeline int32
}

func (s *Source) identify(ctx context.Context) (identity, error) {
	conn, err := s.dialReplication(ctx)
	if err != nil {
		return identity{}, err
	}
	defer closeNow(conn)
	id, err := pglogrepl.IdentifySystem(ctx, conn)
	if err != nil {
		return identity{}, unavailable("identify system", err)
	}
	return identity{system: id.SystemID, timeline: id.Timeline}, nil
}

// logOpen says that a slot about to be made must wait, if it must.
func (s *Source) logOpen(ctx context.Context, control *pgx.Conn, name string) {
	var open int
	var oldest time.Duration
	const openQuery = `SELECT count(*)::int4, coalesce(max(now() - xact_start), '0'::interval)
	  FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_catalog.pg_backend_pid()`
	if err := control.QueryRow(ctx, openQuery).Scan(&open, &oldest); err == nil && open > 0 {
		s.log.Info("slot waits for open transactions", env.KeySlot, name, env.KeyCount, open, env.KeyElapsed, oldest)
	}
}

// createSlot makes a slot and keeps its snapshot. The server waits until every
// transaction that is open now has ended, so that the slot misses none of their
// changes.
func (s *Source) createSlot(ctx context.Context, name string, version int, temporary bool) (*exporter, error) {
	conn, err := s.dialReplication(ctx)
	if err != nil {
		return nil, err
	}
	made, err := pglogrepl.ParseCreateReplicationSlot(conn.Exec(ctx, createSlotCommand(name, version, temporary)))
	if err != nil {
		closeNow(conn)
		return nil, slotError("make slot "+name, err)
	}
	point, err := parseLSN(pos(made.ConsistentPoint))
	if err != nil || made.SnapshotName == "" {
		closeNow(conn)
		return nil, fmt.Errorf("make slot %s: the server exported no snapshot", name)
	}
	return &exporter{conn: conn, snapshot: made.SnapshotName, point: point}, nil
}

func createSlotCommand(name string, version int, temporary bool) string {
	sql := "CREATE_REPLICATION_SLOT " + quoteIdent(name)
	switch {
	case temporary:
		return sql + " TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT"
	case version >= versionFailover:
		return sql + " LOGICAL pgoutput (SNAPSHOT 'export', FAILOVER true)"
	}
	return sql + " LOGICAL pgoutput EXPORT_SNAPSHOT"
}

// slotError explains a failure to make or read a slot.
func slotError(verb string, err error) error {
	switch code(err) {
	case "53400":
		return joined([]Problem{{
			What: verb + ": no replication slot is free", Fix: "raise max_replication_slots and restart the server",
		}})
	case codePrivilege:
		return joined([]Problem{{
			What: verb + ": " + firstLine(err), Fix: "ALTER ROLE … REPLICATION for the connection's user",
		}})
	case codeUndefinedObject:
		return fmt.Errorf("%s: %w: %w", verb, ErrSlotLost, err)
	case codeObjectInUse:
		return fmt.Errorf("%s: %w: %w", verb, ErrSlotInUse, err)
	}
	return unavailable(verb, err)
}
