package syscat

import (
	"context"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/change"
)

// ownRelation is a relation that PostgreSQL does not have.
type ownRelation struct {
	schema, name string
	oid          uint32
	columns      []planner.SystemColumn
	fill         fill
}

func (o ownRelation) shape() *shape {
	s := &shape{kind: "v", own: true, facts: make([]columnFacts, len(o.columns))}
	s.Schema, s.Name, s.OID, s.Columns = o.schema, o.name, o.oid, o.columns
	return s
}

// cols builds a column list from name and type pairs.
func cols(pairs ...any) []planner.SystemColumn {
	out := make([]planner.SystemColumn, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, column(pairs[i].(string), pairs[i+1].(uint32)))
	}
	return out
}

// ownRelations are the relations of schema skippr, and the pg_stat_pipeline views in
// pg_catalog, where they are found without a schema. The oids are permanent.
func ownRelations() []ownRelation {
	text, i8, f8, ts, b := oidText, oidInt8, oidFloat8, oidTimestampTZ, oidBool
	return []ownRelation{
		{"skippr", "pipelines", 13101, cols("pipeline", text, "connection", text, "target_schema", text, "enabled", b, "paused", b,
			"state", text, "reason", text, "owner", text, "options", text, "created_at", ts), fillPipelines},
		{"skippr", "connections", 13102, cols("connection", text, "kind", text, "options", text, "implicit", b, "created_at", ts), fillConnections},
		{"skippr", "secrets", 13103, cols("secret", text, "source", text, "created_at", ts), fillSecrets},
		{"skippr", "tables", 13104, cols("pipeline", text, "table_schema", text, "table_name", text, "source_table", text, "state", text,
			"reason", text, "hint", text, "key", text, "schema_version", i8, "generation", i8, "lake_rows", i8, "lake_bytes", i8,
			"lake_files", i8, "live_rows", i8, "live_slices", i8, "live_bytes", i8, "metadata_location", text, "created_at", ts), fillOwnTables},
		{"skippr", "columns", 13105, cols("table_schema", text, "table_name", text, "column_name", text, "ordinal", i8, "field_id", i8,
			"type", text, "source_type", text, "not_null", b, "key_ordinal", i8, "schema_version", i8), fillOwnColumns},
		{"skippr", "segments", 13106, cols("pipeline", text, "seq", i8, "bytes", i8, "slices", i8, "live_slices", i8,
			"pending_slices", i8), fillSegments},
		{"skippr", "slices", 13107, cols("pipeline", text, "table_schema", text, "table_name", text, "seq", i8, "start", i8, "bytes", i8,
			"rows", i8, "inserts", i8, "updates", i8, "deletes", i8, "truncate", b, "backfill", b, "min_token", i8, "max_token", i8,
			"compaction", text, "committed_at", ts, "published_at", ts, "pending", b), fillSlices},
		{"skippr", "compactions", 13108, cols("compaction", text, "table_schema", text, "table_name", text, "state", text, "slices", i8,
			"snapshot", i8, "rows", i8, "deletes", i8, "bytes", i8, "planned_at", ts, "finished_at", ts), fillCompactions},
		{"skippr", "offsets", 13109, cols("pipeline", text, "position", text, "seq", i8, "end", i8, "committed_at", ts, "published_at", ts), fillOffsets},
		{"skippr", "snapshots", 13110, cols("table_schema", text, "table_name", text, "snapshot", i8, "metadata_location", text, "rows", i8,
			"files", i8, "bytes", i8, "max_token", i8, "at", ts), fillSnapshots},
		{"skippr", "files", 13111, cols("table_schema", text, "table_name", text, "kind", text, "path", text, "rows", i8, "bytes", i8), fillFiles},
		{"skippr", "events", 13112, cols("at", ts, "level", text, "pipeline", text, "table_name", text, "kind", text, "detail", text), fillEvents},
		{"skippr", "settings", 13113, cols("name", text, "value", text, "default", text, "description", text), fillOwnSettings},
		{"skippr", "ddl", 13114, cols("ordinal", i8, "kind", text, "name", text, "ddl", text), fillDDL},
		{"skippr", "role_passwords", 13116, cols("ordinal", i8, "role", text, "ddl", text), fillPasswords},
		{"pg_catalog", "pg_stat_pipeline", 13121, cols("pipeline", text, "state", text, "reason", text, "source_position", text,
			"acked_position", text, "durable_position", text, "lag_bytes", i8, "lag_seconds", f8, "lake_lag_rows", i8, "lake_lag_seconds", f8,
			"confirmed_position", text, "source_bytes_per_second", f8, "safe_bytes", i8, "seconds_until_lost", f8, "inactive_since", ts, "retained_bytes_per_second", f8,
			"retained_bytes", i8, "slot_state", text, "rows_per_second", f8, "bytes_per_second", f8, "rows", i8, "bytes", i8, "transactions", i8,
			"last_commit_at", ts, "pending_rows", i8, "log_commits", i8, "log_epoch", i8, "log_host", text, "dead_letters", i8,
			"backfill_percent", f8, "backfill_rows", i8, "backfill_rows_estimated", i8, "backfill_bytes", i8,
			"backfill_rows_per_second", f8, "backfill_seconds_left", f8, "backfill_started_at", ts, "position", text, "lake_position", text,
			"lake_lag_bytes", i8), fillStatPipeline},
		{"pg_catalog", "pg_stat_pipeline_table", 13122, cols("pipeline", text, "table_schema", text, "table_name", text, "state", text,
			"reason", text, "hint", text, "backfill_percent", f8, "backfill_rows", i8, "backfill_rows_estimated", i8,
			"backfill_bytes", i8, "backfill_rows_per_second", f8, "backfill_seconds_left", f8, "backfill_started_at", ts, "inserts", i8, "updates", i8, "deletes", i8, "live_rows", i8, "lake_rows", i8,
			"dead_letters", i8, "last_commit_at", ts, "last_dead_letter", text, "lag_bytes", i8, "lag_seconds", f8,
			"lake_lag_rows", i8, "lake_lag_bytes", i8, "lake_lag_seconds", f8), fillStatPipelineTable},
		lettersRelation(), privilegesRelation(), roleMembersRelation(),
	}
}

// liveOf sums up a table's live slices.
func liveOf(env *planner.SystemEnv, t *tableRef) (rows, slices, bytes int64, err error) {
	l, err := waiting(env, t)
	return l.rows, l.slices, l.bytes, err
}

// lakeLag is what the lake does not have yet.
type lakeLag struct {
	rows, slices, bytes int64
	oldest              time.Time // zero for none
}

// waiting is how far the lake trails the log for a table.
func waiting(env *planner.SystemEnv, t *tableRef) (l lakeLag, err error) {
	live, err := env.Snapshot.LiveSlices(t.ID)
	for i := range live {
		s := &live[i]
		l.rows += int64(s.Rows)
		l.bytes += int64(s.Length)
		if l.oldest.IsZero() || s.PublishedAt.Before(l.oldest) {
			l.oldest = s.PublishedAt
		}
	}
	l.slices = int64(len(live))
	return l, err
}

// seconds is the age of what waits, 0 for nothing.
func (l lakeLag) seconds(now time.Time) float64 {
	if l.oldest.IsZero() {
		return 0
	}
	return max(0, now.Sub(l.oldest).Seconds())
}

// add adds another table's.
func (l *lakeLag) add(o lakeLag) {
	l.rows, l.slices, l.bytes = l.rows+o.rows, l.slices+o.slices, l.bytes+o.bytes
	if l.oldest.IsZero() || !o.oldest.IsZero() && o.oldest.Before(l.oldest) {
		l.oldest = o.oldest
	}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func fillPipelines(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, p := range env.Snapshot.Pipelines() {
		state, reason := string(p.State), p.Reason
		if st, ok := c.deps.Status(p.Name); ok {
			state, reason = st.State, st.Reason
		}
		rows = append(rows, row{
			"pipeline": p.Name, "connection": p.Connection, "target_schema": p.TargetSchema, "enabled": p.Enabled, "paused": p.Paused,
			"state": state, "reason": orNull(reason), "owner": orNull(p.Owner), "options": optionText(p.Options), "created_at": p.CreatedAt,
		})
	}
	return c.build("skippr.pipelines", rows)
}

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
