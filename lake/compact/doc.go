// Package compact moves changes from the log into the lake, and then reclaims the log.
//
// One compaction: pick live slices (wal/protocol decides), plan them in the catalog,
// collapse them to one winner per key, find the lake rows they supersede, write Parquet
// and one position delete file, commit both to the lake in one snapshot that names the
// slices (C3), and ack it in the catalog, whose one transaction gives readers the new
// snapshot and takes the slices from the live side.
//
//	live ──plan──▶ planned ──lake commit──▶ in the lake ──ack──▶ acked ──▶ reclaimed
//
// Copied rows need no collapse and no search, unless the copy was interrupted: a chunk
// that was cut short is read again, so its rows may be there twice.
//
// A crash anywhere leaves the plan: the next run takes the same slices (C1) and first
// asks the lake whether its id is there. There is one compaction of a table at a time;
// the Service holds the table's turn.
//
// Reading order: Service, job (job.go), rows.go, search.go, reclaim.go.
package compact
