// Package write holds what a transaction changes in tables of our own until it commits:
// the changes in their order, what the transaction's own queries see of them, and the
// constraints that new rows must meet.
//
// Reading order: Table, Rows, Changes. It knows no SQL and no sessions, and does no I/O.
package write
