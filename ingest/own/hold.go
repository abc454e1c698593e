package own

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// ErrHeldVoid means that the log was opened anew while a transaction was held in it, which so is
// void. It can be held again.
var ErrHeldVoid = errors.New("the rows of the transaction are void")

// errNoHolder means that a sink cannot hold transactions: a broken invariant.
var errNoHolder = errors.New("sink cannot hold a transaction")

// hold is how a transaction is held.
type hold struct {
	// schemas are those of tables that the transaction alters, as it leaves them.
	schemas map[change.TableID]*schema.Table
	// released is closed when nobody needs it to be held any more.
	released chan struct{}
	// id and parts name it in the catalog, once the entry's done is closed without an error.
	id    string
	parts int
}

// Held is a transaction that is durable in the log and that nobody sees. It is given up when the
// stream ends, however: whoever holds it completes it in one transaction of the catalog, while
// the pipeline stands still.
type Held struct {
	hold  *hold
	token int64
}

// Hold makes a transaction durable, for definitions that are to be committed together with it.
// schemas are those of tables that they alter. The stream delivers nothing else meanwhile. An
// error means that nothing of it takes place; the changes may still be read for a while then.
func (s *Store) Hold(ctx context.Context, c Changes, schemas map[change.TableID]*schema.Table) (*Held, error) {
	h := &hold{schemas: schemas, released: make(chan struct{})}
	e := &entry{changes: c, hold: h, done: make(chan struct{})}
	s.mu.Lock()
	s.mu.queue = append(s.mu.queue, e)
	s.mu.Unlock()
	signal(s.wake)
	err := s.deps.Tasks.Wait(ctx, 0, e.done)
	if err == nil && e.err != nil {
		return nil, e.err
	}
	if err == nil {
		return &Held{h, e.token}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(h.released)
	at := slices.Index(s.mu.queue, e)
	switch {
	case at < 0: // its fate was known at the same moment
	case at >= s.mu.handed:
		s.mu.queue = slices.Delete(s.mu.queue, at, at+1)
	default:
		e.left = err
	}
	return nil, err
}

// Release says that it need not be held any more. It is called once.
func (h *Held) Release() { close(h.hold.released) }

// Complete makes it visible, and the position of the pipeline the one behind it, in a
// transaction of the catalog. It wraps ErrHeldVoid.
func (h *Held) Complete(txn *catalog.Txn) error {
	p, err := txn.Pipeline(catalog.OwnPipeline)
	if err != nil {
		return err
	}
	done, err := txn.CompleteHeld(p.ID, h.hold.id, h.hold.parts)
	if err == nil && !done && !mutant.On(mutant.HeldVoidCompleted) {
		err = ErrHeldVoid
	}
	if err != nil {
		return fmt.Errorf("complete rows of a transaction: %w", err)
	}
	return txn.SetPosition(p.ID, position(h.token))
}

// deliverHeld gives a transaction to the sink, which holds it until it is released or the stream
// ends.
func (s *source) deliverHeld(ctx context.Context, e *entry, targets map[change.TableID]target, sink ingest.Sink) error {
	holder, ok := sink.(ingest.Holder)
	if !ok {
		return errNoHolder
	}
	if err := sink.Begin(e.token, s.store.deps.Clock.Now()); err != nil {
		return err
	}
	d := delivery{token: e.token, targets: maps.Clone(targets), sink: sink}
	var adopted []change.TableID
	var err error
	for id, next := range e.hold.schemas {
		if t, ok := d.targets[id]; ok && t.version != next.Version {
			t.version = next.Version
			d.targets[id] = t
			adopted = append(adopted, id)
			err = errors.Join(err, holder.Adopt(id, next))
		}
	}
	if err != nil {
		return err
	}
	err = e.changes.Each(d.batch)
	switch {
	case err == nil:
		id, parts, err := holder.Hold()
		if err != nil {
			return err
		}
		if s.store.held(e, id, parts) {
			if err := s.store.deps.Tasks.Wait(ctx, 0, e.hold.released); err != nil {
				return err
			}
		}
	case errors.Is(err, errRefused):
		s.store.refuse(e, err)
	default:
		return err
	}
	if err := sink.Abort(); err != nil {
		return err
	}
	for _, id := range adopted {
		if err := holder.Adopt(id, s.tables[id]); err != nil {
			return err
		}
	}
	return nil
}

// held tells who waits for it that a transaction is held; false: nobody does.
func (s *Store) held(e *entry, id string, parts int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.mu.queue, e)
	if at < 0 {
		return false
	}
	e.hold.id, e.hold.parts = id, parts
	left := e.left
	s.giveUp(at, left)
	return left == nil
}
