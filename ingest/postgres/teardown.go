package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest/postgres/outage"
	"github.com/skipprd/skipprd/wal/env"
)

// How often a slot that our own stream has just left is asked for.
const (
	dropRetryInterval = 100 * time.Millisecond
	dropRetries       = 50
)

// Teardown implements ingest.Source. On another server than the one where Setup ran
// nothing is removed, and that is not an error: nothing is in the way there.
func (s *Source) Teardown(ctx context.Context, prior []byte) ([]string, error) {
	if e := s.takeExporter(); e != nil {
		closeNow(e.conn)
	}
	st := &state{
		Slot: s.cfg.slot, Publications: []string{s.cfg.publication},
		Owned: []string{s.cfg.publication, s.cfg.publication + appendSuffix},
	}
	if len(prior) > 0 {
		var err error
		if st, err = decodeState(prior); err != nil {
			return nil, fmt.Errorf("tear down: %w", err)
		}
	}
	var left []string
	err := s.withControl(ctx, func(conn *pgx.Conn) error {
		v, err := readSettings(ctx, conn)
		if err != nil {
			return err
		}
		if st.SystemID == "" {
			left, err = s.dropUnknown(ctx, conn, v, st)
			return err
		}
		id, err := s.identify(ctx)
		if err != nil {
			return err
		}
		if id.system != st.SystemID || v.database != st.Database {
			return fmt.Errorf("%w: system %s, database %s", ErrOtherServer, id.system, v.database)
		}
		left, err = s.drop(ctx, conn, st)
		return err
	})
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return nil, cause
	}
	if err != nil {
		left = append(left, s.leftover(st, err))
	}
	if errors.Is(err, ErrOtherServer) {
		err = nil
	}
	return left, err
}

// drop removes the slot, then the publications that are ours.
func (s *Source) drop(ctx context.Context, conn *pgx.Conn, st *state) ([]string, error) {
	if err := s.dropOwnSlot(ctx, conn, st.Slot); err != nil {
		return nil, err
	}
	var left []string
	for _, name := range st.Owned {
		sql := "DROP PUBLICATION IF EXISTS " + quoteIdent(name)
		if err := run(ctx, conn.PgConn(), sql); err != nil {
			if code(err) == "" {
				return left, unavailable("drop publication "+name, err)
			}
			left = append(left, fmt.Sprintf("Publication %s could not be dropped: %s. As its owner: %s;",
				name, firstLine(err), sql))
		}
	}
	s.log.Info("replication slot dropped", env.KeySlot, st.Slot)
	return left, nil
}

// dropOwnSlot drops the slot; its last reader may need a moment to be gone.
func (s *Source) dropOwnSlot(ctx context.Context, conn *pgx.Conn, name string) error {
	for attempt := 0; ; attempt++ {
		err := dropSlot(ctx, conn, name)
		if !errors.Is(err, ErrSlotInUse) || attempt == dropRetries {
			return err
		}
		if err := s.clock.Sleep(ctx, dropRetryInterval); err != nil {
			return err
		}
	}
}

// dropUnknown removes what an attempt without durable state may have made.
func (s *Source) dropUnknown(ctx context.Context, conn *pgx.Conn, v settings, st *state) ([]string, error) {
	sl, err := readSlot(ctx, conn, st.Slot, v.version)
	if err != nil {
		return nil, err
	}
	if sl.exists {
		if err := s.dropOrphan(ctx, conn, v, sl); err != nil {
			return nil, err
		}
	}
	if err := s.claimed(ctx, conn, v); err != nil {
		return nil, err
	}
	have, err := readPublications(ctx, conn, s.cfg.publication, v.version)
	if err != nil {
		return nil, err
	}
	st.Owned = nil
	for _, p := range []publication{have.main, have.inserts} {
		if p.exists && p.ours() {
			st.Owned = append(st.Owned, p.name)
		}
	}
	return s.drop(ctx, conn, st)
}

// leftover says what was not removed, why, and how to do so by hand.
func (s *Source) leftover(st *state, err error) string {
	statements := []string{fmt.Sprintf("SELECT pg_drop_replication_slot(%s);", quoteLiteral(st.Slot))}
	for _, name := range st.Owned {
		statements = append(statements, fmt.Sprintf("DROP PUBLICATION IF EXISTS %s;", quoteIdent(name)))
	}
	return fmt.Sprintf("Replication slot %s was left at %s:%d, database %s, where it keeps log: %s. There run: %s",
		st.Slot, s.cfg.conn.Host, s.cfg.conn.Port, s.cfg.conn.Database, outage.Say(err), strings.Join(statements, " "))
}
