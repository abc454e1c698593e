package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
)

// Status implements ingest.Source.
func (s *Source) Status(ctx context.Context) (ingest.SourceStatus, error) {
	st, err := s.current()
	if err != nil {
		return ingest.SourceStatus{}, fmt.Errorf("status: %w", err)
	}
	var out ingest.SourceStatus
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
		out = ingest.SourceStatus{
			Current: sl.current.Position(), Confirmed: sl.confirmed.Position(),
			RetainedBytes: sl.retained, SlotState: sl.status,
		}
		if sl.current > sl.confirmed {
			out.LagBytes = int64(sl.current - sl.confirmed)
		}
		out.Notes, err = s.unseen.notes(ctx, conn)
		return err
	})
	if err != nil {
		return ingest.SourceStatus{}, fmt.Errorf("status: %w", err)
	}
	return out, nil
}
