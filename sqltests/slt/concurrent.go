package slt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
)

// turnsAtOnce bounds the sessions of a concurrent loop.
const turnsAtOnce = 64

// concurrent runs the turns of a loop at the same time, each on sessions of its own.
func (s *run) concurrent(ctx context.Context, rec *Record) error {
	errs := make([]error, len(rec.Turns))
	slots := make(chan struct{}, turnsAtOnce) // one per session at most
	var wg sync.WaitGroup
	for i, turn := range rec.Turns {
		child := s.child()
		child.enter(turn)
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = child.records(ctx, rec.Body)
			child.end()
		})
	}
	wg.Wait()
	for _, err := range errs {
		if errors.Is(err, errHalt) {
			return fmt.Errorf("halt inside of %s", rec.Words[0])
		}
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

// child is a run like s with no session yet.
func (s *run) child() *run {
	c := *s
	c.sessions, c.pending = map[sessionKey]*session{}, map[string]*pending{}
	c.vars, c.dollar = maps.Clone(s.vars), maps.Clone(s.dollar)
	return &c
}

// pending is a statement that runs meanwhile.
type pending struct {
	rec  *Record
	on   *session
	done chan struct{} // closed when ans and err are set
	ans  *answer
	err  error
}

// async starts a statement whose end "awaitstatement" waits for.
func (s *run) async(ctx context.Context, rec *Record) error {
	if s.pending[rec.Async] != nil {
		return fmt.Errorf("a statement named %s runs already", rec.Async)
	}
	sql, on, err := s.prepare(ctx, rec)
	if err != nil {
		return err
	}
	p := &pending{rec: rec, on: on, done: make(chan struct{})}
	on.busy = rec.Async
	s.pending[rec.Async] = p
	go func() {
		defer close(p.done)
		p.ans, p.err = s.cfg.execute(ctx, on, sql)
	}()
	return nil
}

// await ends a statement of async.
func (s *run) await(rec *Record) error {
	p := s.pending[rec.Words[1]]
	if p == nil {
		return fmt.Errorf("no statement named %s runs", rec.Words[1])
	}
	<-p.done
	delete(s.pending, rec.Words[1])
	p.on.busy = ""
	if p.err != nil {
		return fmt.Errorf("%w\n%s", p.err, p.rec.SQL)
	}
	return s.judge(p.rec, p.ans)
}

// end closes the sessions. A statement that nobody awaited is a failure.
func (s *run) end() {
	var names []string
	for name, p := range s.pending {
		names = append(names, name)
		_ = p.on.conn.PgConn().CancelRequest(context.Background()) // it may be over
		<-p.done
	}
	if len(names) > 0 {
		s.shared.fail(fmt.Errorf("never awaited: %s", strings.Join(names, ", ")))
	}
	for _, c := range s.sessions {
		_ = c.conn.Close(context.Background()) // a client goes away
	}
}
