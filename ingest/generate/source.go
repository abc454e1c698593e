package generate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Kind is the kind of a generator's connection.
const Kind = "generator"

// Source is the shop as a source. It keeps nothing outside: its history is a function
// of its configuration, and its newest transaction is the newest it has made.
type Source struct {
	cfg   Config
	shop  Shop
	clock env.Clock

	// newest is the last transaction made; acked the last acknowledged.
	newest, acked atomic.Int64
	// start is set by Setup: where the stream begins, when created.
	start   int64
	created bool
}

var _ ingest.Source = (*Source)(nil)

// New is an ingest.SourceFactory.
func New(_ context.Context, conn ingest.ResolvedConnection, _ *catalog.Pipeline,
	deps ingest.SourceDeps,
) (ingest.Source, error) {
	cfg, err := ParseConfig(conn.Options)
	if err != nil {
		return nil, &ingest.BadSourceError{Connection: conn.Name, Cause: err}
	}
	return NewSource(cfg, deps)
}

// NewSource makes a source of a configuration.
func NewSource(cfg Config, deps ingest.SourceDeps) (*Source, error) {
	n, err := parsePosition(deps.Position)
	if err != nil {
		return nil, err
	}
	s := &Source{cfg: cfg.withDefaults(), shop: NewShop(cfg), clock: deps.Clock}
	s.newest.Store(n)
	s.acked.Store(n)
	return s, nil
}

// Discover lists the shop's tables.
func (s *Source) Discover(_ context.Context, sel catalog.TableSelection) ([]ingest.SourceTable, error) {
	var found []ingest.SourceTable
	for _, t := range Tables() {
		st := t.Source(s.shop.Initial(t))
		if columns, ok := selected(sel, t); ok {
			found = append(found, narrow(st, columns))
		}
	}
	return found, nil
}

// selected says whether the selection names a table, and which columns, nil for all.
func selected(sel catalog.TableSelection, t Table) (columns []string, ok bool) {
	for _, except := range sel.Except {
		if except == SourceSchema+"."+t.String() || except == t.String() {
			return nil, false
		}
	}
	for _, want := range sel.Tables {
		if want.Name == t.String() && (want.Schema == "" || want.Schema == SourceSchema) {
			return want.Columns, true
		}
	}
	if sel.AllTables {
		return nil, true
	}
	for _, name := range sel.Schemas {
		if name == SourceSchema {
			return nil, true
		}
	}
	return nil, false
}

// narrow keeps the columns named, and the key's, in the table's order.
func narrow(t ingest.SourceTable, columns []string) ingest.SourceTable {
	if len(columns) == 0 {
		return t
	}
	keep := map[string]bool{}
	for _, name := range append(append([]string(nil), columns...), t.Key...) {
		keep[name] = true
	}
	var kept []ingest.SourceColumn
	for _, c := range t.Columns {
		if keep[c.Name] {
			kept = append(kept, c)
		}
	}
	t.Columns = kept
	return t
}

// setupState is the durable state: the part of the configuration that decides the
// history, and where the stream began.
type setupState struct {
	Seed      int64 `json:"seed"`
	Customers int64 `json:"customers"`
	Orders    int64 `json:"orders"`
	Start     int64 `json:"start"`
}

// Setup begins the history, or checks that it is still the same one.
func (s *Source) Setup(_ context.Context, state []byte, _ []ingest.SourceTable) (ingest.SetupResult, error) {
	want := setupState{Seed: s.cfg.Seed, Customers: s.cfg.Customers, Orders: s.cfg.Orders, Start: s.newest.Load()}
	if len(state) == 0 {
		encoded, err := json.Marshal(want)
		if err != nil {
			return ingest.SetupResult{}, fmt.Errorf("generator state: %w", err)
		}
		s.created, s.start = true, want.Start
		return ingest.SetupResult{
			State: encoded, Created: true, Start: position(want.Start), Token: want.Start,
		}, nil
	}
	var have setupState
	if err := json.Unmarshal(state, &have); err != nil {
		return ingest.SetupResult{}, fmt.Errorf("generator state: %w", err)
	}
	want.Start = have.Start
	if have != want {
		return ingest.SetupResult{}, fmt.Errorf("generator was set up with SEED %d, SCALE %d, BACKFILL %d: "+
			"its history cannot change under a pipeline", have.Seed, have.Customers, have.Orders)
	}
	s.start = have.Start
	s.newest.Store(max(s.newest.Load(), have.Start))
	return ingest.SetupResult{State: state, Start: position(have.Start), Token: have.Start}, nil
}

// Backfill opens the shop as it is now, or at the start of a stream just created.
func (s *Source) Backfill(_ context.Context) (ingest.Backfill, error) {
	at := s.newest.Load()
	if s.created {
		at = s.start
	}
	exact := s.created
	s.created = false
	return &backfill{cfg: s.cfg, state: StateAt(s.cfg, at), exact: exact}, nil
}

// Ack notes the position for Status.
func (s *Source) Ack(p change.Position) {
	n, err := parsePosition(p)
	if err != nil {
		return // only positions that Stream gave out come back
	}
	for old := s.acked.Load(); n > old && !s.acked.CompareAndSwap(old, n); old = s.acked.Load() {
	}
}

// Compare orders two positions by their numbers.
func (s *Source) Compare(a, b change.Position) int {
	x, _ := parsePosition(a)
	y, _ := parsePosition(b)
	switch {
	case a == "" && b != "":
		return -1
	case a != "" && b == "":
		return 1
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// Status tells how many transactions are not acknowledged, about in bytes.
func (s *Source) Status(context.Context) (ingest.SourceStatus, error) {
	newest, acked := s.newest.Load(), s.acked.Load()
	lag := max(0, newest-acked) * 2 * rowBytes
	return ingest.SourceStatus{
		Current: position(newest), Confirmed: position(acked),
		LagBytes: lag, RetainedBytes: lag, SlotState: "reserved",
	}, nil
}

// Teardown has nothing to remove.
func (s *Source) Teardown(context.Context, []byte) ([]string, error) { return nil, nil }

// Close has nothing to end.
func (s *Source) Close() error { return nil }

func position(n int64) change.Position { return change.Position(strconv.FormatInt(n, 10)) }

func parsePosition(p change.Position) (int64, error) {
	if p == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(p), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("generator position %q is not a transaction's number", string(p))
	}
	return n, nil
}
