// Package engine reads a simulated world by the product's own SELECT: a session of the
// planner, and DuckDB in this process, over the world's catalog, its lake in a directory
// and its log on a simulated disk. Its rows are rendered as sqltests/sim/query does, so
// that they can be compared with the oracle.
//
// Reading order: Engine, World, Session.
package engine
