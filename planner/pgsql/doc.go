// Package pgsql turns PostgreSQL's SQL into the engine's: it parses with
// PostgreSQL's own grammar, resolves names and types as PostgreSQL does, and prints
// a new statement in the engine's dialect that gives PostgreSQL's answers.
//
// Nothing of the client's text reaches the engine: every node is understood, typed
// and printed anew, every function and operator is on a list, every name is one of
// ours. What is not understood is an error (0A000, 42883), never passed on.
//
// Reading order: Parse, Analyze, Analysis; then types.go, resolve.go, expr.go,
// select.go, from.go. Pure: no I/O, no clock; safe for concurrent use.
package pgsql
