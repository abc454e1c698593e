// Package iceberg keeps lake tables as plain Iceberg v2 tables in a directory, with
// our own lake catalog over a key-value store.
//
// Data and position delete files are written with pqarrow, manifests and metadata
// with iceberg-go's writers; a commit is one metadata file and one pointer swap. We
// assemble snapshots ourselves instead of using iceberg-go's producers, because a
// truncate must replace all files in one snapshot, a compaction may add no file at
// all, and nothing there merges delete manifests.
//
// Layout under the warehouse:
//
//	<namespace>/<name>-<unique>/data/*.parquet
//	<namespace>/<name>-<unique>/metadata/*.metadata.json, *.avro
//
// Reading order: Warehouse, Catalog, tableHandle (table.go, commit.go), manifest.go,
// writer.go, maintain.go. Durability: every file is synced before the pointer that
// makes it reachable (C3).
package iceberg
