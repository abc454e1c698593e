// Package postgres is the source for PostgreSQL: it discovers tables, makes a
// publication and a replication slot, copies what is there and streams what changes.
// It never alters a user's table and needs no superuser.
//
// Positions are LSNs. A transaction's order token is the LSN of its commit record, its
// position the end of that record; resuming at a position streams what commits there
// or later, since a record begins no earlier than the one before it ends.
//
// What is sent to the lake type exactly or not at all: see package value. A table
// whose values or columns cannot be taken in stops alone, with a reason.
//
// Exactness of the copy. The slot's own snapshot has exactly the transactions that
// commit before the slot's start. A later session takes the snapshot of a temporary
// slot, which has exactly those that commit before its horizon. So a change is in the
// copy if and only if it commits before the horizon, whatever was open at the time.
// With a key, streaming again what the copy has does no harm, so the chunks of a table
// may come from several sessions; an update that moves a row between chunks is in the
// stream. Without a key every change counts: all chunks must come from one session,
// and the stream skips what commits before its horizon (StreamTable.After).
//
// Publications. There are two, with their reasons in publication.go.
//
// What PostgreSQL does not send: TRUNCATE of a single partition, and rows that come or
// go by ATTACH, DETACH or DROP of a partition, when it is published as one table, which Look
// notices; generated columns before version 18, which it is asked to compute (computed.go).
//
// Reading order: New, Setup, Backfill (plan, read, rowWriter), Stream (applier,
// streamTable, feedback), Status, Teardown.
package postgres
