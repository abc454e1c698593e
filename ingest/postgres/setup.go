package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

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
		out.Warnings = slices.Concat(out.Warnings, v.warnings(), notes(tables), gone)
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
	s.recovery.Store(v.recovery)
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
	if v.recovery && !st.Standby && (sl.synced || !sl.exists) {
		return ingest.SetupResult{}, unavailable("wait for the primary", errStandby)
	}
	if err := sl.usable(v.database, s.copyAnew(namesOf(tables))); err != nil {
		return ingest.SetupResult{}, err
	}
	var warned []string
	if id.timeline != st.Timeline {
		own := st.Standby && !sl.synced
		if err := s.followTimeline(ctx, st, id, own); err != nil {
			return ingest.SetupResult{}, err
		}
		if !sl.synced && !own {
			warned = append(warned, fmt.Sprintf("slot %s came to the promoted server by other means than the server's own: "+
				"if its snapshots did not come with it, changes of about that time can be missing, and VERIFY PIPELINE tells", sl.name))
		}
	}
	st.Standby = st.Standby && v.recovery // a slot that was copied to a standby is not its own
	left, err := s.carryOver(ctx, v, sl)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	warned = append(warned, left...)
	var refused map[uint32]*ingest.TableError
	err = lockBriefly(ctx, conn, func() error {
		if prior, err = refilterTables(ctx, conn, st, tables, v); err != nil {
			return err
		}
		refused, err = addTables(ctx, conn, st, tables, v)
		return err
	})
	if err != nil {
		return ingest.SetupResult{}, err
	}
	now, err := publishedNow(ctx, conn, st.Publications, tables, v.version)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	overlooks, err := renewMembership(ctx, conn, st, tables, v.version)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	s.settle(st, nil)
	out, err := result(st, prior, false)
	out.Refused, out.Warnings, out.Published = refused, append(warned, overlooks...), now
	return out, err
}

// lockMost is how long a publication may wait for the lock that it takes on each of its
// tables. Reads and writes do not hold it up, an ALTER TABLE or a VACUUM does.
const lockMost = "5s"

// lockBriefly has f wait for locks no longer than lockMost.
func lockBriefly(ctx context.Context, conn *pgx.Conn, f func() error) error {
	if err := run(ctx, conn.PgConn(), "SET lock_timeout = '"+lockMost+"'"); err != nil {
		return unavailable("limit waits for locks", err)
	}
	err := f()
	if code(err) == codeLockTimeout {
		err = &ingest.SourceError{
			Message: "another session holds a lock on a table that is to be published: see pg_locks at the source",
			Cause:   fmt.Errorf("another session holds a lock on a table that is to be published: %w", err),
		}
	}
	if !conn.IsClosed() {
		err = errors.Join(err, run(ctx, conn.PgConn(), "SET lock_timeout = 0"))
	}
	return err
}

func namesOf(tables []ingest.SourceTable) []string {
	var out []string
	for _, t := range tables {
		if t.Unsupported == "" {
			out = append(out, t.Schema+"."+t.Name)
		}
	}
	return out
}

// errStandby is why a pipeline of the primary does not go on at a standby.
var errStandby = errors.New("the server is a standby, and the pipeline reads its primary: lead the connection there, or promote the standby " +
	"(HOST 'a,b' with TARGET_SESSION_ATTRS 'read-write' finds the primary by itself)")

// carryOver has the server carry the slot over to its standbys, or not, as the option
// says; the slot may be of before it could, or the option. A slot that is in use keeps what
// it has until the next session. That the server refuses it is a warning: the slot can be
// read all the same.
func (s *Source) carryOver(ctx context.Context, v settings, sl slot) (warned []string, err error) {
	if v.version < versionFailover || v.recovery || sl.failover == s.cfg.failover {
		return nil, nil
	}
	conn, err := s.dialReplication(ctx)
	if err != nil {
		return nil, err
	}
	defer closeNow(conn)
	err = run(ctx, conn, fmt.Sprintf("ALTER_REPLICATION_SLOT %s (FAILOVER %t)", quoteIdent(sl.name), s.cfg.failover))
	switch {
	case err == nil || code(err) == codeObjectInUse:
		return nil, nil
	case code(err) == "":
		return nil, unavailable("alter slot "+sl.name, err)
	}
	return []string{fmt.Sprintf("slot %s keeps failover = %t: %s", sl.name, sl.failover, serverMessage(err))}, nil
}

// followTimeline goes over to the timeline of a server that was promoted. All that is
// durable here must be of before, or the new one has lost changes that we have: unless it
// came from the slot's own server, which was a standby and may have sent us what it has
// written since.
func (s *Source) followTimeline(ctx context.Context, st *state, id identity, own bool) error {
	conn, err := s.dialReplication(ctx)
	if err != nil {
		return err
	}
	defer closeNow(conn)
	history, err := pglogrepl.TimelineHistory(ctx, conn, id.timeline)
	if err != nil {
		return unavailable("read history of timeline", err)
	}
	left, ok := forkOf(string(history.Content), st.Timeline)
	if !ok {
		return fmt.Errorf("%w: it is on timeline %d, which does not come from timeline %d, where the pipeline was", ErrDiverged, id.timeline, st.Timeline)
	}
	if s.durable > left && !own {
		return fmt.Errorf("%w: it was promoted at %s (timeline %d to %d), and changes up to %s are here, which it never had",
			ErrDiverged, left, st.Timeline, id.timeline, s.durable)
	}
	s.log.Info("source was promoted", env.KeySlot, st.Slot, env.KeyLSN, left.String(), "timeline", id.timeline)
	st.Timeline = id.timeline
	return nil
}

// forkOf finds where a timeline was left in the history of a later one.
func forkOf(history string, timeline int32) (LSN, bool) {
	for line := range strings.Lines(history) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != strconv.Itoa(int(timeline)) {
			continue
		}
		at, err := parseLSN(pos(words[1]))
		return at, err == nil
	}
	return 0, false
}

// create makes publications and slot.
func (s *Source) create(ctx context.Context, conn *pgx.Conn, v settings,
	tables []ingest.SourceTable,
) (ingest.SetupResult, error) {
	sl, err := readSlot(ctx, conn, s.cfg.slot, v.version)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	if err := v.askPrimary(ctx, conn); err != nil {
		return ingest.SetupResult{}, err
	}
	if err := joined(v.problems(sl.exists)); err != nil {
		return ingest.SetupResult{}, err
	}
	s.recovery.Store(v.recovery)
	if sl.exists {
		if err := s.dropOrphan(ctx, conn, v, sl); err != nil {
			return ingest.SetupResult{}, err
		}
	}
	if err := s.claimed(ctx, conn, v); err != nil {
		return ingest.SetupResult{}, err
	}
	var names, owned []string
	err = lockBriefly(ctx, conn, func() error {
		names, owned, err = ensurePublications(ctx, conn, s.cfg.publication, tables, v)
		return err
	})
	if err != nil {
		return ingest.SetupResult{}, err
	}
	now, err := publishedNow(ctx, conn, names, tables, v.version)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	id, err := s.identify(ctx)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	ask := func(_ context.Context, f func(*pgx.Conn) error) error { return f(conn) }
	failover := s.cfg.failover && v.version >= versionFailover && !v.recovery
	e, err := s.makeSlot(ctx, createSlotCommand(s.cfg.slot, false, failover), s.cfg.slot, ask)
	if err != nil {
		return ingest.SetupResult{}, err
	}
	st := &state{
		Slot: s.cfg.slot, Publications: names, Owned: owned,
		SystemID: id.system, Timeline: id.timeline, Database: v.database, Standby: v.recovery, Start: e.point.String(),
	}
	st.published(tables)
	if len(owned) > 0 {
		mark := fmt.Sprintf("COMMENT ON PUBLICATION %s IS %s", quoteIdent(names[0]), quoteLiteral(markStart+st.Start+markSlot+st.Slot))
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
	out, err := result(st, b, true)
	out.Published = now
	return out, err
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

// asker lends the control connection.
type asker func(ctx context.Context, f func(conn *pgx.Conn) error) error

// Whom the process that makes a slot waits for: a session, or, as process 0, a
// transaction that was prepared and not ended. Of a statement no value is shown.
const blockersQuery = `
SELECT b.pid, coalesce(a.xact_start, p.prepared), coalesce(a.usename::text, p.owner::text, ''), coalesce(p.gid, ''),
       coalesce(left(regexp_replace(regexp_replace(a.query, $re$'[^']*('|$)|\d+$re$, '…', 'g'), '\s+', ' ', 'g'), 60), '')
  FROM (SELECT DISTINCT pid FROM unnest(pg_catalog.pg_blocking_pids($1)) u(pid)) b
  LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = b.pid
  LEFT JOIN LATERAL (SELECT x.* FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_prepared_xacts x ON x.transaction = l.transactionid
                      WHERE l.pid = $1 AND NOT l.granted LIMIT 1) p ON b.pid = 0
 ORDER BY 2 LIMIT 1`

// blocker is a clause on what the process that makes a slot waits for, "" for nothing.
func blocker(ctx context.Context, conn *pgx.Conn, pid uint32) (string, error) {
	var holder int32
	var since *time.Time
	var user, prepared, query string
	err := conn.QueryRow(ctx, blockersQuery, int32(pid)).Scan(&holder, &since, &user, &prepared, &query)
	if errors.Is(err, pgx.ErrNoRows) {
		return blockedStandby(ctx, conn)
	}
	if err != nil {
		return "", unavailable("read what the slot waits for", err)
	}
	what := fmt.Sprintf("the source waits, before it makes the slot, for a transaction of process %d", holder)
	if prepared != "" {
		what = fmt.Sprintf("the source waits, before it makes the slot, for the prepared transaction %s", quoteLiteral(prepared))
	}
	if user != "" {
		what += " of " + user
	}
	if since != nil {
		what += ", open since " + since.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	if query != "" {
		what += ": " + query
	}
	return what, nil
}

// standbyWaits is what a standby waits for before it makes a slot. Its primary logs which
// transactions run 15 seconds after it last did, if anything was written since.
const standbyWaits = "the source is a standby: the transactions that run at its primary must end, and the primary must log which run; " +
	"if nobody writes there: SELECT pg_log_standby_snapshot();"

// blockedStandby is what a process that makes a slot waits for where no process is in its
// way: "" for nothing that is known.
func blockedStandby(ctx context.Context, conn *pgx.Conn) (string, error) {
	var recovery bool
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_is_in_recovery()").Scan(&recovery); err != nil {
		return "", unavailable("read what the slot waits for", err)
	}
	if recovery {
		return standbyWaits, nil
	}
	return "", nil
}

// temporarySlot makes a slot for one session and keeps its snapshot.
func (s *Source) temporarySlot(ctx context.Context, name string) (*exporter, error) {
	return s.makeSlot(ctx, createSlotCommand(name, true, false), name, s.withControl)
}

// makeSlot makes a slot and keeps its snapshot. The server waits until every
// transaction that is open now has ended, so that the slot misses none of their
// changes; meanwhile it is asked, through ask, which that are. At the end of ctx the
// server is told to give up: it would not notice that we are gone, and make a slot that
// nobody knows of.
func (s *Source) makeSlot(ctx context.Context, command, name string, ask asker) (*exporter, error) {
	conn, err := s.dialReplicationAs(ctx, cancels)
	if err != nil {
		return nil, err
	}
	stop := s.watchSlot(ctx, conn.PID(), ask, s.waiting)
	made, err := pglogrepl.ParseCreateReplicationSlot(conn.Exec(ctx, command))
	stop()
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

// cancels has the server told when a statement's context ends, instead of the connection
// being left.
func cancels(cfg *pgconn.Config) {
	cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelMost}
	}
}

// cancelMost is how long a server may take to give up making a slot.
const cancelMost = 5 * time.Second

func createSlotCommand(name string, temporary, failover bool) string {
	sql := "CREATE_REPLICATION_SLOT " + quoteIdent(name)
	switch {
	case temporary:
		return sql + " TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT"
	case failover:
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
