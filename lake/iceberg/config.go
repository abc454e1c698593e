package iceberg

import (
	"errors"
	"fmt"
)

// Config tunes how lake files are written. The zero value is the default.
type Config struct {
	// FileBytes is the size at which a data file is finished, roughly; default 128
	// MiB. At least 1 MiB.
	FileBytes int64
	// RowGroupRows is the most rows in a row group; default 1,048,576.
	RowGroupRows int64
	// RowGroupBytes is the size at which a row group is finished, roughly; default
	// 128 MiB.
	RowGroupBytes int64
	// MetadataVersions is how many earlier metadata files a table keeps; default 20.
	MetadataVersions int
	// ManifestFanout is how many manifests of similar size are merged into one;
	// default 16. At least 2.
	ManifestFanout int
	// RewriteFiles is how many small files, or delete files, make Maintain rewrite
	// them; default 16. At least 2.
	RewriteFiles int
	// RewriteBytes bounds the data files that one Maintain rewrites; default 256 MiB.
	RewriteBytes int64
	// SnapshotCache is how many snapshots' file lists are kept in memory; default 512.
	SnapshotCache int
}

func (c Config) withDefaults() Config {
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	setInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.FileBytes, 128<<20)
	set(&c.RowGroupRows, 1<<20)
	set(&c.RowGroupBytes, 128<<20)
	setInt(&c.MetadataVersions, 20)
	setInt(&c.ManifestFanout, 16)
	setInt(&c.RewriteFiles, 16)
	set(&c.RewriteBytes, 256<<20)
	setInt(&c.SnapshotCache, 512)
	return c
}

// Validate reports all that is wrong.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	check := func(ok bool, what string, v any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s is out of range: %v", what, v))
		}
	}
	check(c.FileBytes >= 1<<20, "lake file bytes", c.FileBytes)
	check(c.RowGroupRows >= 1024, "lake row group rows", c.RowGroupRows)
	check(c.RowGroupBytes >= 1<<20, "lake row group bytes", c.RowGroupBytes)
	check(c.MetadataVersions >= 2, "lake metadata versions", c.MetadataVersions)
	check(c.ManifestFanout >= 2, "lake manifest fanout", c.ManifestFanout)
	check(c.RewriteFiles >= 2, "lake rewrite files", c.RewriteFiles)
	check(c.RewriteBytes >= 1<<20, "lake rewrite bytes", c.RewriteBytes)
	check(c.SnapshotCache >= 2, "lake snapshot cache", c.SnapshotCache)
	return errors.Join(errs...)
}
