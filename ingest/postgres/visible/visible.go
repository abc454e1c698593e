package visible

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest/postgres/outage"
	"github.com/skipprd/skipprd/wal/env"
)

// ErrWaits says that a commit is not seen for long: it waits for a synchronous standby.
var ErrWaits = errors.New("a commit is not visible at the source yet: it waits for a synchronous standby" +
	" (see pg_stat_replication, and synchronous_standby_names, which must not match this pipeline's own session as '*' does)")

// Source asks a server by ordinary sessions. Safe for concurrent use if Lend is.
type Source struct {
	// Lend lends a connection without an open transaction.
	Lend  func(ctx context.Context, use func(conn *pgx.Conn) error) error
	Clock env.Clock
	// Slow is told once, by each wait, that it takes longer than an instant; nil: nobody is.
	Slow func()
}

const (
	// pauseFirst and pauseMost are the pauses between two looks, each twice the one before.
	pauseFirst, pauseMost = 10 * time.Millisecond, 500 * time.Millisecond
	// slowAfter is from when on a wait is no instant any more.
	slowAfter = 100 * time.Millisecond
	// waitMost is how long is waited in all. A commit takes as long as the slowest standby,
	// and nothing goes on here meanwhile.
	waitMost = 30 * time.Second
)

// transactionQuery says whether others see what a transaction has done, $1 being the low
// half of its number.
const transactionQuery = `
SELECT pg_catalog.txid_visible_in_snapshot(CASE
         WHEN f - m >= 2147483648 THEN f - 4294967296
         WHEN m - f > 2147483648 THEN f + 4294967296
         ELSE f END, s)
  FROM (SELECT s, pg_catalog.txid_snapshot_xmax(s) AS m,
               (pg_catalog.txid_snapshot_xmax(s) & ~4294967295::int8) | $1::int8 AS f
          FROM pg_catalog.txid_current_snapshot() s) t`

// Transaction waits until others see what a streamed transaction has done. It wraps
// ErrWaits and ingest.ErrSourceUnavailable when that takes too long.
func (s Source) Transaction(ctx context.Context, xid uint32) error {
	return s.await(ctx, transactionQuery, int64(xid))
}

// momentQuery says whether others see all of a snapshot, $1: no transaction that it has
// runs still.
const momentQuery = `
SELECT NOT EXISTS (
  SELECT FROM pg_catalog.txid_snapshot_xip(pg_catalog.txid_current_snapshot()) x(id)
   WHERE pg_catalog.txid_visible_in_snapshot(x.id, $1::text::pg_catalog.txid_snapshot))`

// Moment waits until others see all transactions of the snapshot of a slot, as
// txid_current_snapshot shows it within. It fails as Transaction does.
func (s Source) Moment(ctx context.Context, snapshot string) error {
	return s.await(ctx, momentQuery, snapshot)
}

// await waits until a query is true.
func (s Source) await(ctx context.Context, query string, arg any) error {
	return s.poll(ctx, func() (done bool, err error) {
		err = s.Lend(ctx, func(conn *pgx.Conn) error {
			if err := conn.QueryRow(ctx, query, arg).Scan(&done); err != nil {
				return unavailable("look whether a commit is visible", err)
			}
			return nil
		})
		return done, err
	})
}

// poll looks until done, with pauses.
func (s Source) poll(ctx context.Context, look func() (done bool, err error)) error {
	waited := time.Duration(0)
	for pause := pauseFirst; ; pause = min(2*pause, pauseMost) {
		done, err := look()
		if err != nil || done {
			return err
		}
		if s.Slow != nil && waited < slowAfter && waited+pause >= slowAfter {
			s.Slow()
		}
		if waited >= waitMost {
			return unavailable("see what is in its log", ErrWaits)
		}
		if err := s.Clock.Sleep(ctx, pause); err != nil {
			return err
		}
		waited += pause
	}
}

func unavailable(what string, err error) error { return outage.Wrap(what, err) }
