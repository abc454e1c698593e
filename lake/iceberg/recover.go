package iceberg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/env"
)

var _ lake.Recoverer = (*Warehouse)(nil)

// directory is a table's directory as it is read without a pointer.
type directory struct {
	path  string
	files []string // metadata files, the newest version first
	// Of the metadata chosen; zero when none can be.
	location string
	meta     table.Metadata
	head     *lake.Snapshot
	named    bool // a pointer leads into it
}

func (d *directory) owner() string {
	if d.meta == nil {
		return ""
	}
	return d.meta.Properties()[lake.KeyTableID]
}

// Recover implements lake.Recoverer. A directory's state is that of its newest metadata
// file with a version of its own whose files are all there. Such a file may be one that
// was written and never pointed to: then it is the commit that was about to happen, with
// its slices in it. Of two files with one version none is taken, but the one before
// both: what they bring is still in the log, since nothing was reclaimed after the
// metadata that Lost names without naming a later one.
func (w *Warehouse) Recover(ctx context.Context, tables []lake.Lost) (*lake.Recovery, error) {
	w.creating.Lock()
	defer w.creating.Unlock()
	dirs, err := w.directories(ctx, tables)
	if err != nil {
		return nil, fmt.Errorf("recover warehouse: %w", err)
	}
	out := &lake.Recovery{Tables: make([]lake.Recovered, len(tables))}
	claimed := map[string]bool{} // owners whose directories without a pointer may go
	for i, l := range tables {
		if l.Dropped {
			claimed[tableID(l.Table)] = true
			continue
		}
		d, problem := pickDirectory(dirs, l)
		if problem != "" {
			w.log.Error("lake table not recovered", env.KeyTable, l.Ident.String(), env.KeyReason, problem)
			out.Tables[i].Problem = problem
			continue
		}
		claimed[tableID(l.Table)] = true
		if d == nil {
			continue
		}
		t, err := w.claim(ctx, d, l)
		if err != nil {
			return nil, fmt.Errorf("recover lake table %s: %w", l.Ident, err)
		}
		all, err := t.Commits(ctx)
		if err != nil {
			return nil, fmt.Errorf("recover lake table %s: %w", l.Ident, err)
		}
		out.Tables[i] = lake.RecoveredOf(l, t.Head(), all)
	}
	for _, d := range dirs {
		if d.named || claimed[d.owner()] || len(d.files) == 0 {
			continue
		}
		name, err := w.keep(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("recover warehouse: %w", err)
		}
		out.Kept = append(out.Kept, name)
	}
	return out, nil
}

// directories reads all table directories of the warehouse.
func (w *Warehouse) directories(ctx context.Context, tables []lake.Lost) ([]*directory, error) {
	pointers := map[string]string{}
	err := kv.IteratePrefix(w.catalog.store, []byte("t"), func(_, v []byte) error {
		pointers[tableLocation(string(v))] = string(v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	floors := map[string]lake.Lost{}
	for _, l := range tables {
		if l.Metadata != "" {
			floors[tableLocation(l.Metadata)] = l
		}
	}
	paths, err := filepath.Glob(filepath.Join(globEscape(w.dir), "*", "*"))
	if err != nil {
		return nil, err
	}
	var out []*directory
	for _, path := range paths {
		d := &directory{path: path}
		if d.files, err = metadataFiles(path); err != nil {
			return nil, err
		}
		pointer := pointers[path]
		d.named = pointer != ""
		if d.named {
			err = w.readDirectory(ctx, d, pointer)
		} else {
			err = w.chooseMetadata(ctx, d, floors[path].Metadata)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// metadataFiles are the metadata files of a table directory, the newest version first.
func metadataFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "metadata"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), metadataSuffix) {
			out = append(out, filepath.Join(dir, "metadata", e.Name()))
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(metadataVersion(b), metadataVersion(a)), strings.Compare(a, b))
	})
	return out, nil
}

// chooseMetadata gives a directory the state of its newest metadata that is not below
// the floor, a metadata file that was current once.
func (w *Warehouse) chooseMetadata(ctx context.Context, d *directory, floor string) error {
	for at := 0; at < len(d.files); {
		version, end := metadataVersion(d.files[at]), at
		for end < len(d.files) && metadataVersion(d.files[end]) == version {
			end++
		}
		same := d.files[at:end]
		at = end
		switch {
		case floor != "" && version < metadataVersion(floor):
			return nil
		case floor != "" && version == metadataVersion(floor):
			same = []string{floor}
		}
		var whole []*directory
		for _, file := range same {
			c := &directory{}
			err := w.readDirectory(ctx, c, file)
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err != nil {
				w.log.Warn("metadata file passed over", env.KeyPath, file, env.KeyError, err)
				continue
			}
			whole = append(whole, c)
		}
		if len(whole) == 1 {
			d.location, d.meta, d.head = whole[0].location, whole[0].meta, whole[0].head
			return nil
		}
		if len(whole) > 1 {
			w.log.Warn("metadata files of one version passed over", env.KeyPath, d.path, env.KeyCount, len(whole))
		}
	}
	return nil
}

// readDirectory reads a metadata file and makes sure that all it needs is there.
func (w *Warehouse) readDirectory(ctx context.Context, d *directory, file string) error {
	meta, err := w.catalog.metadata(file)
	if err != nil {
		return err
	}
	head := &lake.Snapshot{Metadata: file, Properties: map[string]string{}}
	if current := meta.CurrentSnapshot(); current != nil {
		if head, err = readSnapshot(ctx, w.io, meta, file, current); err != nil {
			return err
		}
	}
	for _, f := range head.Files {
		if _, err := os.Stat(f.Path); err != nil {
			return err
		}
	}
	for _, f := range head.PositionDeletes {
		if _, err := os.Stat(f.Path); err != nil {
			return err
		}
	}
	d.location, d.meta, d.head = file, meta, head
	return nil
}

// pickDirectory finds the directory that has the table's generation; nil when none has.
func pickDirectory(dirs []*directory, l lake.Lost) (found *directory, problem string) {
	var fit []*directory
	for _, d := range dirs {
		if d.owner() == tableID(l.Table) && d.head.OfGeneration(l.Generation) {
			fit = append(fit, d)
		}
	}
	if l.Metadata == "" {
		if len(fit) == 1 {
			return fit[0], ""
		}
		return nil, "" // the log has all that any of them has
	}
	for _, d := range fit {
		if d.path == tableLocation(l.Metadata) {
			return d, ""
		}
	}
	return nil, fmt.Sprintf("the lake has lost snapshot %d, which was in %s", l.Snapshot, l.Metadata)
}

// claim gives a directory the table's name.
func (w *Warehouse) claim(ctx context.Context, d *directory, l lake.Lost) (*tableHandle, error) {
	ident := identifier(l.Ident)
	if err := icecat.ValidateTableIdentifier(ident); err != nil {
		return nil, err
	}
	if !d.named {
		if err := w.namespace(ctx, ident); err != nil {
			return nil, err
		}
		if err := w.catalog.own(l.Table, ident); err != nil {
			return nil, err
		}
		if err := w.catalog.set(tableKey(ident), []byte(d.location)); err != nil {
			return nil, err
		}
		d.named = true
		w.log.Info("lake table recovered", env.KeyTable, l.Ident.String(), env.KeyPath, d.location)
	}
	return w.open(ctx, l.Ident, d.meta, d.location)
}

// keep names a directory that nobody claims after its path, so that it is not swept.
func (w *Warehouse) keep(ctx context.Context, d *directory) (string, error) {
	ident := table.Identifier{filepath.Base(filepath.Dir(d.path)), filepath.Base(d.path)}
	if err := w.namespace(ctx, ident); err != nil {
		return "", err
	}
	location := d.location
	if location == "" {
		location = d.files[0]
	}
	d.named = true
	name := strings.Join(ident, ".")
	w.log.Warn("lake table of no table kept", env.KeyTable, name, env.KeyPath, location)
	return name, w.catalog.set(tableKey(ident), []byte(location))
}

// Verify says whether the directory has what the pointers name: with pointers that are
// kept elsewhere it may be the wrong one, or not be mounted.
func (w *Warehouse) Verify() error {
	missing, first := 0, ""
	err := kv.IteratePrefix(w.catalog.store, []byte("t"), func(_, v []byte) error {
		location := string(v)
		_, err := os.Stat(location)
		if err == nil && strings.HasPrefix(location, w.dir+string(filepath.Separator)) {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if missing++; first == "" {
			first = location
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify warehouse %s: %w", w.dir, err)
	}
	if missing > 0 {
		return fmt.Errorf("warehouse %s lacks %d tables, such as %s: %w", w.dir, missing, first, lake.ErrNoSnapshot)
	}
	return nil
}
