// Package planner answers SQL: it stands behind pgwire and in front of the engine.
//
// A statement goes parse → analyse (planner/pgsql) → pin → plan (lake/duckdb.Plan)
// → run → encoded rows to the sink. Statements of ours go to ddl, settings to
// planner/setting, catalog relations come from a SystemRelations (planner/syscat).
// Not for: the wire's bytes, the meaning of DDL, reading files or the log.
//
// Reading order: Deps, Engine, Session, Statement, Portal, pin.
//
// Invariants: a statement reads all its tables at one catalog snapshot (T1, P1); a
// lost slice is an error or a new pin before the first row, never a shorter result
// (P3); REPEATABLE READ pins once.
package planner
