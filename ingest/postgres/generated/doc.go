// Package generated is about columns that PostgreSQL computes from others of the row and
// does not send: GENERATED ALWAYS AS (…) STORED before version 18, or where the publication
// leaves them out, and VIRTUAL.
//
// Their expressions are immutable and read nothing but the row. So the server that computed
// a value gives it again, exactly, when it is asked to evaluate the expression for the same
// values of the other columns: see Values. Nothing is evaluated here.
//
// Reading order: Read, Recipe, Values, Session. It asks the server through Querier, and has no
// clock and no logging.
package generated
