// Package own is the source of tables that are fed by statements here (COPY, INSERT,
// UPDATE, DELETE, TRUNCATE): transactions of sessions, in the order of their commits.
//
//	session ── Commit ──▶ Store: queue ──▶ source.Stream ──▶ ingest: batcher, appender ──▶ log
//	   ▲                     │                                             │
//	   └── durable, visible ─┴──────────────── Ack ◀──────────────────────┘
//
// To the rest of ingest it is a source like any other, which resends from the acknowledged
// position: a transaction stays in the queue until the log has it, however often the log
// is opened anew meanwhile. So it needs no log of its own, and a crash loses what no
// client was told of.
//
// Locks keeps two transactions from changing one table at a time: who changes a table
// sees everything that was committed to it, and what it found there (a key that is free,
// a row to change) stays true until its own commit.
package own
