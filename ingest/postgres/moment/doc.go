// Package moment reads tables of a PostgreSQL database at one moment whose place in the
// write-ahead log is known exactly: counts and checksums, for a comparison with the lake.
//
// The moment is that of a temporary replication slot, made inside the transaction that
// then reads: it has the transactions whose commit record lies before the slot's point, and
// no others. The slot goes at once, so it keeps no log at the source. Locks are ACCESS
// SHARE, of the table being read alone: TRUNCATE and rewrites, which old snapshots do not
// outlive, are found out instead of being kept waiting.
package moment
