// Package define says what statements that make, change and drop tables of our own, views,
// schemas and comments do to the catalog.
//
// A statement is planned against one moment (Plan) to a Change: which tables it must have
// to itself, what must be true of their rows, and the function that does it in a catalog
// transaction. The function may run several times: for the transaction's own view of the
// catalog after each of its statements, and once when it commits.
//
// Reading order: Plan, Change, table.go, alter.go, drop.go, view.go, sequence.go, index.go. It runs no query,
// and does no I/O.
package define
