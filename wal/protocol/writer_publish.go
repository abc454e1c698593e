package protocol

import "fmt"

// producers is what a writer owes to those who append: an answer for each group, and
// before it the catalog's.
type producers struct {
	out     []Effect
	queue   []Item // waiting for a commit
	publish publishing
}

func (w *producers) emit(e Effect) { w.out = append(w.out, e) }

func (w *producers) failQueue(err error) {
	for _, it := range w.queue {
		w.emit(Failed{ID: it.ID, Err: err})
	}
	clear(w.queue)
	w.queue = w.queue[:0]
}

func (w *producers) answer(ids []uint64, err error) {
	for _, id := range ids {
		if err != nil {
			w.emit(Failed{ID: id, Err: err})
		} else {
			w.emit(Done{ID: id})
		}
	}
}

// takeQueue takes the first n of what waits.
func (w *producers) takeQueue(n int) {
	rest := copy(w.queue, w.queue[n:])
	clear(w.queue[rest:])
	w.queue = w.queue[:rest]
}

// publishing is the groups past their commit point that the catalog has not.
type publishing struct {
	pending  commit // not handed over
	current  commit // handed over, under way or to be repeated
	underway bool
	again    bool
	failed   error // of the last attempt; no append is taken until it is repaired
}

func (p *publishing) owed() bool { return len(p.pending.groups) > 0 || len(p.current.groups) > 0 }

func (p *publishing) add(c commit) {
	p.pending.ids = append(p.pending.ids, c.ids...)
	p.pending.groups = append(p.pending.groups, c.groups...)
}

func (w *producers) advancePublish() {
	p := &w.publish
	switch {
	case p.underway:
	case p.again:
		p.again, p.underway = false, true
		w.emit(Publish{Groups: p.current.groups})
	case p.failed == nil && len(p.pending.groups) > 0:
		p.current, p.pending, p.underway = p.pending, commit{}, true
		w.emit(Publish{Groups: p.current.groups})
	}
}

func (w *producers) published(err error) {
	p := &w.publish
	p.underway = false
	if err != nil {
		p.failed = err
		cause := fmt.Errorf("%w: %w", ErrUnpublished, err)
		// What is being written belongs to callers that have not failed yet; it
		// joins the retry, and they are told now what they would be told then.
		for _, ids := range [][]uint64{p.current.ids, p.pending.ids} {
			for _, id := range ids {
				w.emit(Failed{ID: id, Err: cause})
			}
		}
		p.current.ids = nil
		p.current.groups = append(p.current.groups, p.pending.groups...)
		p.pending = commit{}
		w.failQueue(cause)
		return
	}
	p.failed = nil
	for i, id := range p.current.ids {
		w.emit(Done{ID: id, Placed: p.current.groups[i]})
	}
	p.current = commit{}
}
