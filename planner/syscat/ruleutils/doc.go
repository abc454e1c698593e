// Package ruleutils shows queries and expressions as PostgreSQL's pg_get_viewdef and
// pg_get_expr do: with the casts, parentheses, qualified columns and lines that its
// ruleutils.c gives them. A query is first resolved as PostgreSQL resolves it (functions,
// operators and casts by the rows of pg_proc, pg_operator and pg_cast), into a tree of what
// those found, and the tree is printed.
//
// What this package does not know, or cannot resolve as PostgreSQL would, is an error: the
// caller shows it as it was written. Nothing here decides what a query means: the statements
// that run are analysed by package pgsql.
//
// Reading order: Facts, Deparser, node.go, coerce.go, choose.go, expr.go, query.go, print.go.
package ruleutils
