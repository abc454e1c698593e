package protocol

import "fmt"

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

func (w *Writer) advancePublish() {
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

func (w *Writer) published(err error) {
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
