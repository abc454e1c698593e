package syscat

import (
	"context"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/change"
)

// lettersRelation is skippr.dead_letters: what could not be taken in, and what became of it.
func lettersRelation() ownRelation {
	text, i8, ts, b := oidText, oidInt8, oidTimestampTZ, oidBool
	return ownRelation{"skippr", "dead_letters", 13115, cols("id", i8, "pipeline", text, "table_schema", text, "table_name", text,
		"source_table", text, "position", text, "token", i8, "ordinal", i8, "op", text, "copied", b, "key", text, "column_name", text,
		"reason", text, "code", text, "raw_row", text, "state", text, "first_seen", ts, "changed_at", ts), fillDeadLetters}
}

var opNames = map[change.Op]string{change.Insert: "insert", change.Update: "update", change.Delete: "delete"}

func fillDeadLetters(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, p := range env.Snapshot.Pipelines() {
		for _, t := range env.Snapshot.Tables(p.ID) {
			letters, err := env.Snapshot.DeadLetters(t.ID)
			if err != nil {
				return nil, err
			}
			for _, l := range letters {
				rows = append(rows, row{
					"id": int64(l.ID), "pipeline": p.Name, "table_schema": t.Schema, "table_name": t.Name,
					"source_table": t.SourceSchema + "." + t.SourceName, "position": orNull(string(l.Position)), "token": l.Token,
					"ordinal": int64(l.Ordinal), "op": orNull(opNames[l.Op]), "copied": l.Copied, "key": orNull(l.Key),
					"column_name": orNull(l.Column), "reason": orNull(l.Reason), "code": orNull(l.Code), "raw_row": orNull(l.Row),
					"state": string(l.State), "first_seen": l.FirstSeen, "changed_at": l.ChangedAt,
				})
			}
		}
	}
	return c.build("skippr.dead_letters", rows)
}

// openLetters are how many dead letters a table has, and the reason of the newest.
func openLetters(env *planner.SystemEnv, t *catalog.Table) (n int64, reason string, err error) {
	letters, err := env.Snapshot.OpenDeadLetters(t.ID)
	for _, l := range letters {
		n, reason = n+1, l.Reason
	}
	return n, reason, err
}
