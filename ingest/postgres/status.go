package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/env"
)

var _ ingest.Watcher = (*Source)(nil)

// Status implements ingest.Source. Where the log grows and nothing of it is
// acknowledged, it writes a heartbeat there, which the stream then passes; where all is
// acknowledged and the server keeps much all the same, it has that note which transactions
// run.
func (s *Source) Status(ctx context.Context) (ingest.SourceStatus, error) {
	st, err := s.current()
	if err != nil {
		return ingest.SourceStatus{}, fmt.Errorf("status: %w", err)
	}
	return s.look(ctx, st, true)
}

// Watch implements ingest.Watcher.
func (s *Source) Watch(ctx context.Context, prior []byte) (ingest.SourceStatus, error) {
	st, err := decodeState(prior)
	if err != nil {
		return ingest.SourceStatus{}, fmt.Errorf("status: %w", err)
	}
	return s.look(ctx, st, false)
}

func (s *Source) look(ctx context.Context, st *state, streaming bool) (out ingest.SourceStatus, err error) {
	err = s.withControl(ctx, func(conn *pgx.Conn) error {
		v, err := readSettings(ctx, conn)
		if err != nil {
			return err
		}
		sl, err := readSlot(ctx, conn, st.Slot, v.version)
		if err != nil {
			return err
		}
		if !sl.exists {
			return fmt.Errorf("%w: slot %s does not exist", ErrSlotLost, st.Slot)
		}
		out = sl.report()
		out.Renew = streaming && s.recovery.Load() && !v.recovery
		if !streaming {
			return nil
		}
		if s.beatDue(v, sl) {
			s.emit(ctx, conn)
		}
		if s.noteDue(v, sl) {
			_, _ = conn.Exec(ctx, "SELECT pg_catalog.pg_log_standby_snapshot()") // the next look tells what came of it
		}
		out.Notes = s.added.notes(nil)
		return nil
	})
	if err != nil {
		return ingest.SourceStatus{}, fmt.Errorf("status: %w", err)
	}
	return out, nil
}

// report is what the slot means for its pipeline.
func (sl slot) report() ingest.SourceStatus {
	out := ingest.SourceStatus{
		Current: sl.current.Position(), Confirmed: sl.confirmed.Position(),
		RetainedBytes: sl.retained, WrittenBytes: int64(sl.current), SlotState: sl.status, Warning: sl.warning(),
	}
	if sl.current > sl.confirmed {
		out.LagBytes = int64(sl.current - sl.confirmed)
	}
	if sl.safe != nil {
		out.Limited, out.SafeBytes = true, *sl.safe
	}
	if sl.inactive != nil {
		out.InactiveSince = *sl.inactive
	}
	return out
}

// heartbeat is what is known of the last look at a slot.
type heartbeat struct {
	at                 time.Time // of the last message, or the first look
	confirmed, current LSN       // then
	refused            bool      // the role may not
	noted              struct{ confirmed, current LSN }
}

// noteBytes is how much a server may write until it is to note which transactions run.
const noteBytes = 4 << 20

// noteDue says whether to have the server note which transactions run. It drops what it keeps
// for a slot only up to such a note, and makes one by itself every 15 s at most, however much
// it writes. That takes a right that few roles have, and helps nobody while what is
// acknowledged stays where it is.
func (s *Source) noteDue(v settings, sl slot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.mu.beat.noted
	switch {
	case s.cfg.heartbeat == 0 || !v.notes || v.recovery || sl.retained < noteBytes,
		sl.confirmed <= n.confirmed, sl.current < n.current+noteBytes:
		return false
	}
	n.confirmed, n.current = sl.confirmed, sl.current
	return true
}

// beatDue says whether to write a message: others have written since the last one, and
// nothing was acknowledged, an interval long. A server that is idle is left alone, and a
// standby cannot.
func (s *Source) beatDue(v settings, sl slot) bool {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &s.mu.beat
	switch {
	case s.cfg.heartbeat == 0 || v.recovery || b.refused:
		return false
	case b.at.IsZero() || sl.confirmed != b.confirmed || sl.current <= b.current:
		b.at, b.confirmed, b.current = now, sl.confirmed, sl.current
		return false
	case sl.current <= sl.confirmed || now.Sub(b.at) < s.cfg.heartbeat:
		return false
	}
	b.at, b.current = now, sl.current
	return true
}

// emit writes a message that is of no transaction and that nobody reads.
func (s *Source) emit(ctx context.Context, conn *pgx.Conn) {
	_, err := conn.Exec(ctx, "SELECT pg_catalog.pg_logical_emit_message(false, 'skipprd', '')")
	if code(err) != codePrivilege {
		return // the next look tells what came of it
	}
	s.log.Info("heartbeats were refused", env.KeySlot, s.cfg.slot, env.KeyError, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.beat.refused = true
}
