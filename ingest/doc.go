// Package ingest is a pipeline's life: it discovers tables, copies them, follows the
// source's stream, batches changes into groups, appends those to the pipeline's log
// and tells the source what is durable. It knows no source itself; those are the
// packages below it. It does not compact, and it does not read the lake.
//
//	Supervisor ── host (one per pipeline: its log, its wish) ── session (one connection)
//	                 source.Stream ──▶ batcher ──▶ appender ──▶ Log.Append ──▶ source.Ack
//	                 source.Backfill ─▶ copier ───────────────▶ Log.Append
//
// A table goes pending → backfill → catchup → ready; catchup ends when the stream has
// passed the horizon of the copy. Any state can become stopped: the table's changes
// from StoppedAt on then stay at the source, and nothing past it is acknowledged.
// After RESUME TABLE the table is behind: it keeps StoppedAt as its own durable
// position until it has reached the pipeline's, while the others skip what they have.
//
// Invariants: O1 (the acknowledged position is the minimum over tables of what is
// durable, and never regresses), T1 (a group holds whole transactions, or a part of a
// large one, pending until its commit), W1 (nothing is acknowledged before its group is
// durable), A1.
//
// Reading order: Source, Supervisor, host, session, batcher, appender, copier,
// groupState.
package ingest
