// Package pgfunc holds PostgreSQL's functions that the engine has no like of, in Go: the
// engine calls them from the statements that planner/pgsql writes.
//
// Numerics of any size and scale travel as PostgreSQL's text. Errors begin with their
// SQLSTATE ("22003: …"), as the planner reads engine errors. Pure; all functions may be
// called from several threads at once.
//
// Reading order: Functions; then a file for each family.
package pgfunc
