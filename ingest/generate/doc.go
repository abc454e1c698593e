// Package generate is a source that needs no outside: a shop that lives. Orders are
// placed, paid, shipped and cancelled, customers come and go, products change their
// price and their key, visits (a table without a key) pile up, and money moves
// between two tables of accounts whose total never changes.
//
// Transaction n is a pure function of the configuration and n: a position is the
// number of the last transaction, and a stream resumes at any of them at once. What
// the tables hold after n transactions is computed by StateAt, an oracle for tests
// and benchmarks.
//
// Reading order: Config, Shop, State, Source.
package generate
