// Package faultstore is an object store on which the simulator, or a test, decides
// what goes wrong. It draws nothing itself: equal decisions give equal runs.
package faultstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/wal/objstore"
)

// Hooks decide. Each may be nil, may block (so a request is as slow as they like) and
// may let other requests run meanwhile: the store holds no lock while it calls them.
type Hooks struct {
	// Before is called before a request has an effect and says what goes wrong.
	Before func(ctx context.Context, op Op) Fault
	// After is called when the effect has happened, before the caller sees the answer,
	// with the error that it will see. It may say LostReply: then the answer is
	// Fault.Err, or the usual error of a lost reply. All else is as None.
	After func(ctx context.Context, op Op, err error) Fault
}

// Store is a client's way to another store: each client has its own, with its own
// requests under way. Not safe for concurrent use, except by hooks and by clients
// that take turns, as those of the simulator do.
type Store struct {
	store objstore.Store
	hooks Hooks
	late  []Op
}

var _ objstore.Store = (*Store)(nil)

// New puts a way with faults before store.
func New(store objstore.Store, hooks Hooks) *Store { return &Store{store: store, hooks: hooks} }

// Late gives the writes under way, in the order in which they were sent.
func (s *Store) Late() []Op { return slices.Clone(s.late) }

// Deliver lets the i-th of Late reach the store. Its answer is for the trace: nobody
// waits for it any more.
func (s *Store) Deliver(ctx context.Context, i int) (Op, error) {
	op := s.late[i]
	s.late = slices.Delete(s.late, i, i+1)
	return op, s.write(ctx, op).err
}

// Drop forgets the i-th of Late: it never arrives.
func (s *Store) Drop(i int) { s.late = slices.Delete(s.late, i, i+1) }

// Put implements objstore.Store.
func (s *Store) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Version, error) {
	a := s.do(ctx, Op{Verb: Put, Key: key, Body: body, Cond: cond})
	return a.version, a.err
}

// Get implements objstore.Store.
func (s *Store) Get(ctx context.Context, key string, r objstore.Range) (objstore.Object, error) {
	a := s.do(ctx, Op{Verb: Get, Key: key, Range: r})
	return a.object, a.err
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	return s.do(ctx, Op{Verb: Delete, Keys: slices.Clone(keys)}).err
}

// List implements objstore.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (objstore.Page, error) {
	a := s.do(ctx, Op{Verb: List, Key: prefix, After: after, Limit: limit})
	return a.page, a.err
}

// answer is what a request returns: the field of its verb, or an error.
type answer struct {
	version objstore.Version
	object  objstore.Object
	page    objstore.Page
	err     error
}

func (s *Store) do(ctx context.Context, op Op) answer {
	if err := validate(ctx, op); err != nil {
		return answer{err: err} // never sent
	}
	var f Fault
	if s.hooks.Before != nil {
		f = s.hooks.Before(ctx, op)
	}
	if !op.Applies(f.Kind) {
		f = Fault{}
	}
	a, effect := s.serve(ctx, op, f)
	if !effect || s.hooks.After == nil {
		return a
	}
	if late := s.hooks.After(ctx, op, a.err); late.Kind == LostReply {
		return lost(op, late)
	}
	return a
}

// validate refuses what would not be sent, as the store itself would.
func validate(ctx context.Context, op Op) error {
	var err error
	switch op.Verb {
	case Put:
		err = objstore.ValidatePut(op.Key, op.Body)
	case Get:
		err = errors.Join(objstore.ValidateKey(op.Key), op.Range.Validate())
	case Delete:
		err = objstore.ValidateDelete(op.Keys)
	default:
		err = objstore.ValidateList(op.Key, op.After, op.Limit)
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// serve answers under a fault that applies, and says whether the store was reached.
func (s *Store) serve(ctx context.Context, op Op, f Fault) (a answer, effect bool) {
	switch f.Kind {
	case Refused:
		return fail(op, objstore.ErrUnavailable), false
	case Conflicted:
		return fail(op, objstore.ErrConflict), false
	case Failed:
		return answer{err: fmt.Errorf("%s: %w", op, f.Err)}, false
	case LostRequest:
		return lost(op, f), false
	case Late:
		s.late = append(s.late, op)
		return lost(op, f), false
	case LostReply:
		s.request(ctx, op)
		return lost(op, f), true
	case Duplicated:
		s.late = append(s.late, op)
		return s.write(ctx, op), true
	case Repeated:
		s.write(ctx, op)
		return s.write(ctx, op), true
	case Partly, PartlyUnknown:
		return s.deletePartly(ctx, op, f), true
	default:
		return s.spoil(ctx, op, f, s.request(ctx, op)), true
	}
}

// request passes the request on.
func (s *Store) request(ctx context.Context, op Op) answer {
	var a answer
	switch op.Verb {
	case Get:
		a.object, a.err = s.store.Get(ctx, op.Key, op.Range)
	case List:
		a.page, a.err = s.store.List(ctx, op.Key, op.After, op.Limit)
	default:
		a = s.write(ctx, op)
	}
	return a
}

// write passes a write on. It is not stopped by its caller's end: it is under way.
func (s *Store) write(ctx context.Context, op Op) answer {
	ctx = context.WithoutCancel(ctx)
	var a answer
	if op.Verb == Put {
		a.version, a.err = s.store.Put(ctx, op.Key, op.Body, op.Cond)
	} else {
		a.err = s.store.Delete(ctx, op.Keys)
	}
	return a
}

func (s *Store) deletePartly(ctx context.Context, op Op, f Fault) answer {
	var gone []string
	kept := &objstore.DeleteError{}
	for i, key := range op.Keys {
		if f.N>>(i%64)&1 == 0 {
			gone = append(gone, key)
			continue
		}
		err := objstore.ErrUnavailable
		if f.Kind == PartlyUnknown {
			err = objstore.ErrUnknown
			gone = append(gone, key)
		}
		kept.Failed = append(kept.Failed, objstore.KeyError{Key: key, Err: fmt.Errorf("delete %s: %w: %w", key, err, errInjected)})
	}
	a := s.write(ctx, Op{Verb: Delete, Keys: gone})
	if a.err == nil && len(kept.Failed) > 0 {
		a.err = kept
	}
	return a
}

// spoil makes a good answer of a read a bad one.
func (s *Store) spoil(ctx context.Context, op Op, f Fault, a answer) answer {
	if a.err != nil {
		return a
	}
	switch f.Kind {
	case ShortPage:
		if n := int(max(1, min(f.N, objstore.ListLimitMax))); len(a.page.Objects) > n {
			a.page = objstore.Page{Objects: a.page.Objects[:n:n], More: true}
		}
	case Torn:
		n := min(f.N, uint64(len(a.object.Data)))
		a.object.Data = a.object.Data[:n:n]
	case Flipped:
		if n := uint64(len(a.object.Data)); n > 0 {
			a.object.Data = slices.Clone(a.object.Data) // the store shares it
			a.object.Data[f.N/8%n] ^= 1 << (f.N % 8)
		}
	case Misdirected:
		if other, err := s.store.Get(ctx, f.Key, op.Range); err == nil {
			a.object.Data, a.object.Size = other.Data, other.Size
		}
	case StaleVersion:
		a.object.Version = "before-" + a.object.Version
	case Damaged:
		return fail(op, objstore.ErrDamaged)
	}
	return a
}

// lost is the answer to a request whose outcome the client cannot know.
func lost(op Op, f Fault) answer {
	switch {
	case f.Err != nil:
		return answer{err: fmt.Errorf("%s: %w", op, f.Err)}
	case op.Write():
		return fail(op, objstore.ErrUnknown)
	default:
		return fail(op, objstore.ErrUnavailable)
	}
}

func fail(op Op, err error) answer {
	return answer{err: fmt.Errorf("%s: %w: %w", op, err, errInjected)}
}
