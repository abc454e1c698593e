package catalog

import (
	"context"
	"crypto/cipher"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Deps are the catalog's collaborators. Clock, IDs and Key are required.
type Deps struct {
	Clock env.Clock
	IDs   env.IDs
	Log   *slog.Logger
	// Key is the 32-byte key that seals secrets.
	Key []byte
	// ApplyState applies a group's state (change.Group.State) in the transaction that
	// publishes it. Without it, groups with state are refused. It may put tables and
	// pipelines; it may not reset, drop or compact.
	ApplyState func(txn *Txn, pipeline change.PipelineID, state []byte) error
	// Failpoints are hit before and after each Update, with no lock held; nil: none. An
	// error of theirs is for a process that ends there.
	Failpoints env.Failpoints
	// Backup keeps what the logs and the lake do not tell; nil: nothing does, and a lost
	// store is lost.
	Backup BackupStore
	// Orphans says what is left of an earlier catalog, "" if nothing: asked when the
	// store is new and there is no backup. nil: nothing is.
	Orphans func() (string, error)
	// Getenv and ReadFile give access to secrets kept outside; nil: none.
	Getenv   func(name string) string
	ReadFile func(path string) ([]byte, error)
}

// Catalog is the store of facts. Safe for concurrent use.
type Catalog struct {
	store kv.Store
	deps  Deps
	aead  cipher.AEAD
	cache *liveCache
	// backups has the images written.
	backups backups

	// mu serialises commits. The one mutex of ours that is held across I/O: it spans
	// the key-value batch.
	mu struct {
		sync.Mutex
		err error // why nothing can be committed any more
		hot map[change.PipelineID]*hotRows
		// rows is the transactions'.
		rows rowEncoder
		// drafts counts the drafts made.
		drafts uint64
		// images is the number of the newest image made.
		images uint64
		// replaying are the pipelines under Replay.
		replaying map[change.PipelineID]bool
	}
	// view is what snapshots see. Held for moments, never across I/O. Locked after mu.
	view struct {
		sync.Mutex
		facts *facts
		// held is the state before the Update that is being synced, nil if there is none.
		held    *heldSnapshot
		changed chan struct{} // nil until somebody waits
	}
}

var _ wal.Publisher = (*Catalog)(nil)

// Open opens the catalog in store, making it if the store has none: then with the role
// postgres (superuser, may log in, no password) and the schema public, or, when there is
// a backup, as that has it; see Snapshot.Rebuilding. It wraps ErrFormat, ErrKey,
// ErrCorrupt or ErrNoBackup. The store stays the caller's, to close after Close.
func Open(ctx context.Context, store kv.Store, deps Deps) (*Catalog, error) {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Failpoints == nil {
		deps.Failpoints = env.NoFailpoints
	}
	aead, err := newAEAD(deps.Key)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	c := &Catalog{store: store, deps: deps, aead: aead, cache: newLiveCache()}
	c.mu.hot = map[change.PipelineID]*hotRows{}
	created, err := checkFormat(store)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	if created {
		if created, err = c.begin(); err != nil {
			return nil, fmt.Errorf("open catalog: %w", err)
		}
	}
	if c.view.facts, err = loadFacts(store); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	if created {
		if err := c.Update(ctx, c.bootstrap); err != nil {
			return nil, fmt.Errorf("make catalog: %w", err)
		}
		return c, nil
	}
	if err := c.verifyKey(); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	if err := raiseFormat(store); err != nil { // once everything else is known to be readable
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	if err := c.Backup(ctx); err != nil {
		// A full disk must not keep the server from making space; the next one counts.
		c.deps.Log.Warn("catalog not backed up", env.KeyError, err)
	}
	return c, nil
}

// begin fills a new store from the backup. created says that there is none and that the
// catalog is the first.
func (c *Catalog) begin() (created bool, err error) {
	restored, err := c.restore()
	if err != nil || restored {
		return false, err
	}
	if c.deps.Orphans == nil {
		return true, nil
	}
	left, err := c.deps.Orphans()
	if err != nil {
		return false, fmt.Errorf("look for data of an earlier catalog: %w", err)
	}
	if left != "" {
		return false, fmt.Errorf("%w: %s", ErrNoBackup, left)
	}
	return true, nil
}

// bootstrap writes what a new catalog has.
func (c *Catalog) bootstrap(txn *Txn) error {
	if err := writeFormat(txn.batch); err != nil {
		return err
	}
	if err := txn.batch.Set([]byte{prefixKeyCheck}, c.Seal([]byte(keyCheck))); err != nil {
		return err
	}
	role := &Role{OID: bootstrapRoleOID, Name: "postgres", Superuser: true, CanLogin: true}
	if err := txn.CreateRole(role); err != nil {
		return err
	}
	return txn.putSchema(&Schema{Name: publicSchema, OID: publicSchemaOID})
}

// Close waits for a commit that is under way and refuses later ones. Open snapshots stay
// readable until the store is closed.
func (c *Catalog) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err == nil {
		c.mu.err = ErrClosed
	}
	return nil
}

// Changed returns a channel that is closed after the next commit becomes visible. To miss
// nothing, call it before taking the snapshot to look at.
func (c *Catalog) Changed() <-chan struct{} {
	c.view.Lock()
	defer c.view.Unlock()
	if c.view.changed == nil {
		c.view.changed = make(chan struct{})
	}
	return c.view.changed
}

// notifyLocked wakes those who wait; view is locked.
func (c *Catalog) notifyLocked() {
	if c.view.changed != nil {
		close(c.view.changed)
		c.view.changed = nil
	}
}

// Update runs fn in a transaction and commits what it did, atomically and durably. An
// error from fn undoes everything and is returned as it is. fn runs under the commit
// mutex: it must not block nor call Update or Publish. When Update returns nil everything
// published before is durable too (unless fn wrote nothing).
func (c *Catalog) Update(ctx context.Context, fn func(*Txn) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := c.deps.Failpoints.Hit(env.BeforeUpdate); err != nil {
		return err
	}
	if err := c.update(fn); err != nil {
		return err
	}
	return c.deps.Failpoints.Hit(env.AfterUpdate)
}

func (c *Catalog) update(fn func(*Txn) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return c.mu.err
	}
	txn := c.newTxnLocked()
	defer func() { _ = txn.batch.Close() }() // nothing is lost: committed or undone
	if err := fn(txn); err != nil {
		return err
	}
	if err := txn.finish(); err != nil {
		return err
	}
	if !txn.dirty {
		return nil
	}
	if err := c.backUpLocked(txn); err != nil {
		return err
	}
	c.holdView()
	err := txn.batch.Commit(true)
	c.releaseView(txn, err == nil)
	if err != nil {
		c.mu.err = fmt.Errorf("%w: %w", ErrBroken, err)
		return fmt.Errorf("%w: %w", ErrInDoubt, err)
	}
	for id := range txn.cooled {
		delete(c.mu.hot, id)
	}
	if txn.dropped {
		c.cache.prune(txn.facts.tables)
	}
	return nil
}

// Sync makes everything durable that was published before.
func (c *Catalog) Sync(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return c.mu.err
	}
	b := c.store.NewBatch()
	defer func() { _ = b.Close() }() // nothing is lost: committed or broken
	err := b.Set([]byte{prefixSync}, []byte{rowVersion})
	if err == nil {
		err = b.Commit(true)
	}
	if err != nil {
		c.mu.err = fmt.Errorf("%w: %w", ErrBroken, err)
		return fmt.Errorf("sync catalog: %w", err)
	}
	return nil
}

// holdView keeps snapshots at the present state.
func (c *Catalog) holdView() {
	c.view.Lock()
	defer c.view.Unlock()
	c.view.held = newHeldSnapshot(c.store.Snapshot())
}

// releaseView lets snapshots see what txn committed.
func (c *Catalog) releaseView(txn *Txn, committed bool) {
	c.view.Lock()
	held := c.view.held
	c.view.held = nil
	if committed {
		c.view.facts = txn.seal()
		c.notifyLocked()
	}
	c.view.Unlock()
	held.release(c.deps.Log)
}

// Snapshot captures all facts at one moment. It takes microseconds and never waits for a
// disk. Close it.
func (c *Catalog) Snapshot() *Snapshot {
	c.view.Lock()
	defer c.view.Unlock()
	held := c.view.held
	if held != nil {
		held.refs.Add(1)
	} else {
		held = newHeldSnapshot(c.store.Snapshot())
	}
	return &Snapshot{
		reader: reader{facts: c.view.facts, kv: held.kv},
		held:   held, cache: c.cache, log: c.deps.Log,
	}
}

// Rights are the roles, and what they may do, now.
func (c *Catalog) Rights() *right.Book {
	c.view.Lock()
	f := c.view.facts
	c.view.Unlock()
	return f.rightsBook()
}

// heldSnapshot is a key-value snapshot with a reference count.
type heldSnapshot struct {
	kv   kv.Snapshot
	refs atomic.Int64
}

func newHeldSnapshot(s kv.Snapshot) *heldSnapshot {
	h := &heldSnapshot{kv: s}
	h.refs.Store(1)
	return h
}

func (h *heldSnapshot) release(log *slog.Logger) {
	if h.refs.Add(-1) > 0 {
		return
	}
	if err := h.kv.Close(); err != nil {
		log.Warn("catalog snapshot not closed", env.KeyError, err)
	}
}

// Snapshot is all facts at one moment: its reads agree with each other. Values that it
// returns are shared and must not be changed. Safe for concurrent use until closed.
type Snapshot struct {
	reader
	held   *heldSnapshot
	cache  *liveCache
	log    *slog.Logger
	closed atomic.Bool
}

// Close releases the snapshot. Further calls do nothing.
func (s *Snapshot) Close() {
	if !s.closed.Swap(true) {
		s.held.release(s.log)
	}
}
