// Package catalog holds the durable facts: pipelines, connections, secrets, tables,
// segments, slices, compactions, offsets, roles, settings, events. It holds facts and
// decides nothing.
//
// Facts change in two ways, serialised by one mutex. Publish records committed groups,
// not synced, thousands of times a second: the log is the truth and gives them again
// after a crash. Update runs a Txn of anything else, synced. A Snapshot sees all facts
// at one moment: the live slices and lake state of all tables together are what a query
// pins.
//
// Facts of low rate (all but slices, segments, offsets, events and acked compactions)
// are kept decoded, as one immutable value that a commit replaces. A Snapshot is that
// value and a key-value snapshot, captured together. It never waits for a disk: while
// an Update is being synced, snapshots show the state before it, so nobody acts on what
// a crash could still take away.
//
// Reading order: fact.go, Catalog, Snapshot (its reads are in reader.go), Txn, publish.go,
// compaction.go; key.go and codec.go are the durable form. backup.go keeps an image beside
// the store, from which rebuild.go begins when the store is lost.
//
// Owned invariants: O1 (the offset never regresses), C1 and C2 (an acked compaction
// stays acked), R1 (a segment with a live slice is not deleted), N1 (compacted is set
// membership).
package catalog
