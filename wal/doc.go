// Package wal is the log of a pipeline: changes become durable here before their
// source may forget them, and stay until they are compacted into the lake.
//
// Log is the writer, one per pipeline and directory; Reader reads slices, from any
// process, while the log is written, sealed, reclaimed and its files reused. The
// decisions are made in wal/protocol and the bytes in wal/segment; this package
// runs them on a disk.
//
// A directory holds {id}.seg (bodies), {id}.seg.commit (markers of sealed ones),
// spare-N (pre-written files that become segments by rename) and LOCK. id is the
// segment's seq in 16 hex digits. The header of a segment is durable before the file
// gets its name, so under a segment's name there is always a whole header of it.
//
// checkpoint says what reclaim has let go, for whoever loses the catalog.
//
// With Deps.Store the log is on an object store, each commit a body and a marker, and
// may be taken over by another host: Open does it, Candidate says when. The directory is
// then a mirror of what is committed, for readers, and may be lost.
//
// OpenStepped opens a log without goroutines, for simulations: the same code, moved by
// hand.
//
// It owns W1 to W4, F1, O1 as far as the log reaches, R2, D1 and P3.
package wal
