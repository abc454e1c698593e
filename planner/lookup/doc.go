// Package lookup finds rows of tables by key for ingest: what an update left out is in
// what readers would see, or among the parts of its own transaction. It pins and re-pins
// as a query does, so compaction and reclaim may go on under it.
//
// Reading order: Lookup, Finder, Engine.
package lookup
