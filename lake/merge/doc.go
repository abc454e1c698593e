// Package merge is the read rule of a table with a row key: of all changes of one
// key that a reader may see, only the greatest in (token, slice, ordinal, row)
// counts (M1). It is used by queries and by compaction alike.
//
// Collapse answers for a fixed list of batches. Index answers for a growing log:
// slices are appended once, and any number of pins at different watermarks share
// one structure, like row versions under MVCC:
//
//	row of slice s        supersededAt = the first slice with a newer change of the
//	                      key, or never
//	pin (Lo, Hi]          sees row r of slice s  iff  Lo < s ≤ Hi < supersededAt[r]
//
// So extending an index by a slice costs its own rows, and a pin costs one pass over
// a []uint32. The one thing this cannot express is a change that is older than one
// in an earlier slice, seen by a pin that no longer has that earlier slice;
// Index.Exact says when a pin is free of that, and Collapse serves the others.
//
// Pure functions of their input: no I/O, no clock, no logging, no engine.
package merge
