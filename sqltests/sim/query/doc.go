// Package query runs plans of the planner in Go, for the simulator: live slices by the
// log's own reader, lake files and position deletes of lake/memlake, put together by
// lake/merge as the engine's worker does. Its answers are canonical rows, comparable
// byte for byte with what another reading of the same changes gives.
//
// Reading order: Executor, Result, AppendValue.
package query
