package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/objbackup"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/segment"
)

// leader makes this node the one that writes what is below the prefix of an object store:
// the logs of all pipelines, the catalog's image and the lake's pointers. One node does at
// a time; the others stand by.
//
// Who it is says a log of its own, {prefix}/node, to which nothing is appended: its lease
// tells when another node may take over, its fence who did. A node opens a pipeline's log
// only while it has that fence, and looks again once it has fenced the pipeline's: so one
// that was taken over, and goes on later, opens nothing that the next one has opened. What
// it had open, the pipelines' fences close to it; the image and the pointers are replaced
// only by whoever replaced them last, and the next node does so before it reads the logs.
type leader struct {
	*objectLog
	store objstore.Store
	dir   string
	clock env.Clock
	ids   env.IDs
	log   *slog.Logger
	// say tells people what the node waits for.
	say func(string)

	lock     io.Closer // of the data directory
	lease    *wal.Log
	epoch    segment.Epoch // of the lease
	pointers *objbackup.KV

	mu struct {
		sync.Mutex
		lost   error // why this node leads no more
		epochs map[change.PipelineID]segment.Epoch
	}
}

// leasePipeline stands for the node in the lease's log; no pipeline has this id.
const leasePipeline change.PipelineID = math.MaxUint32

// lead waits until this node may lead, and does. It wraps wal.ErrFenced when another node
// was faster.
func (l *leader) lead(ctx context.Context, lakeDir string) (err error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if l.lock, err = wal.DiskFS().Lock(filepath.Join(l.dir, "node.lock")); err != nil {
		return fmt.Errorf("data directory %s (is another server running on it?): %w", l.dir, err)
	}
	err = claimDirectory(l.dir, l.location(), "catalog/*", "catalog.backup", "wal/*/*.seg")
	if err != nil {
		return err
	}
	if l.store, err = l.open(ctx, l.clock, l.ids, l.say); err != nil {
		return err
	}
	if err := l.stand(ctx); err != nil {
		return err
	}
	if err := l.take(ctx); err != nil {
		return err
	}
	if l.pointers, err = objbackup.OpenKV(l.store, l.key("lake"), l.ids, l.lose); err != nil {
		return err
	}
	if err := l.check(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(lakeDir, 0o700); err != nil {
		return fmt.Errorf("make warehouse: %w", err)
	}
	return claimDirectory(lakeDir, l.location())
}

// leaseLog is the log that says who leads.
func (l *leader) leaseLog() wal.Config {
	return wal.Config{
		Dir: filepath.Join(l.dir, "node"), Pipeline: leasePipeline, Prefix: l.key("node"), Owner: l.host, LeaseTTL: l.ttl,
	}
}

// stand waits until no other node leads, or none has shown a sign of life for long enough.
func (l *leader) stand(ctx context.Context) error {
	c, err := l.candidate()
	if err != nil {
		return err
	}
	const looks = 5 // per time to live
	for last := (segment.Fence{}); ; {
		free, holder, err := c.Step(ctx)
		switch {
		case err == nil && (free || l.wasOurs(holder)):
			return nil
		case err != nil:
			l.say("standing by: " + err.Error())
		case holder.Epoch != last.Epoch:
			last = holder
			l.say(fmt.Sprintf("standing by: %s is held by host %q (epoch %d) until it ends or gives no sign of life for %s",
				l.location(), holder.Host, holder.Epoch, l.ttl))
		}
		if err := l.clock.Sleep(ctx, l.ttl/looks); err != nil {
			return err
		}
	}
}

func (l *leader) candidate() (*wal.Candidate, error) {
	return wal.NewCandidate(l.leaseLog(), wal.Deps{Store: l.store, Clock: l.clock})
}

// epochFile has the epoch in which this data directory's last process led: that process is
// dead, since its lock is ours, so nobody needs to wait for its lease to end.
const epochFile = "node.epoch"

func (l *leader) wasOurs(holder segment.Fence) bool {
	text, err := os.ReadFile(filepath.Join(l.dir, epochFile))
	n, parse := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return err == nil && parse == nil && segment.Epoch(n) == holder.Epoch && holder.Host == l.host
}

// noGroups is the publisher of a log without groups.
type noGroups struct{}

func (noGroups) Published(context.Context, change.PipelineID) (segment.Seq, uint32, error) {
	return 0, 0, nil
}

func (noGroups) Publish(context.Context, change.PipelineID, []wal.CommittedGroup) error { return nil }

// take takes the lease.
func (l *leader) take(ctx context.Context) (err error) {
	l.lease, err = wal.Open(ctx, l.leaseLog(), wal.Deps{
		Publisher: noGroups{}, Clock: l.clock, IDs: l.ids, Log: l.log, Store: l.store,
		FenceLake: func(_ context.Context, epoch segment.Epoch) error {
			l.epoch = epoch
			return nil
		},
	})
	if err != nil {
		return fmt.Errorf("take the lead: %w", err)
	}
	return writeMark(filepath.Join(l.dir, epochFile), strconv.FormatUint(uint64(l.epoch), 10))
}

// errNotLeader is what a node that was taken over says.
func (l *leader) errNotLeader(by segment.Fence) error {
	return fmt.Errorf("host %q has taken %s over (epoch %d): %w", by.Host, l.location(), by.Epoch, wal.ErrFenced)
}

// check asks the store whether this node leads.
func (l *leader) check(ctx context.Context) error {
	if err := l.lost(); err != nil {
		return err
	}
	c, err := l.candidate()
	if err != nil {
		return err
	}
	_, holder, err := c.Step(ctx)
	if err != nil {
		return err
	}
	if holder.Epoch != l.epoch {
		l.lose(l.errNotLeader(holder))
	}
	return l.lost()
}

// lose notes that this node leads no more.
func (l *leader) lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.lost == nil {
		l.mu.lost = err
	}
}

// lost is why this node leads no more, nil while it does.
func (l *leader) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.lost
}

// watch waits until this node leads no more.
func (l *leader) watch(ctx context.Context) error {
	const often = 100 * time.Millisecond
	for {
		if err := l.lease.Settled(); errors.Is(err, wal.ErrFenced) {
			l.lose(err)
		}
		if err := l.lost(); err != nil {
			return err
		}
		if err := l.clock.Sleep(ctx, often); err != nil {
			return err
		}
	}
}

// backup keeps the catalog's image, and notices when another node does.
type leaderBackup struct {
	catalog.BackupStore
	l *leader
}

// Write implements catalog.BackupStore.
func (b leaderBackup) Write(image []byte) error {
	err := b.BackupStore.Write(image)
	if errors.Is(err, wal.ErrFenced) {
		b.l.lose(err)
	}
	return err
}

// backupWait is how long a backup of the catalog is tried again: commits wait for it.
const backupWait = 5 * time.Second

func (l *leader) backup() catalog.BackupStore {
	return leaderBackup{objbackup.New(l.store, l.key("catalog"), l.ids).Within(l.clock, backupWait), l}
}

// openLog opens a pipeline's log; fence keeps others out of its lake tables.
func (l *leader) openLog(ctx context.Context, cfg wal.Config, deps wal.Deps,
	fence func(context.Context, change.PipelineID, segment.Epoch) error,
) (ingest.Log, error) {
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	cfg.Prefix, cfg.Owner, cfg.Linger, cfg.LeaseTTL = l.logPrefix(cfg.Pipeline), l.host, l.linger, l.ttl
	deps.Store = l.store
	deps.FenceLake = func(ctx context.Context, epoch segment.Epoch) error {
		if err := l.check(ctx); err != nil {
			return err
		}
		l.setEpoch(cfg.Pipeline, epoch)
		return fence(ctx, cfg.Pipeline, epoch)
	}
	return wal.Open(ctx, cfg, deps)
}

func (l *leader) logPrefix(p change.PipelineID) string {
	return l.key(fmt.Sprintf("%08x", uint32(p)))
}

func (l *leader) setEpoch(p change.PipelineID, epoch segment.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.epochs == nil {
		l.mu.epochs = map[change.PipelineID]segment.Epoch{}
	}
	l.mu.epochs[p] = epoch
}

// epochOf is the epoch of a pipeline's log as this node has opened it, 0 if it has not.
func (l *leader) epochOf(p change.PipelineID) segment.Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.epochs[p]
}

// removeLog deletes the log of a dropped pipeline, which nobody has open.
func (l *leader) removeLog(ctx context.Context, p change.PipelineID, mirror string) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	prefix := l.logPrefix(p) + "/"
	for after := ""; ; {
		page, err := l.store.List(ctx, prefix, after, objstore.DeleteKeysMax)
		if err != nil {
			return fmt.Errorf("list log: %w", err)
		}
		var keys []string
		for _, o := range page.Objects {
			keys = append(keys, o.Key)
		}
		if len(keys) > 0 {
			if err := l.store.Delete(ctx, keys); err != nil {
				return fmt.Errorf("remove log: %w", err)
			}
			after = keys[len(keys)-1]
		}
		if !page.More {
			break
		}
	}
	if err := os.RemoveAll(mirror); err != nil {
		return fmt.Errorf("remove log: %w", err)
	}
	if err := wal.DiskFS().SyncDir(filepath.Dir(mirror)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove log: %w", err)
	}
	return nil
}

// close gives the lead up, so that others need not wait. Everything that writes has ended.
func (l *leader) close() error {
	var errs []error
	if l.pointers != nil {
		errs = append(errs, l.pointers.Close())
	}
	if l.lease != nil {
		errs = append(errs, l.lease.Close())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	return errors.Join(errs...)
}
