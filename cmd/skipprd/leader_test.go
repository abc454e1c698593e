package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
	"github.com/skipprd/skipprd/wal/segment"
)

func newLeader(t *testing.T, store objstore.Store, host string) *leader {
	t.Helper()
	clock, ids := env.System()
	return &leader{
		objectLog: &objectLog{bucket: "b", prefix: "p", host: host, ttl: time.Minute, linger: -1},
		store:     store, dir: t.TempDir(), clock: clock, ids: ids, log: slog.New(slog.DiscardHandler), say: func(string) {},
	}
}

func takeLead(t *testing.T, l *leader) {
	t.Helper()
	if err := l.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.close() })
}

// openPipeline opens the log of pipeline 1.
func openPipeline(t *testing.T, l *leader) error {
	t.Helper()
	clock, ids := env.System()
	log, err := l.openLog(t.Context(), wal.Config{Dir: filepath.Join(l.dir, "wal"), Pipeline: 1},
		wal.Deps{Publisher: noGroups{}, Clock: clock, IDs: ids},
		func(context.Context, change.PipelineID, segment.Epoch) error { return nil })
	if err == nil {
		t.Cleanup(func() { _ = log.Close() })
	}
	return err
}

// A node that was taken over opens no log, not even when it is about to and is taken over
// in between; and the next leader can open it.
func TestOldLeaderOpensNothing(t *testing.T) {
	for _, between := range []bool{false, true} {
		mem := memstore.New()
		b := newLeader(t, mem, "b")
		way := faultstore.New(mem, faultstore.Hooks{Before: func(_ context.Context, op faultstore.Op) faultstore.Fault {
			if between && op.Write() && op.Key == "p/00000001/fence" && b.lease == nil {
				takeLead(t, b)
			}
			return faultstore.Fault{}
		}})
		a := newLeader(t, way, "a")
		takeLead(t, a)
		if !between {
			if err := openPipeline(t, a); err != nil {
				t.Fatal(err)
			}
			takeLead(t, b)
		}
		if err := openPipeline(t, a); !errors.Is(err, wal.ErrFenced) || !strings.Contains(err.Error(), `host "b"`) {
			t.Errorf("between %v: a opens: %v", between, err)
		}
		if between {
			page, err := mem.List(t.Context(), "p/00000001/s/", "", 10)
			if err != nil || len(page.Objects) > 0 {
				t.Errorf("a has written %v, %v", page.Objects, err)
			}
		}
		if err := a.watch(t.Context()); !errors.Is(err, wal.ErrFenced) {
			t.Errorf("a goes on: %v", err)
		}
		if err := openPipeline(t, b); err != nil {
			t.Errorf("b opens: %v", err)
		}
		if a.epoch == b.epoch || b.epochOf(1) < 2 {
			t.Errorf("epochs %d and %d, of the log %d", a.epoch, b.epoch, b.epochOf(1))
		}
	}
}

// The next process on a data directory need not wait for the lease of the one before, but
// for another node's.
func TestOwnLeaseIsFree(t *testing.T) {
	mem := memstore.New()
	a := newLeader(t, mem, "a")
	takeLead(t, a)
	again, other := newLeader(t, mem, "a"), newLeader(t, mem, "b")
	again.dir = a.dir
	if err := again.stand(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := ""
	other.say = func(text string) { said = text; cancel() }
	if err := other.stand(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("b does not wait: %v", err)
	}
	if !strings.Contains(said, `held by host "a" (epoch 1)`) {
		t.Errorf("b says %q", said)
	}
	if err := a.lease.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.stand(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRemoveLog(t *testing.T) {
	mem := memstore.New()
	a, b := newLeader(t, mem, "a"), newLeader(t, mem, "b")
	takeLead(t, a)
	if err := openPipeline(t, a); err != nil {
		t.Fatal(err)
	}
	takeLead(t, b)
	mirror := filepath.Join(a.dir, "wal")
	if err := a.removeLog(t.Context(), 1, mirror); !errors.Is(err, wal.ErrFenced) {
		t.Errorf("a removes: %v", err)
	}
	if err := b.removeLog(t.Context(), 1, mirror); err != nil {
		t.Error(err)
	}
	page, err := mem.List(t.Context(), "p/00000001/", "", 10)
	if _, stat := os.Stat(mirror); err != nil || len(page.Objects) > 0 || stat == nil {
		t.Errorf("left: %v, %v, %v", page.Objects, err, stat)
	}
}

func TestClaimDirectory(t *testing.T) {
	store := "s3://b/p"
	dir := t.TempDir()
	for _, step := range []struct {
		location string
		ok       bool
	}{{onDisk, true}, {store, true}, {store, true}, {onDisk, false}, {"s3://b/q", false}} {
		if err := claimDirectory(dir, step.location, "catalog/*"); (err == nil) != step.ok {
			t.Errorf("claim for %s: %v", step.location, err)
		}
	}
	used := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(used, "catalog"), 0o700), os.WriteFile(filepath.Join(used, "catalog", "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := claimDirectory(used, store, "catalog/*"); err == nil {
		t.Error("a directory with a log on disk was taken")
	}
}

func TestObjectLogSettings(t *testing.T) {
	key := strings.Repeat("ab", 32)
	good := []string{"--data-dir", t.TempDir(), "--log", "s3://bucket/a/b/", "--secret-key", key}
	c, err := resolve(t, good, map[string]string{"LOG_LINGER": "0", "NODE_NAME": "n"})
	if err != nil {
		t.Fatal(err)
	}
	o := c.objectLog()
	if o.location() != "s3://bucket/a/b" || o.key("lake") != "a/b/lake" || o.linger >= 0 || o.ttl != 15*time.Second || o.host != "n" {
		t.Errorf("settings %+v", o)
	}
	for name, args := range map[string][]string{
		"prefix":            {"--log", "s3://bucket"},
		"disk or s3":        {"--log", "gs://bucket/p"},
		"endpoint":          {"--log-endpoint", "nowhere"},
		"access key id":     {"--log-secret-access-key", "hush"},
		"log-lease":         {"--log-lease", "100ms"},
		"log-ca-file":       {"--log-ca-file", "/not/there"},
		"secret-key":        {"--secret-key", ""},
		"bucket is not set": {"--log", "s3:///p"},
	} {
		_, err := resolve(t, append(append([]string{}, good...), args...), nil)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v: %v, want %q", args, err, name)
		}
	}
	if c, err := resolve(t, []string{"--data-dir", t.TempDir(), "--wal-storage", "disk"}, nil); err != nil || c.objectLog() != nil {
		t.Errorf("the earlier name of --log: %v", err)
	}
}
