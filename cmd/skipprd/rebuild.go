package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/skipprd/skipprd/lake/compact"
)

// orphans says what data of an earlier catalog a directory has, "" if none.
func orphans(dir string) (string, error) {
	for what, pattern := range map[string]string{"a log": "wal/*/*.seg", "lake tables": "lake/*/*/metadata"} {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return "", fmt.Errorf("look into %s: %w", dir, err)
		}
		if len(found) > 0 {
			return fmt.Sprintf("%s has %s, but neither a catalog nor %s. Bring one of them back, or begin anew in another "+
				"directory: nothing was changed", dir, what, filepath.Join(dir, "catalog.backup")), nil
		}
	}
	return "", nil
}

// rebuild finishes what a lost catalog lacks, before anybody reads or writes.
func (n *node) rebuild(ctx context.Context) error {
	return compact.Rebuild(ctx, compact.RebuildDeps{
		Catalog: n.catalog, Warehouse: n.warehouse, RecoverLog: n.supervisor.RecoverLog, Logger: n.log,
	})
}
