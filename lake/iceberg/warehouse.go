package iceberg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	icebergo "github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Deps are a warehouse's collaborators.
type Deps struct {
	Clock env.Clock
	IDs   env.IDs
	Log   *slog.Logger
}

// Warehouse is the directory with all lake tables, and their catalog. One process
// opens it at a time. Safe for concurrent use.
type Warehouse struct {
	cfg       Config
	dir       string
	catalog   *Catalog
	io        *fileIO
	clock     env.Clock
	ids       env.IDs
	log       *slog.Logger
	snapshots snapshotCache
	graves    graveyard
	pins      pins
	// creating is held while a table's directory is not yet named by a pointer, and by
	// the sweep that removes directories without one.
	creating sync.Mutex
	// naming is held while it is decided which table has a name: what is read of the
	// pointers holds until they are changed. Taken before creating.
	naming sync.Mutex
}

var _ lake.Warehouse = (*Warehouse)(nil)

// Open opens the warehouse in dir, made when it is not there, with its pointers in
// store under "iceberg/".
func Open(store kv.Store, dir string, cfg Config, deps Deps) (*Warehouse, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open warehouse %s: %w", dir, err)
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open warehouse %s: %w", dir, err)
	}
	w := &Warehouse{
		cfg: cfg.withDefaults(), dir: abs, io: newFileIO(),
		clock: deps.Clock, ids: deps.IDs, log: deps.Log,
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if err := w.io.mkdirAll(abs); err != nil {
		return nil, fmt.Errorf("open warehouse %s: %w", dir, err)
	}
	if err := w.io.syncDirs(); err != nil {
		return nil, fmt.Errorf("open warehouse %s: %w", dir, err)
	}
	w.catalog = newCatalog(store, w.io, deps.IDs, w.locate)
	return w, nil
}

// Catalog is the Iceberg catalog of the warehouse, for other engines' access.
func (w *Warehouse) Catalog() *Catalog { return w.catalog }

func identifier(i lake.Ident) table.Identifier { return table.Identifier{i.Namespace, i.Name} }

// locate gives a new table a directory that no other ever had.
func (w *Warehouse) locate(ident table.Identifier) (string, error) {
	if len(ident) != 2 {
		return "", fmt.Errorf("%v: want namespace and name", ident)
	}
	id := w.ids.UUID()
	return filepath.Join(w.dir, pathWord(ident[0]), fmt.Sprintf("%s-%x", pathWord(ident[1]), id[:6])), nil
}

// pathWord makes a name safe in a path and a URI.
func pathWord(s string) string {
	word := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
	const longest = 64
	return word[:min(len(word), longest)]
}

// Table implements lake.Warehouse.
func (w *Warehouse) Table(ctx context.Context, spec lake.Spec) (lake.Table, error) {
	t, err := w.table(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("open lake table %s: %w", spec.Ident, err)
	}
	return t, nil
}

func (w *Warehouse) table(ctx context.Context, spec lake.Spec) (*tableHandle, error) {
	meta, location, err := w.named(ctx, spec)
	if err != nil {
		return nil, err
	}
	return w.open(ctx, spec.Ident, meta, location)
}

// named finds the table, or gives it its name, or makes it.
func (w *Warehouse) named(ctx context.Context, spec lake.Spec) (table.Metadata, string, error) {
	ident := identifier(spec.Ident)
	if err := icecat.ValidateTableIdentifier(ident); err != nil {
		return nil, "", err
	}
	w.naming.Lock()
	defer w.naming.Unlock()
	meta, location, err := w.catalog.current(ident)
	switch {
	case errors.Is(err, icecat.ErrNoSuchTable):
		return w.renamedOrNew(ctx, spec)
	case err != nil:
		return nil, "", err
	case meta.Properties()[lake.KeyTableID] != tableID(spec.Table):
		if err := w.setAside(ident, meta.Properties()[lake.KeyTableID]); err != nil {
			return nil, "", err
		}
		return w.renamedOrNew(ctx, spec)
	}
	return meta, location, w.catalog.own(spec.Table, ident)
}

// renamedOrNew gives the name, which is free, to the table that had another one before,
// or makes the table.
func (w *Warehouse) renamedOrNew(ctx context.Context, spec lake.Spec) (table.Metadata, string, error) {
	before, err := w.catalog.owned(spec.Table)
	if err != nil {
		return nil, "", err
	}
	if before == nil {
		return w.create(ctx, spec)
	}
	meta, location, err := w.catalog.current(before)
	if errors.Is(err, icecat.ErrNoSuchTable) || err == nil && meta.Properties()[lake.KeyTableID] != tableID(spec.Table) {
		return w.create(ctx, spec)
	}
	if err != nil {
		return nil, "", err
	}
	ident := identifier(spec.Ident)
	if err := w.namespace(ctx, ident); err != nil {
		return nil, "", err
	}
	if err := w.catalog.rename(before, ident, spec.Table); err != nil {
		return nil, "", err
	}
	w.log.Info("lake table renamed", env.KeyTable, spec.Ident.String(), "before", strings.Join(before, "."))
	return meta, location, nil
}

// setAside gives another name to a lake table that is in the way of a new one. Its data
// stays: it was kept when its pipeline was dropped, or its own table was renamed and has
// not said so here yet.
func (w *Warehouse) setAside(ident table.Identifier, owner string) error {
	id := w.ids.UUID()
	name := fmt.Sprintf("%s_kept_%x", icecat.TableNameFromIdent(ident), id[:6])
	aside := append(slices.Clone(icecat.NamespaceFromIdent(ident)), name)
	follows, err := w.ownerOf(ident, owner)
	if err != nil {
		return err
	}
	if err := w.catalog.rename(ident, aside, follows); err != nil {
		return err
	}
	w.log.Warn("lake table set aside", env.KeyTable, strings.Join(ident, "."), "kept_as", name)
	return nil
}

// ownerOf is the catalog table that a lake table's property names, if that table's own
// is this one; else 0: it is another engine's, or its owner has another by now.
func (w *Warehouse) ownerOf(ident table.Identifier, property string) (change.TableID, error) {
	n, err := strconv.ParseUint(property, 10, 32)
	if err != nil || n == 0 {
		return 0, nil
	}
	have, err := w.catalog.owned(change.TableID(n))
	if err != nil || !slices.Equal(have, ident) {
		return 0, err
	}
	return change.TableID(n), nil
}

// namespace makes the table's namespace if there is none.
func (w *Warehouse) namespace(ctx context.Context, ident table.Identifier) error {
	err := w.catalog.CreateNamespace(ctx, icecat.NamespaceFromIdent(ident), nil)
	if errors.Is(err, icecat.ErrNamespaceAlreadyExists) {
		return nil
	}
	return err
}

func (w *Warehouse) create(ctx context.Context, spec lake.Spec) (table.Metadata, string, error) {
	sc, err := icebergSchema(spec.Schema)
	if err != nil {
		return nil, "", err
	}
	w.creating.Lock()
	defer w.creating.Unlock()
	ident := identifier(spec.Ident)
	if err := w.namespace(ctx, ident); err != nil {
		return nil, "", err
	}
	props := icebergo.Properties{
		lake.KeyTableID: tableID(spec.Table),
		table.MetadataDeleteAfterCommitEnabledKey: "true",
		table.MetadataPreviousVersionsMaxKey:      strconv.Itoa(w.cfg.MetadataVersions),
		table.ParquetCompressionKey:               "zstd",
	}
	if err := w.catalog.own(spec.Table, ident); err != nil {
		return nil, "", err
	}
	t, err := w.catalog.CreateTable(ctx, ident, sc, icecat.WithProperties(props))
	if err != nil {
		return nil, "", err
	}
	w.log.Info("lake table created", env.KeyTable, spec.Ident.String(), env.KeyPath, t.Metadata().Location())
	return t.Metadata(), t.MetadataLocation(), nil
}

// Drop implements lake.Warehouse.
func (w *Warehouse) Drop(ctx context.Context, id change.TableID) error {
	w.naming.Lock()
	defer w.naming.Unlock()
	ident, err := w.catalog.owned(id)
	if err == nil && ident != nil {
		err = w.drop(ctx, ident, id)
	}
	if err == nil && ident != nil {
		err = w.catalog.remove(ownerKey(id))
	}
	if err != nil {
		return fmt.Errorf("drop lake table of table %d: %w", id, err)
	}
	return nil
}

// drop removes the pointer and buries the directory.
func (w *Warehouse) drop(ctx context.Context, ident table.Identifier, owner change.TableID) error {
	meta, _, err := w.catalog.current(ident)
	if errors.Is(err, icecat.ErrNoSuchTable) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner != 0 && meta.Properties()[lake.KeyTableID] != tableID(owner) {
		return nil // the name has passed on to another table
	}
	if err := w.catalog.DropTable(ctx, ident); err != nil && !errors.Is(err, icecat.ErrNoSuchTable) {
		return err
	}
	w.graves.bury(w.clock.Now(), meta.Location())
	w.log.Info("lake table dropped", env.KeyTable, strings.Join(ident, "."))
	return nil
}

func tableID(id change.TableID) string { return strconv.FormatUint(uint64(id), 10) }
