package own

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
)

// Source is the ingest.SourceFactory of the tables of our own: the shipped one, and what it
// gives to the log is noted.
func (s *Server) Source(ctx context.Context, c ingest.ResolvedConnection, p *catalog.Pipeline, d ingest.SourceDeps) (ingest.Source, error) {
	if err := s.hooks.Point("connect"); err != nil {
		return nil, err
	}
	inner, err := s.tables.Store.Source(ctx, c, p, d)
	if err != nil {
		return nil, err
	}
	paced, ok := inner.(shipped)
	if !ok {
		return nil, fmt.Errorf("source %T has no pace, or rejects nothing", inner)
	}
	return &recorder{paced, s}, nil
}

// shipped is what ingest/own's source is.
type shipped interface {
	ingest.Source
	ingest.Pacer
	ingest.Rejecter
}

// recorder is a source that notes what its stream delivers.
type recorder struct {
	shipped
	s *Server
}

// Stream implements ingest.Source.
func (r *recorder) Stream(ctx context.Context, from change.Position, tables []ingest.StreamTable, sink ingest.Sink) error {
	if err := r.s.hooks.Point("start stream"); err != nil {
		return err
	}
	at, err := number(from)
	if err != nil {
		return err
	}
	if r.s.hooks.Leads() {
		r.s.ledger.begin(r.s.deps.Epoch(), at)
		r.s.ledger.DB.Confirm(at)
	}
	return r.shipped.Stream(ctx, from, tables, &recordingSink{Sink: sink, s: r.s})
}

// Ack implements ingest.Source.
func (r *recorder) Ack(p change.Position) {
	r.s.hooks.Acked(p)
	if at, err := number(p); err == nil {
		r.s.ledger.DB.Confirm(at)
	}
	r.shipped.Ack(p)
}

func number(p change.Position) (int64, error) {
	if p == "" {
		return 0, nil
	}
	return strconv.ParseInt(string(p), 10, 64)
}

// recordingSink notes the transactions that go through it as a whole.
type recordingSink struct {
	ingest.Sink
	s    *Server
	txn  *Txn
	open int64
}

// Begin implements ingest.Sink.
func (k *recordingSink) Begin(token int64, at time.Time) error {
	t, err := k.s.given(token)
	if err != nil {
		return err
	}
	if err := k.s.hooks.Point("deliver"); err != nil {
		return err
	}
	k.txn, k.open = t, token
	return k.Sink.Begin(token, at)
}

// Commit implements ingest.Sink.
func (k *recordingSink) Commit(at change.Position) error {
	k.s.ledger.deliver(k.s.deps.Epoch(), k.open, k.txn)
	return k.Sink.Commit(at)
}

var _ ingest.Holder = (*recordingSink)(nil)

// Adopt implements ingest.Holder.
func (k *recordingSink) Adopt(t change.TableID, s *schema.Table) error {
	h, ok := k.Sink.(ingest.Holder)
	if !ok {
		return errNoHolder
	}
	return h.Adopt(t, s)
}

// Hold implements ingest.Holder.
func (k *recordingSink) Hold() (id string, parts int, err error) {
	h, ok := k.Sink.(ingest.Holder)
	if !ok {
		return "", 0, errNoHolder
	}
	if err := k.s.hooks.Point("hold"); err != nil {
		return "", 0, err
	}
	k.s.hooks.Mark("own transaction held")
	return h.Hold()
}

var errNoHolder = errors.New("sink cannot hold a transaction")
