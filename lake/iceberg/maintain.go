package iceberg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/env"
)

// Maintain implements lake.Table. A rewrite makes a snapshot of its own. Expiry takes
// snapshots out of the metadata; the files that then are in no snapshot are buried and
// removed after the grace period.
func (t *tableHandle) Maintain(ctx context.Context, p lake.Retention) error {
	if err := t.reload(ctx); err != nil {
		return fmt.Errorf("maintain lake table %s: %w", t.ident, err)
	}
	if err := (notFenced{p.Epoch}).Validate(t.meta); err != nil {
		return fmt.Errorf("maintain lake table %s: %w", t.ident, err)
	}
	if err := t.rewrite(ctx, p.Epoch); err != nil {
		return fmt.Errorf("rewrite files of lake table %s: %w", t.ident, err)
	}
	if err := t.expire(ctx, p); err != nil {
		return fmt.Errorf("expire snapshots of lake table %s: %w", t.ident, err)
	}
	if err := t.buryOrphans(ctx); err != nil {
		return fmt.Errorf("find orphans of lake table %s: %w", t.ident, err)
	}
	t.w.graves.removeOlder(t.w.clock.Now().Add(-p.Grace), t.meta.Location()+"/")
	return nil
}

// expireSlack is how many snapshots more than kept ones make an expiry worth a
// metadata file of its own.
const expireSlack = 10

func (t *tableHandle) expire(ctx context.Context, p lake.Retention) error {
	all := t.meta.Snapshots()
	keep := max(p.Snapshots, 2)
	if len(all) < keep+expireSlack {
		return nil
	}
	var gone []int64
	held := t.w.pins.of(t.meta.Location())
	for _, s := range all[:len(all)-keep] {
		if s.SnapshotID != t.head.ID && !slices.Contains(p.Protect, s.SnapshotID) &&
			!slices.Contains(held, s.SnapshotID) {
			gone = append(gone, s.SnapshotID)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	reqs := []table.Requirement{
		table.AssertTableUUID(t.meta.TableUUID()), table.AssertRefSnapshotID(table.MainBranch, &t.head.ID),
		notFenced{p.Epoch},
	}
	_, _, err := t.w.catalog.CommitTable(ctx, identifier(t.ident), reqs,
		[]table.Update{table.NewRemoveSnapshotsUpdate(gone, false)})
	if err != nil {
		return err
	}
	for _, id := range gone {
		t.w.snapshots.drop(t.meta.Location(), id)
	}
	t.w.log.Debug("snapshots expired", env.KeyTable, t.ident.String(), env.KeyCount, len(gone))
	return t.reload(ctx)
}

// buryOrphans buries every file in the table's directory that no snapshot, and no
// commit in the making, names.
func (t *tableHandle) buryOrphans(ctx context.Context) error {
	named, err := t.namedFiles(ctx)
	if err != nil {
		return err
	}
	now := t.w.clock.Now()
	for _, sub := range []string{"data", "metadata"} {
		dir := filepath.Join(t.meta.Location(), sub)
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if _, ok := named[path]; !ok && !e.IsDir() {
				t.w.graves.bury(now, path)
			}
		}
	}
	return nil
}

// namedFiles is every file that the retained state can reach.
func (t *tableHandle) namedFiles(ctx context.Context) (map[string]struct{}, error) {
	named := map[string]struct{}{t.location: {}}
	add := func(path string) { named[plainPath(path)] = struct{}{} }
	for path := range t.pending {
		add(path)
	}
	for e := range t.meta.PreviousFiles() {
		add(e.MetadataFile)
	}
	seen := map[string]bool{}
	for _, s := range t.meta.Snapshots() {
		add(s.ManifestList)
		list, err := s.Manifests(t.w.io)
		if err != nil {
			return nil, fmt.Errorf("read manifest list: %w", err)
		}
		for _, m := range list {
			add(m.FilePath())
			if seen[m.FilePath()] {
				continue
			}
			seen[m.FilePath()] = true
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			for e, err := range m.Entries(t.w.io, true) {
				if err != nil {
					return nil, fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
				}
				add(e.DataFile().FilePath())
			}
		}
	}
	return named, nil
}

// Sweep removes, after the grace period, the directories of tables that were dropped,
// by an earlier process too, unless a snapshot in them is held.
func (w *Warehouse) Sweep(_ context.Context, grace time.Duration) error {
	w.creating.Lock()
	defer w.creating.Unlock()
	live := map[string]bool{}
	err := kv.IteratePrefix(w.catalog.store, []byte("t"), func(_, v []byte) error {
		live[tableLocation(string(v))] = true
		return nil
	})
	if err != nil {
		return fmt.Errorf("sweep warehouse: %w", err)
	}
	dirs, err := filepath.Glob(filepath.Join(globEscape(w.dir), "*", "*"))
	if err != nil {
		return fmt.Errorf("sweep warehouse: %w", err)
	}
	now := w.clock.Now()
	for _, d := range dirs {
		switch held := len(w.pins.of(d)) > 0; {
		case held && !live[d]:
			w.graves.exhume(d)
		case !live[d]:
			w.graves.bury(now, d)
		}
	}
	w.graves.removeOlder(now.Add(-grace), w.dir+"/")
	return nil
}

// globEscape quotes what a pattern would read as more than itself.
func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// graveyard holds paths that nothing names any more, since when. It is of this
// process: an earlier one's are found again by Maintain and Sweep. Safe for concurrent
// use.
type graveyard struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// bury notes a path; one already there keeps its time.
func (g *graveyard) bury(now time.Time, path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since == nil {
		g.since = map[string]time.Time{}
	}
	if _, ok := g.since[path]; !ok {
		g.since[path] = now
	}
}

// exhume takes a path out: it is in use again, or still.
func (g *graveyard) exhume(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.since, path)
}

// removeOlder removes the paths under prefix that were buried at or before limit.
func (g *graveyard) removeOlder(limit time.Time, prefix string) {
	g.mu.Lock()
	var due []string
	for path, at := range g.since {
		if strings.HasPrefix(path, prefix) && !at.After(limit) {
			due = append(due, path)
		}
	}
	g.mu.Unlock()
	slices.Sort(due)
	for _, path := range due {
		if os.RemoveAll(path) != nil {
			continue // tried again next time
		}
		g.mu.Lock()
		delete(g.since, path)
		g.mu.Unlock()
	}
}
