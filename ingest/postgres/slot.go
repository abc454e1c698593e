package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// pos is an LSN's text as a position.
func pos(text string) change.Position { return change.Position(text) }

// slot is a replication slot as the server shows it.
type slot struct {
	name      string
	exists    bool
	plugin    string
	database  string
	active    bool
	pid       int32
	status    string // wal_status, "" before version 13
	confirmed LSN
	retained  int64 // bytes from restart_lsn to now
	current   LSN
	newest    LSN    // current, or behind a page header that follows it
	safe      *int64 // bytes that may be written before it may be lost; nil: no limit
	inactive  *time.Time
	cause     string // why it is invalid, where the server tells
	limit     string // max_slot_wal_keep_size
	failover  bool   // it is carried over to standbys
	synced    bool   // it was carried over from a primary
	standby   bool
	awaited   bool // the server takes our stream for a synchronous standby
}

// The newest position is the insert position: with synchronous_commit = off, commits
// that are visible already are not written yet.
const slotQuery = `
SELECT coalesce(s.plugin::text, ''), coalesce(s.database::text, ''), s.active, coalesce(s.active_pid, 0),
       coalesce(s.confirmed_flush_lsn::text, ''),
       coalesce(pg_catalog.pg_wal_lsn_diff(w.lsn, s.restart_lsn), 0)::int8, w.lsn::text,
       coalesce(current_setting('max_slot_wal_keep_size', true), '-1'), pg_catalog.pg_is_in_recovery(),
       EXISTS (SELECT FROM pg_catalog.pg_stat_replication r WHERE r.pid = s.active_pid AND r.sync_state IN ('sync', 'quorum')), %s
  FROM pg_catalog.pg_replication_slots s,
       (SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
                    ELSE pg_catalog.pg_current_wal_insert_lsn() END) w(lsn)
 WHERE s.slot_name = $1`

func readSlot(ctx context.Context, conn *pgx.Conn, name string, version int) (slot, error) {
	sl := slot{name: name, exists: true}
	var confirmed, current string
	err := conn.QueryRow(ctx, fmt.Sprintf(slotQuery, slotColumns(version)), name).Scan(
		&sl.plugin, &sl.database, &sl.active, &sl.pid, &confirmed, &sl.retained, &current, &sl.limit, &sl.standby, &sl.awaited,
		&sl.status, &sl.safe, &sl.cause, &sl.inactive, &sl.failover, &sl.synced)
	if errors.Is(err, pgx.ErrNoRows) {
		return slot{name: name}, nil
	}
	if err != nil {
		return sl, unavailable("read slot "+name, err)
	}
	if sl.confirmed, err = parseLSN(pos(confirmed)); err != nil {
		return sl, fmt.Errorf("read slot %s: %w", name, err)
	}
	if sl.current, err = parseLSN(pos(current)); err != nil {
		return sl, fmt.Errorf("read slot %s: %w", name, err)
	}
	sl.newest, sl.current = sl.current, sl.current.RecordEnd()
	return sl, nil
}

// slotColumns are wal_status, safe_wal_size, the cause of an invalid slot, since when
// nobody reads it, and whether it fails over, as far as the version tells.
func slotColumns(version int) string {
	status, safe, cause, inactive, failover, synced := "''", "NULL::int8", "''", "NULL::timestamptz", "false", "false"
	if version >= 130000 {
		status, safe = "coalesce(s.wal_status, 'lost')", "s.safe_wal_size"
	}
	if version >= 160000 {
		cause = "CASE WHEN s.conflicting THEN '" + causeConflict + "' ELSE '' END"
	}
	if version >= versionFailover {
		cause, inactive = "coalesce(s.invalidation_reason, '')", "s.inactive_since"
		failover, synced = "s.failover", "s.synced"
	}
	return strings.Join([]string{status, safe, cause, inactive, failover, synced}, ", ")
}

// causeConflict is why a slot of a standby is invalid, from a server that does not tell
// more: 16.
const causeConflict = "conflict"

// invalidated says why the server has made the slot invalid, and what prevents that.
func (sl slot) invalidated() string {
	switch sl.cause {
	case "wal_removed":
		return fmt.Sprintf("the server has removed log that slot %s still needed (max_slot_wal_keep_size is %s)", sl.name, sl.limit)
	case "rows_removed":
		return fmt.Sprintf("the primary has removed rows that slot %s of its standby still needed (with hot_standby_feedback = on, "+
			"and a slot of the standby's own in primary_slot_name, it keeps them)", sl.name)
	case "wal_level_insufficient":
		return fmt.Sprintf("wal_level of the primary is no longer logical, which has made slot %s of its standby invalid", sl.name)
	case causeConflict:
		return fmt.Sprintf("slot %s of the standby was in conflict with its primary: that has removed rows which the slot still needed "+
			"(hot_standby_feedback = on prevents it), or its wal_level is no longer logical", sl.name)
	case "idle_timeout":
		return fmt.Sprintf("nobody has read from slot %s for as long as idle_replication_slot_timeout allows", sl.name)
	}
	return fmt.Sprintf("the server has made slot %s invalid (%s)", sl.name, sl.cause)
}

// usable says why a pipeline cannot go on from the slot, if it cannot. lost is what has
// to be copied anew then, in words.
func (sl slot) usable(database, lost string) error {
	switch {
	case !sl.exists:
		return fmt.Errorf("%w: slot %s does not exist, dropped there, or left behind by a fail-over; %s", ErrSlotLost, sl.name, lost)
	case sl.cause != "":
		return fmt.Errorf("%w: %s; %s", ErrSlotLost, sl.invalidated(), lost)
	case sl.status == "lost":
		return fmt.Errorf("%w: the server has removed log that slot %s still needed (max_slot_wal_keep_size is %s); %s",
			ErrSlotLost, sl.name, sl.limit, lost)
	case sl.plugin != "pgoutput":
		return fmt.Errorf("%w: slot %s is of plugin %s", ErrSlotLost, sl.name, quote.Name(sl.plugin))
	case sl.database != database:
		return fmt.Errorf("%w: slot %s is of database %s", ErrOtherServer, sl.name, quote.Name(sl.database))
	}
	return nil
}

// behind is the error of a server whose log ends before what is durable here: to stream
// from it would leave out what it writes until it is there.
func (sl slot) behind(start LSN) error {
	if sl.standby {
		return unavailable("wait for the standby", fmt.Errorf("it has replayed its log up to %s, and what precedes %s is here", sl.newest, start))
	}
	return fmt.Errorf("%w: its log ends at %s, and changes up to %s are here: it was restored from a copy, or lost its end",
		ErrDiverged, sl.newest, start)
}

// warning is what endangers the slot, a clause; "" for nothing.
func (sl slot) warning() string {
	switch {
	case sl.cause != "":
		return sl.invalidated()
	case sl.status == "unreserved":
		return fmt.Sprintf("the source may drop log that slot %s needs at its next checkpoint: max_slot_wal_keep_size is %s", sl.name, sl.limit)
	case sl.status == "lost":
		return fmt.Sprintf("the source has dropped log that slot %s needed", sl.name)
	case sl.awaited:
		return "commits at the source wait for this pipeline, which synchronous_standby_names means, too: name there the standbys that are meant"
	}
	return ""
}

// copyAnew says which tables need a new copy, and the statement that makes it.
func (s *Source) copyAnew(names []string) string {
	const most = 5
	what := "all its tables need a new copy"
	if n := len(names); n > 0 {
		shown := strings.Join(names[:min(n, most)], ", ")
		if n > most {
			shown += fmt.Sprintf(" and %d more", n-most)
		}
		what = fmt.Sprintf("a new copy is needed of %s", shown)
	}
	return fmt.Sprintf("%s: ALTER PIPELINE %s RESET;", what, quote.NameIfNeeded(s.cfg.pipeline))
}

// dropOrphan drops a slot of our name that no state of ours knows. It refuses what it
// cannot prove to be ours: a publication of ours is made before the slot, and marked
// with where the slot began after it. A slot without the one, or acknowledged past the
// other, belongs to somebody else, be it another pipeline that rests.
func (s *Source) dropOrphan(ctx context.Context, conn *pgx.Conn, v settings, sl slot) error {
	other := Problem{
		What: fmt.Sprintf("replication slot %s exists and is not of this pipeline", sl.name),
		Fix: fmt.Sprintf("choose another slot_name, or, if nothing needs it any more: SELECT pg_drop_replication_slot(%s);",
			quoteLiteral(sl.name)),
	}
	if held, err := s.held(ctx, sl.name); err != nil {
		return err
	} else if held {
		return joined([]Problem{{What: fmt.Sprintf("replication slot %s is of another pipeline here: choose another slot_name", sl.name)}})
	}
	if sl.active {
		return fmt.Errorf("%w: slot %s by process %d", ErrSlotInUse, sl.name, sl.pid)
	}
	if sl.plugin != "pgoutput" || sl.database != v.database {
		return joined([]Problem{other})
	}
	p, err := readPublication(ctx, conn, s.cfg.publication, v.version)
	if err != nil {
		return err
	}
	start, of := p.mark()
	if !p.ours() || start != "" && start != sl.confirmed.String() || of != "" && of != sl.name {
		return joined([]Problem{other})
	}
	if err := dropSlot(ctx, conn, sl.name); err != nil {
		return err
	}
	s.log.Info("unused replication slot dropped", env.KeySlot, sl.name)
	return nil
}

// held says whether another pipeline of this server has the slot as its own, also one that
// rests and has not acknowledged anything yet.
func (s *Source) held(ctx context.Context, slot string) (bool, error) {
	if s.others == nil {
		return false, nil
	}
	for _, text := range s.others() {
		st, err := decodeState(text)
		if err != nil || st.Slot != slot {
			continue // of another kind, or elsewhere
		}
		id, err := s.identify(ctx)
		if err != nil {
			return false, err
		}
		if id.system == st.SystemID {
			return true, nil
		}
	}
	return false, nil
}

// mark is where the slot began that a publication of ours was made for, and its name,
// as far as the publication says.
func (p publication) mark() (start, slot string) {
	text, ok := strings.CutPrefix(p.comment, markStart)
	if !ok {
		return "", ""
	}
	start, slot, _ = strings.Cut(text, markSlot)
	return start, slot
}

// markSlot precedes the slot's name in the mark of a publication.
const markSlot = " of slot "

// claimed says whether a publication of ours is in the use of another slot than ours, of
// another pipeline: to make it anew would take that one's tables away.
func (s *Source) claimed(ctx context.Context, conn *pgx.Conn, v settings) error {
	p, err := readPublication(ctx, conn, s.cfg.publication, v.version)
	if err != nil {
		return err
	}
	_, of := p.mark()
	if !p.ours() || of == "" || of == s.cfg.slot {
		return nil
	}
	sl, err := readSlot(ctx, conn, of, v.version)
	if err != nil || !sl.exists {
		return err
	}
	return joined([]Problem{{
		What: fmt.Sprintf("publication %s is of another pipeline, with replication slot %s", p.name, of),
		Fix:  "choose another name with the option publication",
	}})
}

func dropSlot(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "SELECT pg_catalog.pg_drop_replication_slot($1)", name)
	if err != nil && code(err) != codeUndefinedObject {
		return slotError("drop slot "+name, err)
	}
	return nil
}
