// Package lake is the contract of a lake table: immutable snapshots, and a commit
// that brings data files, delete files and the names of the compacted slices in at
// one stroke (C3).
//
// Reading order: Warehouse, Table, Snapshot, Commit. The real one is lake/iceberg,
// the fake lake/memlake; both pass lake/laketest. Nothing here reads a log or the
// catalog, and nothing decides what to compact: that is lake/compact.
package lake
