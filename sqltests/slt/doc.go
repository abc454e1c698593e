// Package slt reads sqllogictest files in the dialects of sqlite, DuckDB, CockroachDB
// and sqllogictest-rs (RisingWave, DataFusion, Databend) and runs them over the
// Postgres protocol.
//
// The grammar is the union of the four; where they contradict each other the Dialect of
// the file decides. What is not understood fails the whole file before anything of it
// runs. What needs another engine's machinery (an extension, a restart of an embedded
// database, another engine's internals) ends the file as skipped, with a reason: it is
// never counted as passed. docs/suites.md lists every directive.
//
// Reading order: Dialect, Record, Parse, Config, Runner, Suite.
package slt
