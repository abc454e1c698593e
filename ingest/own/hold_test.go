package own_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/ingest/sourcetest"
	"github.com/skipprd/skipprd/wal/change"
)

// holder is a sink that holds transactions, and says what it was asked for.
type holder struct {
	*sourcetest.Recorder
	asked []string
	err   error
}

func (h *holder) Adopt(t change.TableID, s *schema.Table) error {
	h.asked = append(h.asked, fmt.Sprintf("table %d version %d", t, s.Version))
	return nil
}

func (h *holder) Hold() (string, int, error) {
	h.asked = append(h.asked, "hold")
	return fmt.Sprint("txn", len(h.asked)), 1, h.err
}

func (h *holder) Abort() error {
	h.asked = append(h.asked, "abort")
	return h.Recorder.Abort()
}

// streamHeld runs a stream whose sink can hold.
func (r *rig) streamHeld(from change.Position) (h *holder, stop func() error) {
	source, err := r.store.Source(r.Context(), ingest.ResolvedConnection{}, nil, ingest.SourceDeps{})
	if err != nil {
		r.Fatal(err)
	}
	tables := []ingest.StreamTable{table(1), table(2)}
	h = &holder{Recorder: sourcetest.NewRecorder(tables, 1000)}
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Stream(ctx, from, tables, h) }()
	synctest.Wait()
	return h, func() error {
		cancel()
		return <-ended
	}
}

type heldResult struct {
	held *own.Held
	err  error
}

func (r *rig) hold(ctx context.Context, c changes, schemas map[change.TableID]*schema.Table) <-chan heldResult {
	out := make(chan heldResult, 1)
	go func() {
		held, err := r.store.Hold(ctx, c, schemas)
		out <- heldResult{held, err}
	}()
	synctest.Wait()
	return out
}

func wantAsked(t *testing.T, what string, h *holder, want ...string) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(h.asked, want) || h.Broken != "" {
		t.Errorf("%s: asked %q (%s), want %q", what, h.asked, h.Broken, want)
	}
}

// later is things as a transaction alters it.
func later() *schema.Table {
	s := *things
	s.Version = things.Version + 1
	return &s
}

// A transaction is held while somebody commits it, and nothing else goes on; when it is let go it
// is given up, and the table is as it was for those behind it.
func TestHoldAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, stop := r.streamHeld("4")
		next := later()
		got := r.hold(t.Context(), changes{{table: 1, op: change.Insert, id: 1, version: next.Version}}, map[change.TableID]*schema.Table{1: next})
		behind := r.commit(changes{{table: 1, op: change.Insert, id: 2}})
		wantAsked(t, "held", h, "table 1 version 2", "hold")
		result := <-got
		if result.err != nil {
			t.Fatal(result.err)
		}
		behind.waits(t, "behind")
		result.held.Release()
		wantAsked(t, "released", h, "table 1 version 2", "hold", "abort", "table 1 version 1")
		if n := len(h.Transactions); n != 1 || h.Transactions[0].Position != "6" {
			t.Errorf("%d transactions: %v", n, h.Transactions)
		}
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// The pipeline stands still for the commit: the stream ends, and the next one knows nothing of
// what was held.
func TestHoldEndsWithTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, stop := r.streamHeld("0")
		got := r.hold(t.Context(), changes{{table: 1, op: change.Insert, id: 1}}, nil)
		result := <-got
		if result.err != nil {
			t.Fatal(result.err)
		}
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		wantAsked(t, "ended", h, "hold")
		h, stop = r.streamHeld("1")
		behind := r.commit(changes{{table: 2, op: change.Insert, id: 2}})
		behind.waits(t, "behind")
		if n := len(h.Transactions); n != 1 || h.Transactions[0].Token != 2 {
			t.Errorf("%d transactions: %v", n, h.Transactions)
		}
		result.held.Release()
		wantAsked(t, "the next stream", h)
		_ = stop()
	})
}

// Who holds a transaction gives up before it is in the log, or while it is on its way there: it
// is told at once, and nothing of it stays.
func TestHoldGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		why := errors.New("cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		got := r.hold(ctx, changes{{table: 1, op: change.Insert, id: 1}}, nil)
		cancel(why) // no stream runs
		if result := <-got; !errors.Is(result.err, why) {
			t.Fatal(result.err)
		}
		h, stop := r.streamHeld("0")
		wantAsked(t, "never delivered", h)

		h.err = errors.New("log failed") // the session ends, and the next one is given it again
		got = r.hold(t.Context(), changes{{table: 1, op: change.Insert, id: 1}}, nil)
		wantAsked(t, "failed", h, "hold")
		if err := stop(); !errors.Is(err, h.err) {
			t.Errorf("stream ended with %v", err)
		}
		h, stop = r.streamHeld("0")
		result := <-got
		if result.err != nil {
			t.Fatal(result.err)
		}
		wantAsked(t, "again", h, "hold")
		result.held.Release()
		wantAsked(t, "released", h, "hold", "abort")
		_ = stop()
	})
}

// A table that is not there any more is told of, and the stream goes on.
func TestHoldRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, stop := r.streamHeld("0")
		got := r.hold(t.Context(), changes{{table: 1, op: change.Insert, id: 1}, {table: 9, op: change.Insert, id: 1}}, nil)
		if result := <-got; !errors.Is(result.err, own.ErrTableGone) || result.held != nil {
			t.Fatalf("%v, %v", result.held, result.err)
		}
		wantAsked(t, "refused", h, "abort")
		r.commit(changes{{table: 2, op: change.Insert, id: 2}})
		if n := len(h.Transactions); n != 1 {
			t.Errorf("%d transactions", n)
		}
		_ = stop()
	})
}
