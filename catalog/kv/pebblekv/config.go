package pebblekv

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options are the settings and collaborators of a store. The zero value is usable.
type Options struct {
	// CacheBytes bounds the block cache; default 24 MiB: the catalog's hot part is in
	// memtables, and the lake's metadata is small.
	CacheBytes int64
	// MemTableBytes is the size of one memtable; up to four exist. Default 8 MiB.
	MemTableBytes int64
	// Log takes the store's own messages; default none.
	Log *slog.Logger
	// FS is the file system; default the machine's. For crash tests.
	FS vfs.FS
}

func (o Options) withDefaults() Options {
	if o.CacheBytes <= 0 {
		o.CacheBytes = 24 << 20
	}
	if o.MemTableBytes <= 0 {
		o.MemTableBytes = 8 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = defaultFS()
	}
	return o
}
