package wal

import (
	"context"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// Pending is something that was asked of a log and may not be answered yet. Not safe
// for concurrent use.
type Pending struct {
	l      *Log
	group  *segment.Encoded // of an append, until it is answered
	answer chan reply       // holds one
	out    reply
	done   bool
}

// Outcome is the answer, when there is one: for a group what Append returns, else the
// error alone. After done it repeats itself. Whoever started an append asks until it
// is done, or the log counts the group as queued for good.
func (p *Pending) Outcome() (group CommittedGroup, err error, done bool) {
	if !p.done {
		select {
		case out := <-p.answer:
			p.finish(out)
		default:
			if !p.l.isAbandoned() {
				return CommittedGroup{}, nil, false
			}
			p.finish(reply{err: ErrClosed})
		}
	}
	return p.out.group, p.out.err, true
}

// wait waits for the answer.
func (p *Pending) wait() reply {
	if !p.done {
		p.finish(<-p.answer)
	}
	return p.out
}

func (p *Pending) finish(out reply) {
	p.out, p.done = out, true
	if p.group != nil {
		p.l.dequeued(p.group)
		p.group = nil
	}
}

// Start begins what Append does and does not wait. ErrBusy: too much is queued, and
// nothing was taken. Like Append it keeps neither g nor its batches.
func (l *Log) Start(ctx context.Context, g *change.Group) (*Pending, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	x, err := l.encoder.Encode(g)
	if err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	p := &Pending{answer: make(chan reply, 1)}
	if room, err := l.enqueue(p, x); err != nil || room != nil {
		l.encoder.Release(x)
		if err == nil {
			err = ErrBusy
		}
		return nil, fmt.Errorf("append: %w", err)
	}
	return p, nil
}

// enqueue hands x to the owner, who answers p. When too much is queued it returns a
// channel instead that is closed when there may be room.
func (l *Log) enqueue(p *Pending, x *segment.Encoded) (room <-chan struct{}, err error) {
	n := int64(x.Bytes())
	var now time.Time
	if l.remote != nil {
		now = l.deps.Clock.Now()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return nil, ErrClosed
	}
	if l.mu.bytes != 0 && l.mu.bytes+n > queuedCommits*l.cfg.GroupBytes {
		l.mu.wanted = true
		return l.mu.room, nil
	}
	p.l, p.group, p.done = l, x, false
	if len(l.mu.inbox.appends) == 0 {
		l.mu.since = now
		poke(l.lingering)
	}
	l.mu.bytes += n
	l.mu.queued += n
	l.mu.next++
	l.mu.inbox.appends = append(l.mu.inbox.appends, request{id: l.mu.next, group: x, reply: p.answer})
	l.signal()
	return nil, nil
}

// dequeued gives back what an answered append held.
func (l *Log) dequeued(x *segment.Encoded) {
	l.mu.Lock()
	l.mu.bytes -= int64(x.Bytes())
	if l.mu.wanted {
		close(l.mu.room)
		l.mu.room, l.mu.wanted = make(chan struct{}), false
	}
	l.mu.Unlock()
	l.encoder.Release(x)
}

// StartSeal begins what SealActive does and does not wait.
func (l *Log) StartSeal() (*Pending, error) {
	p := &Pending{l: l, answer: make(chan reply, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return nil, fmt.Errorf("seal: %w", ErrClosed)
	}
	l.mu.next++
	l.mu.inbox.controls = append(l.mu.inbox.controls, request{id: l.mu.next, reply: p.answer})
	l.signal()
	return p, nil
}

// StartReclaim begins what Reclaim does and does not wait. ErrBusy: another one is
// under way.
func (l *Log) StartReclaim(seqs []segment.Seq) (*Pending, error) {
	select {
	case l.reclaiming <- struct{}{}:
	default:
		return nil, fmt.Errorf("reclaim: %w", ErrBusy)
	}
	return l.startReclaim(seqs)
}

// startReclaim is called by the holder of l.reclaiming, which the answer gives back.
func (l *Log) startReclaim(seqs []segment.Seq) (*Pending, error) {
	p := &Pending{l: l, answer: make(chan reply, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		<-l.reclaiming // holds one: ours
		return nil, fmt.Errorf("reclaim: %w", ErrClosed)
	}
	l.mu.inbox.reclaims = append(l.mu.inbox.reclaims, &reclaim{seqs: seqs, reply: p.answer})
	l.signal()
	return p, nil
}

// Settled is what Settle would wait for: nil when the log takes appends, else why it
// does not.
func (l *Log) Settled() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return fmt.Errorf("settle: %w", ErrClosed)
	}
	return l.mu.health.refuses
}

func (l *Log) isAbandoned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.abandoned
}

// answerReclaim gives the turn to the next reclaim and answers r.
func (l *Log) answerReclaim(r *reclaim, err error) {
	<-l.reclaiming // holds one: r's
	r.reply <- reply{err: err}
}
