package wal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

const (
	fenceKey      = "fence"
	checkpointKey = "checkpoint"
	segmentsKey   = "s/"

	// markerSlow is after how long the writer of a marker looks whether the log is still
	// its own. A takeover needs several round trips; the usual put is far below.
	markerSlow = 5 * time.Second
)

// remote executes the protocol's effects on an object store. Safe for concurrent use.
type remote struct {
	store  objstore.Store
	prefix string
	clock  env.Clock
	fail   env.Failpoints
	epoch  segment.Epoch
	mirror *mirror
}

func newRemote(cfg Config, deps Deps, m *mirror) *remote {
	prefix := strings.Trim(cfg.Prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &remote{store: deps.Store, prefix: prefix, clock: deps.Clock, fail: deps.Failpoints, mirror: m}
}

func (r *remote) markerKey(seq segment.Seq) string {
	return r.prefix + segmentsKey + seq.ID() + markerSuffix
}

func (r *remote) bodyKey(k protocol.BodyKey) string {
	return fmt.Sprintf("%s%s%s-%08x%s", r.prefix, segmentsKey, k.Seq.ID(), uint32(k.Epoch), bodySuffix)
}

// parseBodyKey reads the part of a body's key behind the last slash.
func parseBodyKey(name string) (k protocol.BodyKey, ok bool) {
	id, ok := strings.CutSuffix(name, bodySuffix)
	if !ok || len(id) != 16+1+8 || id[16] != '-' {
		return k, false
	}
	seq, ok := parseSeq(id[:16]+bodySuffix, bodySuffix)
	epoch, err := strconv.ParseUint(id[17:], 16, 32)
	k = protocol.BodyKey{Seq: seq, Epoch: segment.Epoch(epoch)}
	return k, ok && err == nil && fmt.Sprintf("%08x", epoch) == id[17:]
}

// outcome says what is known of a write.
func outcome(err error) protocol.PutOutcome {
	switch {
	case err == nil:
		return protocol.PutDone
	case errors.Is(err, objstore.ErrPrecondition):
		return protocol.PutRefused
	case errors.Is(err, objstore.ErrConflict), errors.Is(err, objstore.ErrUnavailable), errors.Is(err, ErrFull):
		return protocol.PutNot
	}
	return protocol.PutUnknown
}

// putBody keeps the body in the mirror, where it is read once it is published, and then
// stores it.
func (r *remote) putBody(ctx context.Context, e protocol.PutBody) protocol.BodyPut {
	err := r.mirror.keepBody(e.Seq, e.Data)
	if err != nil {
		return protocol.BodyPut{Seq: e.Seq, Outcome: protocol.PutNot, Err: err}
	}
	if err = r.fail.Hit(env.BeforeBody); err == nil {
		key := r.bodyKey(protocol.BodyKey{Seq: e.Seq, Epoch: r.epoch})
		_, err = r.store.Put(ctx, key, e.Data, objstore.IfAbsent())
	}
	if err == nil {
		err = r.fail.Hit(env.AfterBody)
	}
	return protocol.BodyPut{Seq: e.Seq, Outcome: outcome(err), Err: err}
}

func (r *remote) compareBody(ctx context.Context, e protocol.CompareBody) protocol.BodyCompared {
	key := r.bodyKey(protocol.BodyKey{Seq: e.Seq, Epoch: r.epoch})
	data, _, err := r.get(ctx, key)
	return protocol.BodyCompared{
		Seq: e.Seq, Same: data != nil && bytes.Equal(data, e.Data), Missing: err == nil && data == nil, Err: err,
	}
}

func (r *remote) putMarker(ctx context.Context, e protocol.PutMarker) protocol.MarkerPut {
	began := r.clock.Now()
	b := e.Marker.Encode()
	_, err := r.store.Put(ctx, r.markerKey(e.Marker.Seq), b[:], objstore.IfAbsent())
	if err == nil {
		err = r.fail.Hit(env.AfterMarker)
	}
	if err == nil {
		r.mirror.keepMarker(e.Marker.Seq, b[:])
	}
	return protocol.MarkerPut{
		Seq: e.Marker.Seq, Outcome: outcome(err), Err: err, Slow: r.clock.Since(began) > markerSlow,
	}
}

func (r *remote) readMarker(ctx context.Context, e protocol.ReadMarker) protocol.MarkerRead {
	data, _, err := r.get(ctx, r.markerKey(e.Seq))
	if err == nil && data != nil {
		r.mirror.keepMarker(e.Seq, data)
	}
	return protocol.MarkerRead{Seq: e.Seq, Data: data, Err: err}
}

func (r *remote) readFence(ctx context.Context) protocol.FenceRead {
	data, version, err := r.get(ctx, r.prefix+fenceKey)
	return protocol.FenceRead{Data: data, Version: version, Err: err}
}

func (r *remote) writeFence(ctx context.Context, e protocol.WriteFence) protocol.FenceWritten {
	v, err := r.store.Put(ctx, r.prefix+fenceKey, e.Fence.Encode(), condition(e.Version))
	return protocol.FenceWritten{Version: protocol.Version(v), Outcome: outcome(err), Err: err}
}

func (r *remote) readCheckpoint(ctx context.Context) protocol.CheckpointRead {
	data, version, err := r.get(ctx, r.prefix+checkpointKey)
	return protocol.CheckpointRead{Data: data, Version: version, Err: err}
}

func (r *remote) writeCheckpoint(ctx context.Context, e protocol.WriteCheckpoint) protocol.CheckpointWritten {
	b, err := e.Checkpoint.Encode()
	if err != nil {
		return protocol.CheckpointWritten{Outcome: protocol.PutNot, Err: err}
	}
	v, err := r.store.Put(ctx, r.prefix+checkpointKey, b, condition(e.Version))
	return protocol.CheckpointWritten{Version: protocol.Version(v), Outcome: outcome(err), Err: err}
}

func condition(v protocol.Version) objstore.Condition {
	if v == "" {
		return objstore.IfAbsent()
	}
	return objstore.IfMatch(objstore.Version(v))
}

// get returns nil data when there is no object.
func (r *remote) get(ctx context.Context, key string) ([]byte, protocol.Version, error) {
	got, err := r.store.Get(ctx, key, objstore.Range{})
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	if got.Data == nil {
		got.Data = []byte{}
	}
	return got.Data, protocol.Version(got.Version), nil
}

func (r *remote) listPage(ctx context.Context, e protocol.ListPage) protocol.PageListed {
	prefix := r.prefix + segmentsKey
	page, err := r.store.List(ctx, prefix, e.Token, objstore.ListLimitMax)
	if err != nil {
		return protocol.PageListed{Err: err}
	}
	var out protocol.PageListed
	for _, o := range page.Objects {
		name := strings.TrimPrefix(o.Key, prefix)
		if seq, ok := parseSeq(name, markerSuffix); ok {
			out.Markers = append(out.Markers, seq)
		} else if k, ok := parseBodyKey(name); ok {
			out.Bodies = append(out.Bodies, k)
		}
		if page.More {
			out.Next = o.Key
		}
	}
	return out
}

// fetchBody takes the body from the mirror if it is the one, else from the store. wrong
// says that it is not the one.
func (r *remote) fetchBody(ctx context.Context, e protocol.FetchBody) (out protocol.BodyFetched, wrong error) {
	if b := r.mirror.body(e.Marker); b != nil {
		return protocol.BodyFetched{Seq: e.Marker.Seq, Data: b}, nil
	}
	data, _, err := r.get(ctx, r.bodyKey(protocol.BodyKey{Seq: e.Marker.Seq, Epoch: e.Marker.Epoch}))
	if err == nil && data != nil {
		if len(data) != int(e.Marker.Length) || sha256.Sum256(data) != e.Marker.Digest {
			wrong = segment.ErrDigest
		} else {
			err = r.mirror.keepBody(e.Marker.Seq, data)
		}
	}
	return protocol.BodyFetched{Seq: e.Marker.Seq, Data: data, Err: err}, wrong
}

func (r *remote) deleteMarkers(ctx context.Context, e protocol.DeleteMarkers) protocol.Deleted {
	if err := r.fail.Hit(env.BeforeReclaim); err != nil {
		return protocol.Deleted{Err: err}
	}
	keys := make([]string, len(e.Seqs))
	for i, seq := range e.Seqs {
		keys[i] = r.markerKey(seq)
	}
	return protocol.Deleted{Err: r.delete(ctx, keys)}
}

// deleteBodies deletes bodies in the store; the mirror drops its own when all is done.
func (r *remote) deleteBodies(ctx context.Context, e protocol.DeleteBodies) protocol.Deleted {
	if err := r.fail.Hit(env.BetweenMarkerAndBodyDelete); err != nil {
		return protocol.Deleted{Err: err}
	}
	keys := make([]string, len(e.Bodies))
	for i, k := range e.Bodies {
		keys[i] = r.bodyKey(k)
	}
	return protocol.Deleted{Err: r.delete(ctx, keys)}
}

// delete removes keys, as many at a time as the store takes.
func (r *remote) delete(ctx context.Context, keys []string) error {
	for len(keys) > 0 {
		n := min(len(keys), objstore.DeleteKeysMax)
		if err := r.store.Delete(ctx, keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
