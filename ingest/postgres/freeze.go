package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest/postgres/moment"
	"github.com/skipprd/skipprd/ingest/verify"
)

// momentSuffix precedes a random number in the name of the slot of a moment.
const momentSuffix = "_v"

// Freeze opens a session that reads one moment of the source whose position is exact, for
// a comparison; prior is the state that Setup returned. It waits for the transactions that
// are open at the source, and tells, about once a second, for whose, "" when it does not.
func (s *Source) Freeze(ctx context.Context, prior []byte, rowsPerSecond int64, waits func(reason string)) (verify.Source, error) {
	if len(prior) == 0 {
		return nil, ErrNotSetUp
	}
	st, err := decodeState(prior)
	if err != nil {
		return nil, err
	}
	var v settings
	slot := fmt.Sprintf("%s%s%016x", st.Slot, momentSuffix, s.ids.Uint64())
	err = s.withControl(ctx, func(conn *pgx.Conn) error {
		v, err = readSettings(ctx, conn)
		return err
	})
	if err != nil {
		return nil, err
	}
	conn, err := s.dialReplicationAs(ctx, cancels)
	if err != nil {
		return nil, err
	}
	id, err := pglogrepl.IdentifySystem(ctx, conn)
	switch {
	case err != nil:
		closeNow(conn)
		return nil, unavailable("identify system", err)
	case id.SystemID != st.SystemID || v.database != st.Database:
		closeNow(conn)
		return nil, fmt.Errorf("%w: system %s, database %s instead of system %s, database %s",
			ErrOtherServer, id.SystemID, v.database, st.SystemID, st.Database)
	}
	stop := s.watchSlot(ctx, conn.PID(), s.withControl, waits)
	defer stop()
	m, err := moment.Open(ctx, conn, moment.Config{
		Slot: slot, Publications: st.Publications, RowsPerSecond: rowsPerSecond, Version: v.version,
	}, s.clock)
	if err != nil {
		return nil, slotError("read one moment of the source", err)
	}
	return m, nil
}
