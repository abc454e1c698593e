// Package duckdb is the embedded engine: it answers plans over pinned lake files and
// live slices, in worker processes of the same binary, so that a fault in the engine
// ends its queries and never the log.
//
//	Pool (server)                          worker (child process)
//	  Query ── Plan ──── unix socket ────▶ session: relations → SQL, live slices → scan
//	  Stream ◀─ frames of encoded rows ─── driver: raw vectors → RowEncoder
//
// Reading order: Plan, Pool, Stream for callers; ServeWorker, session, relation,
// liveCache for what runs behind the socket. The subpackage driver is the only place
// that talks to the engine's library.
//
// It knows nothing of catalogs, sessions or Postgres: SQL comes in the engine's own
// dialect, and encoders are injected. A query that cannot be answered exactly ends
// in an error, never in fewer rows (P3).
package duckdb
