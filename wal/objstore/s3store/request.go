package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/skipprd/skipprd/wal/objstore"
)

// request is one request under way: what is needed to bound it and to say, when it
// failed, what its failure means. Owned by the method that made it.
type request struct {
	verb, key string
	write     bool
	cond      objstore.Condition

	caller  context.Context
	cancel  context.CancelCauseFunc
	release func()      // ends the current wait
	sent    atomic.Bool // a connection was had: the store may have seen the request
}

// errTimeout is the cause of a request's end when the store was too slow.
var errTimeout = errors.New("the store did not answer in time")

// begin gives the context of the request, and its end.
func (r *request) begin(ctx context.Context) (context.Context, func()) {
	r.caller, r.release = ctx, func() {}
	ctx, r.cancel = context.WithCancelCause(ctx)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { r.sent.Store(true) }})
	return ctx, func() {
		r.release()
		r.cancel(nil)
	}
}

// wait bounds the next part of the request, which moves n bytes.
func (r *request) wait(cfg Config, n int64) {
	r.release()
	limit := cfg.RequestTimeout + time.Duration(float64(n)/float64(cfg.ThroughputMin)*float64(time.Second))
	timer, stop := context.WithTimeout(context.WithoutCancel(r.caller), limit)
	detach := context.AfterFunc(timer, func() { r.cancel(errTimeout) })
	r.release = func() {
		detach()
		stop()
	}
}

// fail turns an error of the SDK into one of the contract.
func (r *request) fail(ctx context.Context, err error) error {
	kind := r.classify(err)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if kind == nil {
		return fmt.Errorf("%s %s: %w", r.verb, r.key, err)
	}
	return fmt.Errorf("%s %s: %w: %w", r.verb, r.key, kind, err)
}
