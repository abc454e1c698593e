package iceberg

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"

	icebergo "github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// keyPrefix is where the lake catalog lives in a store it shares.
const keyPrefix = "iceberg/"

// Catalog is an Iceberg catalog over a key-value store: for each table a pointer to
// its metadata file, swapped under one lock with a synced write. Safe for concurrent
// use.
//
// Keys, under "iceberg/": 't' namespace 0 name → metadata location;
// 'n' namespace → properties as JSON; 'o' table id → namespace 0 name, the lake table
// last made for a catalog table. Namespace levels are joined by 0x1f.
type Catalog struct {
	store kv.Store
	io    *fileIO
	ids   env.IDs
	// locate gives a new table its directory.
	locate func(table.Identifier) (string, error)
	mu     sync.Mutex // one swap at a time
	cache  metadataCache
}

var _ icecat.Catalog = (*Catalog)(nil)

const levelSeparator = "\x1f"

func newCatalog(store kv.Store, io *fileIO, ids env.IDs, locate func(table.Identifier) (string, error)) *Catalog {
	return &Catalog{store: kv.WithPrefix(store, []byte(keyPrefix)), io: io, ids: ids, locate: locate}
}

func tableKey(ident table.Identifier) []byte {
	return []byte("t" + strings.Join(icecat.NamespaceFromIdent(ident), levelSeparator) + "\x00" +
		icecat.TableNameFromIdent(ident))
}

func namespaceKey(ns table.Identifier) []byte { return []byte("n" + strings.Join(ns, levelSeparator)) }

// CatalogType implements catalog.Catalog.
func (*Catalog) CatalogType() icecat.Type { return "skippr" }

// fs is the file system as iceberg-go takes it.
func (c *Catalog) fs(context.Context) (iceio.IO, error) { return c.io, nil }

// CreateTable implements catalog.Catalog. The schema's field ids are kept.
func (c *Catalog) CreateTable(
	ctx context.Context, ident table.Identifier, sc *icebergo.Schema, opts ...icecat.CreateTableOpt,
) (*table.Table, error) {
	cfg := icecat.NewCreateTableCfg()
	for _, o := range opts {
		o(&cfg)
	}
	if err := icecat.ValidateTableIdentifier(ident); err != nil {
		return nil, err
	}
	location := cfg.Location
	if location == "" {
		var err error
		if location, err = c.locate(ident); err != nil {
			return nil, fmt.Errorf("locate table %v: %w", ident, err)
		}
	}
	meta, err := c.newMetadata(sc, cfg, location)
	if err != nil {
		return nil, fmt.Errorf("create table %v: %w", ident, err)
	}
	file, err := c.writeMetadata(meta, 0)
	if err != nil {
		return nil, fmt.Errorf("create table %v: %w", ident, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.store.Get(tableKey(ident)); err == nil {
		return nil, fmt.Errorf("%w: %v", icecat.ErrTableAlreadyExists, ident)
	} else if !errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("create table %v: %w", ident, err)
	}
	if err := c.set(tableKey(ident), []byte(file)); err != nil {
		return nil, fmt.Errorf("create table %v: %w", ident, err)
	}
	c.cache.put(file, meta)
	return table.New(ident, meta, file, c.fs, c), nil
}

// LoadTable implements catalog.Catalog.
func (c *Catalog) LoadTable(ctx context.Context, ident table.Identifier) (*table.Table, error) {
	meta, file, err := c.current(ident)
	if err != nil {
		return nil, err
	}
	return table.New(ident, meta, file, c.fs, c), nil
}

// current reads the pointer and what it points at.
func (c *Catalog) current(ident table.Identifier) (table.Metadata, string, error) {
	location, err := c.store.Get(tableKey(ident))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, "", fmt.Errorf("%w: %v", icecat.ErrNoSuchTable, ident)
	}
	if err != nil {
		return nil, "", fmt.Errorf("look up table %v: %w", ident, err)
	}
	meta, err := c.metadata(string(location))
	if err != nil {
		return nil, "", fmt.Errorf("table %v: %w", ident, err)
	}
	return meta, string(location), nil
}

// metadata reads a metadata file, which never changes, through the cache.
func (c *Catalog) metadata(location string) (table.Metadata, error) {
	if m := c.cache.get(location); m != nil {
		return m, nil
	}
	raw, err := c.io.ReadFile(location)
	if err != nil {
		return nil, fmt.Errorf("read metadata: %w", err)
	}
	meta, err := table.ParseMetadataBytes(raw)
	if err != nil {
		return nil, fmt.Errorf("parse metadata %s: %w", location, err)
	}
	c.cache.put(location, meta)
	return meta, nil
}

// CommitTable implements catalog.Catalog: the commit point of the lake is the synced
// write of the pointer. A requirement that does not hold wraps table.ErrCommitFailed.
func (c *Catalog) CommitTable(
	ctx context.Context, ident table.Identifier, reqs []table.Requirement, updates []table.Update,
) (table.Metadata, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	base, location, err := c.current(ident)
	if err != nil {
		return nil, "", err
	}
	for _, r := range reqs {
		if err := r.Validate(base); err != nil {
			return nil, "", fmt.Errorf("commit table %v: %w: %w", ident, table.ErrCommitFailed, err)
		}
	}
	meta, err := table.UpdateTableMetadata(base, updates, location)
	if err != nil {
		return nil, "", fmt.Errorf("commit table %v: %w", ident, err)
	}
	file, err := c.writeMetadata(meta, metadataVersion(location)+1)
	if err != nil {
		return nil, "", fmt.Errorf("commit table %v: %w", ident, err)
	}
	if err := c.set(tableKey(ident), []byte(file)); err != nil {
		return nil, "", fmt.Errorf("commit table %v: %w", ident, err)
	}
	c.cache.put(file, meta)
	c.trimMetadata(base, meta)
	return meta, file, nil
}

// trimMetadata removes metadata files that fell out of the metadata log. A crash
// leaves some behind for Maintain.
func (c *Catalog) trimMetadata(base, meta table.Metadata) {
	if !meta.Properties().GetBool(table.MetadataDeleteAfterCommitEnabledKey, false) {
		return
	}
	kept := map[string]bool{}
	for e := range meta.PreviousFiles() {
		kept[e.MetadataFile] = true
	}
	for e := range base.PreviousFiles() {
		if !kept[e.MetadataFile] {
			_ = c.io.Remove(e.MetadataFile) // Maintain finds it again
		}
	}
}

// set stores one value, synced, after the files it may name.
func (c *Catalog) set(key, value []byte) error {
	if err := c.io.syncDirs(); err != nil {
		return err
	}
	b := c.store.NewBatch()
	defer b.Close()
	if err := b.Set(key, value); err != nil {
		return err
	}
	return b.Commit(true)
}

func (c *Catalog) remove(key []byte) error {
	b := c.store.NewBatch()
	defer b.Close()
	if err := b.Delete(key); err != nil {
		return err
	}
	return b.Commit(true)
}

func ownerKey(id change.TableID) []byte {
	return binary.BigEndian.AppendUint32([]byte("o"), uint32(id))
}

// own notes which lake table is, or is about to be, a catalog table's.
func (c *Catalog) own(id change.TableID, ident table.Identifier) error {
	want := tableKey(ident)[1:]
	if have, err := c.store.Get(ownerKey(id)); err == nil && bytes.Equal(have, want) {
		return nil
	}
	return c.set(ownerKey(id), want)
}

// owned is the lake table last noted for a catalog table, nil if none was. It may have
// gone, or passed on to another table, since.
func (c *Catalog) owned(id change.TableID) (table.Identifier, error) {
	raw, err := c.store.Get(ownerKey(id))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ns, name, _ := strings.Cut(string(raw), "\x00")
	return append(strings.Split(ns, levelSeparator), name), nil
}

// ListTables implements catalog.Catalog.
func (c *Catalog) ListTables(_ context.Context, ns table.Identifier) iter.Seq2[table.Identifier, error] {
	return func(yield func(table.Identifier, error) bool) {
		prefix := []byte("t" + strings.Join(ns, levelSeparator) + "\x00")
		var found []table.Identifier
		err := kv.IteratePrefix(c.store, prefix, func(k, _ []byte) error {
			ident := append(table.Identifier{}, ns...)
			found = append(found, append(ident, string(k[len(prefix):])))
			return nil
		})
		if err != nil {
			yield(nil, fmt.Errorf("list tables of %v: %w", ns, err))
			return
		}
		for _, ident := range found {
			if !yield(ident, nil) {
				return
			}
		}
	}
}

// DropTable implements catalog.Catalog. Files stay; Warehouse.Drop removes them.
func (c *Catalog) DropTable(ctx context.Context, ident table.Identifier) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, _, err := c.current(ident); err != nil {
		return err
	}
	if err := c.remove(tableKey(ident)); err != nil {
		return fmt.Errorf("drop table %v: %w", ident, err)
	}
	return nil
}

// RenameTable implements catalog.Catalog. The directory stays.
func (c *Catalog) RenameTable(ctx context.Context, from, to table.Identifier) (*table.Table, error) {
	if err := icecat.ValidateTableIdentifier(to); err != nil {
		return nil, err
	}
	if err := c.rename(from, to, 0); err != nil {
		return nil, err
	}
	return c.LoadTable(ctx, to)
}

// rename moves the pointer and, unless owner is 0, notes the new name as that table's
// own in the same write.
func (c *Catalog) rename(from, to table.Identifier, owner change.TableID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, location, err := c.current(from)
	if err != nil {
		return err
	}
	if _, err := c.store.Get(tableKey(to)); err == nil {
		return fmt.Errorf("%w: %v", icecat.ErrTableAlreadyExists, to)
	}
	b := c.store.NewBatch()
	defer b.Close()
	err = errors.Join(b.Delete(tableKey(from)), b.Set(tableKey(to), []byte(location)))
	if owner != 0 {
		err = errors.Join(err, b.Set(ownerKey(owner), tableKey(to)[1:]))
	}
	if err != nil {
		return fmt.Errorf("rename table %v: %w", from, err)
	}
	return b.Commit(true)
}

// CheckTableExists implements catalog.Catalog.
func (c *Catalog) CheckTableExists(_ context.Context, ident table.Identifier) (bool, error) {
	_, err := c.store.Get(tableKey(ident))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ListNamespaces implements catalog.Catalog.
func (c *Catalog) ListNamespaces(_ context.Context, parent table.Identifier) ([]table.Identifier, error) {
	var out []table.Identifier
	err := kv.IteratePrefix(c.store, []byte("n"), func(k, _ []byte) error {
		ns := strings.Split(string(k[1:]), levelSeparator)
		if len(ns) != len(parent)+1 || strings.Join(ns[:len(parent)], levelSeparator) != strings.Join(parent,
			levelSeparator) {
			return nil
		}
		out = append(out, ns)
		return nil
	})
	return out, err
}

// CreateNamespace implements catalog.Catalog.
func (c *Catalog) CreateNamespace(ctx context.Context, ns table.Identifier, props icebergo.Properties) error {
	if err := icecat.ValidateNamespaceIdentifier(ns); err != nil {
		return err
	}
	if props == nil {
		props = icebergo.Properties{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.namespace(ns); err == nil {
		return fmt.Errorf("%w: %v", icecat.ErrNamespaceAlreadyExists, ns)
	}
	return c.putNamespace(ns, props)
}

func (c *Catalog) namespace(ns table.Identifier) (icebergo.Properties, error) {
	raw, err := c.store.Get(namespaceKey(ns))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: %v", icecat.ErrNoSuchNamespace, ns)
	}
	if err != nil {
		return nil, fmt.Errorf("look up namespace %v: %w", ns, err)
	}
	props := icebergo.Properties{}
	if err := json.Unmarshal(raw, &props); err != nil {
		return nil, fmt.Errorf("namespace %v: %w", ns, err)
	}
	return props, nil
}

func (c *Catalog) putNamespace(ns table.Identifier, props icebergo.Properties) error {
	raw, err := json.Marshal(props)
	if err != nil {
		return fmt.Errorf("namespace %v: %w", ns, err)
	}
	return c.set(namespaceKey(ns), raw)
}

// DropNamespace implements catalog.Catalog; it must be empty.
func (c *Catalog) DropNamespace(ctx context.Context, ns table.Identifier) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.namespace(ns); err != nil {
		return err
	}
	for ident, err := range c.ListTables(ctx, ns) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: %v has table %v", icecat.ErrNamespaceNotEmpty, ns, ident)
	}
	return c.remove(namespaceKey(ns))
}

// CheckNamespaceExists implements catalog.Catalog.
func (c *Catalog) CheckNamespaceExists(_ context.Context, ns table.Identifier) (bool, error) {
	_, err := c.namespace(ns)
	if errors.Is(err, icecat.ErrNoSuchNamespace) {
		return false, nil
	}
	return err == nil, err
}

// LoadNamespaceProperties implements catalog.Catalog.
func (c *Catalog) LoadNamespaceProperties(_ context.Context, ns table.Identifier) (icebergo.Properties, error) {
	return c.namespace(ns)
}

// UpdateNamespaceProperties implements catalog.Catalog.
func (c *Catalog) UpdateNamespaceProperties(
	_ context.Context, ns table.Identifier, removals []string, updates icebergo.Properties,
) (icecat.PropertiesUpdateSummary, error) {
	var sum icecat.PropertiesUpdateSummary
	c.mu.Lock()
	defer c.mu.Unlock()
	props, err := c.namespace(ns)
	if err != nil {
		return sum, err
	}
	for _, k := range removals {
		if _, both := updates[k]; both {
			return sum, fmt.Errorf("namespace %v: property %s is both removed and updated", ns, k)
		}
		if _, there := props[k]; !there {
			sum.Missing = append(sum.Missing, k)
			continue
		}
		delete(props, k)
		sum.Removed = append(sum.Removed, k)
	}
	for k := range updates {
		sum.Updated = append(sum.Updated, k)
	}
	maps.Copy(props, updates)
	return sum, c.putNamespace(ns, props)
}
