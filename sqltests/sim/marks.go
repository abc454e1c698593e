package sim

import (
	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/wal/env"
)

// mark counts that something was covered.
func (w *World) mark(name string) { w.marks[name]++ }

// marksAlways are covered on a disk and on an object store.
var marksAlways = []string{
	"acknowledged", "clock jumps ahead", "clock jumps back", "column added", "column dropped", "column renamed",
	"column widened", "compaction found in the lake", "delete", "change without a key", "one of equal rows",
	"whole row insert", "whole row update", "whole row delete", "forced compaction",
	"group committed", "hold moved", "hold released", "hold taken", "host paused or resumed",
	"idle position", "aborted transaction", "huge transaction", "insert", "update", "key update", "truncate",
	"transaction", "kill", "power cut", "lake commit", "lake deletes written",
	"lake maintained", "lake table dropped", "log opened", "log not opened", "pin taken", "pin executed",
	"pin executed again", "pin lost or unreadable", "re-pin", "snapshot too old", "slow reader",
	"transaction pins", "position awaited", "position reached", "segments reclaimed", "seal asked",
	"changes while tables are copied", "statement reset", "statement done reset", "statement resync", "statement done resync", "statement pause",
	"statement done pause", "statement resume", "statement done resume", "statement sync", "statement done sync",
	"statement drop table", "statement done drop table", "statement add tables", "statement done add tables",
	"statement resume table", "statement done resume table",
	"pin of a table that is copied anew", "pin of a copy in its place",
	"refused row", "refused whole row", "dead letters", "dead letters retried", "dead letters superseded", "death while dead letters are retried",
	"statement retry", "statement done retry", "dead letters retried meanwhile",
	"client connected", "client vanished", "client vanished in a copy", "copy begun", "copy frame", "copy frame empty",
	"copy frame of several rows", "copy row across frames", "copy row refused", "copy failed by its client",
	"copy in a transaction", "back to a savepoint", "own commit", "own transaction rolled back", "own table made",
	"own table dropped", "client told COPY", "client told INSERT", "client told UPDATE", "client told DELETE",
	"client told TRUNCATE", "client told COMMIT", "client told error 23505", "client told error 22P02",
	"client told error 22P04", "client told error 57014", "client told error 25P02", "client told error 42P01",
	"client told error 42P07", "client cancelled", "own commit in doubt",
	"defined at once", "defined in a transaction", "own transaction held", "values drawn", "sequence set", "client told ALTER",
	"client told error 23503", "client told SET CONSTRAINTS", "rows locked", "materialized view filled", "rows followed their parent", "row kept its parent", "foreign key added",
	"client told that its commit is in doubt", "client told GRANT", "client told REVOKE", "client told CREATE INDEX", "client told DROP INDEX", "client told SELECT",
	"value left out", "unchanged values looked up", "unchanged values fetched", "columns computed", "computed value refused",
}

// marksOfDisks are covered by logs on disks.
var marksOfDisks = []string{"disk full", "group unpublished", "log full", "log poisoned", "catalog lost", "pins exhausted", "columns changed after the moment of a copy"}

// marksOfStores are covered by logs on object stores.
var marksOfStores = []string{
	"lake commit refused", // on a disk nobody else commits
	"log taken over", "log is free", "writer fenced", "take-over asked", "late write arrives", "late write is lost",
	"backup taken over", "host gives up to lead",
}

// marksOfOperations are those that schedules are made of.
func marksOfOperations(store bool) []string {
	var out []string
	for _, op := range script.Generated() {
		if op == script.Takeover && !store {
			continue
		}
		out = append(out, "op "+op.String())
	}
	return out
}

// marksOfFaults are the faults, and the failpoints at which something has crashed.
func marksOfFaults(store bool) []string {
	var out []string
	for f := NoFault + 1; f < faultEnd; f++ {
		if faultOfStores[f] && !store || f == FailSync && store || f == LostBackup { // which only scripts have
			continue
		}
		out = append(out, "fault "+f.String())
	}
	for _, fp := range env.AllFailpoints() {
		if store && (fp == env.BeforeSeal || fp == env.AfterSealMarker) { // nothing is sealed there
			continue
		}
		out = append(out, "crash at failpoint "+fp.String())
	}
	return out
}

// faultOfStores are the faults that only an object store has.
var faultOfStores = map[Fault]bool{
	Conflict: true, LostRequest: true, LateWrite: true, Duplicate: true, Repeat: true, Partly: true, PartlyUnknown: true,
	ShortPage: true, Damaged: true, StaleVersion: true,
}
