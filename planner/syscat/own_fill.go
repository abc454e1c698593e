package syscat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ddl/dump"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/change"
)

// tableRef is a table in the code of this file, shortly.
type tableRef = catalog.Table

// lakeTables are the tables that have a place in the log and the lake: those of one session have
// none.
func lakeTables(env *planner.SystemEnv) []*catalog.Table {
	return slices.DeleteFunc(env.Snapshot.AllTables(), func(t *catalog.Table) bool { return t.Temp != "" })
}

// optionText renders options as WITH takes them.
func optionText(options map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(options)) {
		parts = append(parts, k+" = '"+strings.ReplaceAll(options[k], "'", "''")+"'")
	}
	return strings.Join(parts, ", ")
}

func fillConnections(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, x := range env.Snapshot.Connections() {
		rows = append(rows, row{
			"connection": x.Name, "kind": x.Kind, "options": ddl.ShownOptions(x), "implicit": x.Implicit, "created_at": x.CreatedAt,
		})
	}
	return c.build("skippr.connections", rows)
}

func fillSecrets(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, x := range env.Snapshot.Secrets() {
		rows = append(rows, row{"secret": x.Name, "source": x.Source, "created_at": x.CreatedAt})
	}
	return c.build("skippr.secrets", rows)
}

// pipelineNames maps pipelines to their names.
func pipelineNames(env *planner.SystemEnv) map[change.PipelineID]string {
	out := map[change.PipelineID]string{}
	for _, p := range env.Snapshot.Pipelines() {
		out[p.ID] = p.Name
	}
	return out
}

func fillOwnTables(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	names := pipelineNames(env)
	var rows []row
	for _, t := range lakeTables(env) {
		lake := env.Snapshot.LakeState(t.ID)
		live, slices, bytes, err := liveOf(env, t)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{
			"pipeline": names[t.Pipeline], "table_schema": t.Schema, "table_name": t.Name, "source_table": t.SourceSchema + "." + t.SourceName,
			"state": string(t.State), "reason": orNull(t.Reason), "hint": orNull(t.Hint), "key": orNull(keyList(t)),
			"schema_version": t.Current.Version, "generation": t.Generation, "lake_rows": lake.Rows, "lake_bytes": lake.Bytes,
			"lake_files": lake.Files, "live_rows": live, "live_slices": slices, "live_bytes": bytes,
			"metadata_location": orNull(lake.Metadata), "created_at": t.CreatedAt,
		})
	}
	return c.build("skippr.tables", rows)
}

func fillOwnColumns(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range lakeTables(env) {
		for i, f := range t.Current.Fields {
			name := f.TypeName
			if name == "" {
				name = schema.PostgresTypeName(f.OID, f.TypMod)
			}
			r := row{
				"table_schema": t.Schema, "table_name": t.Name, "column_name": f.Name, "ordinal": i + 1, "field_id": f.ID,
				"type": strings.ToLower(schema.EngineType(f.Type)), "source_type": name, "not_null": f.NotNull, "schema_version": t.Current.Version,
			}
			if k := slices.Index(t.Current.Key, f.ID); k >= 0 {
				r["key_ordinal"] = k + 1
			}
			rows = append(rows, r)
		}
	}
	return c.build("skippr.columns", rows)
}

func fillSegments(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, p := range env.Snapshot.Pipelines() {
		segments, err := env.Snapshot.Segments(p.ID)
		if err != nil {
			return nil, err
		}
		pending, err := env.Snapshot.PendingBySegment(p.ID)
		if err != nil {
			return nil, err
		}
		for _, s := range segments {
			rows = append(rows, row{
				"pipeline": p.Name, "seq": int64(s.Seq), "bytes": s.End, "slices": s.Slices,
				"live_slices": s.Live - pending[s.Seq], "pending_slices": pending[s.Seq],
			})
		}
	}
	return c.build("skippr.segments", rows)
}

func fillSlices(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, p := range env.Snapshot.Pipelines() {
		all, err := env.Snapshot.Slices(p.ID)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			r := row{
				"pipeline": p.Name, "seq": int64(s.Ref.Seq), "start": s.Ref.Start, "bytes": s.Length, "rows": s.Rows,
				"inserts": s.Counts.Inserts, "updates": s.Counts.Updates, "deletes": s.Counts.Deletes, "truncate": s.Truncate,
				"backfill": s.Backfill, "min_token": s.Counts.MinToken, "max_token": s.Counts.MaxToken, "compaction": orNull(s.Compacted),
				"committed_at": s.CommittedAt, "published_at": s.PublishedAt, "pending": s.Pending,
			}
			if t, err := env.Snapshot.TableByID(s.Table); err == nil {
				r["table_schema"], r["table_name"] = t.Schema, t.Name
			}
			rows = append(rows, r)
		}
	}
	return c.build("skippr.slices", rows)
}

func fillCompactions(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range lakeTables(env) {
		all, err := env.Snapshot.Compactions(t.ID)
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			rows = append(rows, row{
				"compaction": x.ID, "table_schema": t.Schema, "table_name": t.Name, "state": string(x.State), "slices": len(x.Slices),
				"snapshot": x.Snapshot, "rows": x.Rows, "deletes": x.Deletes, "bytes": x.Bytes, "planned_at": x.PlannedAt, "finished_at": x.FinishedAt,
			})
		}
	}
	return c.build("skippr.compactions", rows)
}

func fillOffsets(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, p := range env.Snapshot.Pipelines() {
		o, err := env.Snapshot.Offset(p.ID)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{
			"pipeline": p.Name, "position": orNull(string(o.Position)), "seq": int64(o.Seq), "end": o.End,
			"committed_at": o.CommittedAt, "published_at": o.PublishedAt,
		})
	}
	return c.build("skippr.offsets", rows)
}

func fillSnapshots(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range lakeTables(env) {
		s := env.Snapshot.LakeState(t.ID)
		if s.Snapshot == 0 {
			continue
		}
		rows = append(rows, row{
			"table_schema": t.Schema, "table_name": t.Name, "snapshot": s.Snapshot, "metadata_location": s.Metadata, "rows": s.Rows,
			"files": s.Files, "bytes": s.Bytes, "max_token": s.MaxToken, "at": s.At,
		})
	}
	return c.build("skippr.snapshots", rows)
}

func fillFiles(ctx context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range lakeTables(env) {
		s := env.Snapshot.LakeState(t.ID)
		if s.Snapshot == 0 {
			continue
		}
		snap, err := c.deps.Files(ctx, t.ID, s.Metadata, s.Snapshot)
		if err != nil {
			return nil, fmt.Errorf("files of %s.%s: %w", t.Schema, t.Name, err)
		}
		add := func(kind, path string, n, bytes int64) {
			rows = append(rows, row{"table_schema": t.Schema, "table_name": t.Name, "kind": kind, "path": path, "rows": n, "bytes": bytes})
		}
		for _, f := range snap.Files {
			add("data", f.Path, f.Rows, f.Bytes)
		}
		for _, f := range snap.PositionDeletes {
			add("position deletes", f.Path, f.Rows, f.Bytes)
		}
	}
	return c.build("skippr.files", rows)
}

// eventsShown is how many events a query sees; older ones are kept no longer either.
const eventsShown = 10_000

func fillEvents(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	events, err := env.Snapshot.Events(eventsShown)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, e := range events {
		rows = append(rows, row{
			"at": e.At, "level": e.Level, "pipeline": orNull(e.Pipeline), "table_name": orNull(e.Table), "kind": e.Kind, "detail": orNull(e.Detail),
		})
	}
	return c.build("skippr.events", rows)
}

func fillOwnSettings(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, s := range env.Settings {
		rows = append(rows, row{"name": s.Name, "value": s.Value, "default": s.Default, "description": s.Description})
	}
	return c.build("skippr.settings", rows)
}

// statements are those that make all that there is.
func statements(env *planner.SystemEnv) ([]dump.Statement, error) {
	b := env.Rights
	if b == nil {
		b = env.Snapshot.Rights()
	}
	return dump.Statements(dump.Source{Snapshot: env.Snapshot, Rights: b, Database: env.Database, Last: env.Shown})
}

// fillDDL is the statements that make all objects, in an order that can be applied: those that
// the role may see.
func fillDDL(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	list, err := statements(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, s := range list {
		if env.Rights == nil || env.Rights.Superuser(env.Role) || mayDump(env, s) {
			rows = append(rows, row{"ordinal": i + 1, "kind": s.Kind, "name": s.Name, "ddl": s.SQL})
		}
	}
	return c.build("skippr.ddl", rows)
}

// mayDump says whether the role may see what makes an object: its owner, and of relations and
// schemas who may do anything with them.
func mayDump(env *planner.SystemEnv, s dump.Statement) bool {
	switch s.Object.Class {
	case 0:
		return false
	case right.Relation, right.Sequence, right.Schema, right.Type:
		return env.Rights.Sees(env.Role, s.Object)
	}
	return env.Rights.Owns(env.Role, s.Object)
}

// fillPasswords is what gives the roles their passwords again; superusers alone read it.
func fillPasswords(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	if env.Rights != nil && env.Rights.Superuser(env.Role) {
		for i, s := range dump.Passwords(env.Rights) {
			rows = append(rows, row{"ordinal": i + 1, "role": s.Name, "ddl": s.SQL})
		}
	}
	return c.build("skippr.role_passwords", rows)
}

func fillStatPipeline(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, p := range env.Snapshot.Pipelines() {
		r := row{"pipeline": p.Name, "state": string(p.State), "reason": orNull(p.Reason)}
		if o, err := env.Snapshot.Offset(p.ID); err == nil {
			r["durable_position"] = orNull(string(o.Position))
		}
		var lake lakeLag
		var letters int64
		for _, t := range env.Snapshot.Tables(p.ID) {
			lag, err := waiting(env, t)
			if err != nil {
				return nil, err
			}
			lake.add(lag)
			open, _, err := openLetters(env, t)
			if err != nil {
				return nil, err
			}
			letters += open
		}
		r["dead_letters"] = letters
		pending, _ := env.Snapshot.Pending(p.ID)
		r["pending_rows"] = pending.Rows
		r["lake_lag_rows"], r["lake_lag_bytes"], r["lake_lag_seconds"] = lake.rows, lake.bytes, lake.seconds(env.Now)
		if s, ok := c.deps.Status(p.Name); ok {
			r["state"], r["reason"], r["source_position"] = s.State, orNull(s.Reason), orNull(s.SourcePosition)
			r["acked_position"], r["lag_bytes"], r["lag_seconds"] = orNull(s.AckedPosition), s.LagBytes, secondsOrNull(s.LagSeconds)
			r["position"], r["lake_position"] = orNull(s.Position), orNull(s.LakePosition)
			r["retained_bytes"], r["slot_state"] = s.RetainedBytes, orNull(s.SlotState)
			r["retained_bytes_per_second"], r["source_bytes_per_second"] = s.RetainedBytesPerSecond, s.WrittenBytesPerSecond
			r["confirmed_position"], r["inactive_since"] = orNull(s.ConfirmedPosition), s.InactiveSince
			if s.Limited {
				r["safe_bytes"] = s.SafeBytes
			}
			if s.SecondsToLoss >= 0 {
				r["seconds_until_lost"] = s.SecondsToLoss
			}
			r["rows_per_second"], r["bytes_per_second"] = s.RowsPerSecond, s.BytesPerSecond
			r["rows"], r["bytes"], r["transactions"], r["last_commit_at"] = s.Rows, s.Bytes, s.Transactions, s.LastCommitAt
			backfillOf(r, s.Backfill)
			r["log_commits"], r["log_host"] = s.LogCommits, orNull(s.LogHost)
			if s.LogEpoch != 0 {
				r["log_epoch"] = int64(s.LogEpoch)
			}
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_stat_pipeline", rows)
}

// backfillOf fills in how far an initial copy is; what is not known stays null.
func backfillOf(r row, b ddl.Backfill) {
	r["backfill_percent"], r["backfill_rows"], r["backfill_bytes"] = b.Percent, b.Rows, b.Bytes
	r["backfill_rows_per_second"] = b.RowsPerSecond
	if b.Estimated >= 0 {
		r["backfill_rows_estimated"] = b.Estimated
	}
	if b.SecondsLeft >= 0 {
		r["backfill_seconds_left"] = b.SecondsLeft
	}
	if !b.StartedAt.IsZero() {
		r["backfill_started_at"] = b.StartedAt
	}
}

// secondsOrNull is null for what is not known.
func secondsOrNull(s float64) any {
	if s < 0 {
		return nil
	}
	return s
}

func fillStatPipelineTable(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, p := range env.Snapshot.Pipelines() {
		status, _ := c.deps.Status(p.Name)
		for _, t := range env.Snapshot.Tables(p.ID) {
			lake, err := waiting(env, t)
			if err != nil {
				return nil, err
			}
			r := row{
				"pipeline": p.Name, "table_schema": t.Schema, "table_name": t.Name, "state": string(t.State), "reason": orNull(t.Reason),
				"hint": orNull(t.Hint), "live_rows": lake.rows, "lake_rows": env.Snapshot.LakeState(t.ID).Rows,
			}
			r["lake_lag_rows"], r["lake_lag_bytes"], r["lake_lag_seconds"] = lake.rows, lake.bytes, lake.seconds(env.Now)
			letters, last, err := openLetters(env, t)
			if err != nil {
				return nil, err
			}
			r["dead_letters"], r["last_dead_letter"] = letters, orNull(last)
			for _, s := range status.Tables {
				if s.Schema != t.Schema || s.Name != t.Name {
					continue
				}
				r["reason"], r["hint"] = orNull(s.Reason), orNull(s.Hint)
				r["state"] = s.State
				r["lag_bytes"], r["lag_seconds"] = s.LagBytes, secondsOrNull(s.LagSeconds)
				backfillOf(r, s.Backfill)
				r["inserts"], r["updates"], r["deletes"], r["last_commit_at"] = s.Inserts, s.Updates, s.Deletes, s.LastCommitAt
			}
			rows = append(rows, r)
		}
	}
	return c.build("pg_catalog.pg_stat_pipeline_table", rows)
}
