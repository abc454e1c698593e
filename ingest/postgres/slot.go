package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

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
}

// The newest position is the insert position: with synchronous_commit = off, commits
// that are visible already are not written yet.
const slotQuery = `
SELECT coalesce(s.plugin::text, ''), coalesce(s.database::text, ''), s.active, coalesce(s.active_pid, 0), %s,
       coalesce(s.confirmed_flush_lsn::text, ''),
       coalesce(pg_catalog.pg_wal_lsn_diff(w.lsn, s.restart_lsn), 0)::int8, w.lsn::text
  FROM pg_catalog.pg_replication_slots s,
       (SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
                    ELSE pg_catalog.pg_current_wal_insert_lsn() END) w(lsn)
 WHERE s.slot_name = $1`

func readSlot(ctx context.Context, conn *pgx.Conn, name string, version int) (slot, error) {
	status := "''"
	if version >= 130000 {
		status = "coalesce(s.wal_status, 'lost')"
	}
	sl := slot{name: name, exists: true}
	var confirmed, current string
	err := conn.QueryRow(ctx, fmt.Sprintf(slotQuery, status), name).Scan(
		&sl.plugin, &sl.database, &sl.active, &sl.pid, &sl.status, &confirmed, &sl.retained, &current)
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
	sl.current = sl.current.recordEnd()
	return sl, nil
}

// usable says why a pipeline cannot go on from the slot, if it cannot.
func (sl slot) usable(database string) error {
	const help = "its tables need a new copy: ALTER PIPELINE … RESET"
	switch {
	case !sl.exists:
		return fmt.Errorf("%w: slot %s does not exist; %s", ErrSlotLost, sl.name, help)
	case sl.status == "lost":
		return fmt.Errorf("%w: the server has removed log that slot %s still needed; %s", ErrSlotLost, sl.name, help)
	case sl.plugin != "pgoutput":
		return fmt.Errorf("%w: slot %s is of plugin %q", ErrSlotLost, sl.name, sl.plugin)
	case sl.database != database:
		return fmt.Errorf("%w: slot %s is of database %q", ErrOtherServer, sl.name, sl.database)
	}
	return nil
}

// dropOrphan drops a slot of our name that no state of ours knows. It refuses when
// somebody reads it, or has: our mark on the publication says where a slot began, and
// a slot that was acknowledged past it belongs to another pipeline.
func (s *Source) dropOrphan(ctx context.Context, conn *pgx.Conn, v settings, sl slot) error {
	other := Problem{
		What: fmt.Sprintf("replication slot %s exists and another process has read from it", sl.name),
		Fix: fmt.Sprintf("choose another slot_name, or, if nothing needs it any more: SELECT pg_drop_replication_slot(%s);",
			quoteLiteral(sl.name)),
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
	if start, ok := strings.CutPrefix(p.comment, markStart); ok && start != sl.confirmed.String() {
		return joined([]Problem{other})
	}
	if err := dropSlot(ctx, conn, sl.name); err != nil {
		return err
	}
	s.log.Info("unused replication slot dropped", env.KeySlot, sl.name)
	return nil
}

func dropSlot(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "SELECT pg_catalog.pg_drop_replication_slot($1)", name)
	if err != nil && code(err) != codeUndefinedObject {
		return slotError("drop slot "+name, err)
	}
	return nil
}
