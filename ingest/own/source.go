package own

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
)

// Kind is the kind of the connection of tables of our own.
const Kind = "own"

// errNoCopy means that a table of our own was to be copied: it has no other home.
var errNoCopy = errors.New("a table that is fed by statements here has nothing to copy")

// source is a store as ingest sees it. It keeps nothing that outlives a session.
type source struct {
	store *Store
	// tables are those of the stream, as they were when it began.
	tables map[change.TableID]*schema.Table
}

var (
	_ ingest.Source   = (*source)(nil)
	_ ingest.Pacer    = (*source)(nil)
	_ ingest.Rejecter = (*source)(nil)
)

// Source is an ingest.SourceFactory.
func (s *Store) Source(context.Context, ingest.ResolvedConnection, *catalog.Pipeline, ingest.SourceDeps) (ingest.Source, error) {
	return &source{store: s}, nil
}

// groupInterval is the least time between two groups of the log: a session that commits
// row by row waits for it each time, and each group costs readers a slice.
const groupInterval = 2 * time.Millisecond

// GroupInterval implements ingest.Pacer.
func (s *source) GroupInterval() time.Duration { return groupInterval }

// Reject implements ingest.Rejecter: it settles the first transaction that is not durable,
// which is the one that the log is full of.
func (s *source) Reject(why error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.store.mu.handed > 0 {
		s.store.giveUp(0, fmt.Errorf("%w: %w", ErrNoRoom, why))
	}
}

// Discover knows of no tables: they are the catalog's.
func (s *source) Discover(context.Context, catalog.TableSelection) ([]ingest.SourceTable, error) {
	return nil, nil
}

// Setup has nothing to make.
func (s *source) Setup(_ context.Context, state []byte, _ []ingest.SourceTable) (ingest.SetupResult, error) {
	return ingest.SetupResult{State: []byte(Kind), Created: len(state) == 0, Start: position(0)}, nil
}

// Backfill is for tables that are copied from elsewhere.
func (s *source) Backfill(context.Context) (ingest.Backfill, error) { return nil, errNoCopy }

// Compare orders positions by their numbers.
func (s *source) Compare(a, b change.Position) int {
	if d := len(a) - len(b); d != 0 {
		return d
	}
	return strings.Compare(string(a), string(b))
}

// Ack settles what is durable.
func (s *source) Ack(p change.Position) {
	if n, err := parsePosition(p); err == nil {
		s.store.durable(n)
	}
}

// Status is what is committed and what is durable.
func (s *source) Status(context.Context) (ingest.SourceStatus, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return ingest.SourceStatus{
		Current: position(max(s.store.mu.newest, s.store.mu.acked)), Confirmed: position(s.store.mu.acked),
	}, nil
}

// Teardown has nothing to remove.
func (s *source) Teardown(context.Context, []byte) ([]string, error) { return nil, nil }

// Close has nothing to close.
func (s *source) Close() error { return nil }

// position is where the stream is behind a transaction; it is the transaction's order
// token, so that tokens grow across restarts. Longer is greater.
func position(token int64) change.Position {
	return change.Position(strconv.FormatInt(token, 10))
}

func parsePosition(p change.Position) (int64, error) {
	if p == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(p), 10, 64)
	if err != nil || n < 0 || p != position(n) {
		return 0, fmt.Errorf("position %q is not one of tables of our own", p)
	}
	return n, nil
}
