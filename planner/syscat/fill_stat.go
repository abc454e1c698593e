package syscat

import (
	"context"

	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/change"
)

// statFills are the views of statistics and privileges.
func statFills() map[string]fill {
	return map[string]fill{
		"pg_catalog.pg_stat_user_tables":    fillStatTables,
		"pg_catalog.pg_stat_all_tables":     fillStatTables,
		"pg_catalog.pg_stat_user_indexes":   fillStatIndexes,
		"pg_catalog.pg_stat_all_indexes":    fillStatIndexes,
		"pg_catalog.pg_statio_user_tables":  fillStatIOTables,
		"pg_catalog.pg_statio_all_tables":   fillStatIOTables,
		"pg_catalog.pg_statio_user_indexes": fillStatIOIndexes,
		"pg_catalog.pg_statio_all_indexes":  fillStatIOIndexes,
		"pg_catalog.pg_stat_database":       fillStatDatabase,
		"pg_catalog.pg_stat_bgwriter":       idle("pg_catalog.pg_stat_bgwriter"),
		"pg_catalog.pg_stat_archiver":       idle("pg_catalog.pg_stat_archiver"),
		"pg_catalog.pg_stat_wal":            idle("pg_catalog.pg_stat_wal"),
		"pg_catalog.pg_stat_gssapi":         fillStatGSSAPI,
	}
}

func fillStatDatabase(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	r := row{"datid": oidDatabase, "datname": env.Database, "stats_reset": env.Started}
	if env.Sessions != nil {
		r["numbackends"] = len(env.Sessions())
	}
	return c.build("pg_catalog.pg_stat_database", []row{r})
}

// idle makes the one row of a view of work that is not done here: its counts are 0
// since the server started.
func idle(key string) fill {
	return func(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
		r := row{}
		for _, col := range c.shapes[key].Columns {
			switch {
			case col.Name == "stats_reset":
				r[col.Name] = env.Started
			case col.TypeOID != oidText && col.TypeOID != oidTimestampTZ:
				r[col.Name] = 0
			}
		}
		return c.build(key, []row{r})
	}
}

func fillStatGSSAPI(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	if env.Sessions == nil {
		return nil, nil
	}
	var rows []row
	for _, s := range env.Sessions() {
		rows = append(rows, row{"pid": s.PID, "gss_authenticated": false, "encrypted": false})
	}
	return c.build("pg_catalog.pg_stat_gssapi", rows)
}

// fillStatTables counts the changes of tables since their pipeline started. Scans are
// not counted, and nothing is vacuumed.
func fillStatTables(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	changes := map[change.PipelineID]map[[2]string]ddl.TableStatus{}
	for _, p := range env.Snapshot.Pipelines() {
		status, _ := c.deps.Status(p.Name)
		changes[p.ID] = map[[2]string]ddl.TableStatus{}
		for _, s := range status.Tables {
			changes[p.ID][[2]string{s.Schema, s.Name}] = s
		}
	}
	for _, t := range env.Snapshot.AllTables() {
		r := row{
			"relid": planner.TableOID(t.Face()), "schemaname": t.Schema, "relname": t.Name, "n_live_tup": env.Snapshot.LakeState(t.ID).Rows,
			"n_tup_hot_upd": 0, "n_dead_tup": 0, "n_mod_since_analyze": 0, "n_ins_since_vacuum": 0,
			"vacuum_count": 0, "autovacuum_count": 0, "analyze_count": 0, "autoanalyze_count": 0,
		}
		if s, ok := changes[t.Pipeline][[2]string{t.Schema, t.Name}]; ok {
			r["n_tup_ins"], r["n_tup_upd"], r["n_tup_del"] = s.Inserts, s.Updates, s.Deletes
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_stat_user_tables", rows)
}

func fillStatIndexes(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range keyed(env) {
		rows = append(rows, row{
			"relid": planner.TableOID(t.Face()), "indexrelid": planner.IndexOID(t.Face()), "schemaname": t.Schema, "relname": t.Name,
			"indexrelname": t.PrimaryKey(), "idx_scan": 0, "idx_tup_read": 0, "idx_tup_fetch": 0,
		})
	}
	return c.build("pg_catalog.pg_stat_user_indexes", rows)
}

func fillStatIOIndexes(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range keyed(env) {
		rows = append(rows, row{
			"relid": planner.TableOID(t.Face()), "indexrelid": planner.IndexOID(t.Face()), "schemaname": t.Schema, "relname": t.Name,
			"indexrelname": t.PrimaryKey(), "idx_blks_read": 0, "idx_blks_hit": 0,
		})
	}
	return c.build("pg_catalog.pg_statio_user_indexes", rows)
}

func fillStatIOTables(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range env.Snapshot.AllTables() {
		rows = append(rows, row{"relid": planner.TableOID(t.Face()), "schemaname": t.Schema, "relname": t.Name})
	}
	return c.build("pg_catalog.pg_statio_user_tables", rows)
}

// fixedViews are the system views; those of our own have no definitions in SQL.
func fixedViews(c *Catalog, _ string) ([][]any, error) {
	var rows []row
	for _, s := range c.sorted() {
		if s.kind == "v" {
			rows = append(rows, row{"schemaname": s.Schema, "viewname": s.Name, "viewowner": "postgres", "definition": orNull(c.viewSQL[s.OID])})
		}
	}
	return c.build("pg_catalog.pg_views", rows)
}

// systemViews are the definitions of PostgreSQL's views, by oid.
func systemViews() (map[uint32]string, error) {
	lines, err := readTSV("view_definitions")
	out := map[uint32]string{}
	for _, l := range lines {
		out[number(l[0])] = *l[1]
	}
	return out, err
}

// systemInfoViews are the system views; their owner is the superuser, who sees the definitions.
func systemInfoViews(c *Catalog, env *planner.SystemEnv) []row {
	own := env.Rights == nil || env.Rights.Superuser(env.Role)
	var rows []row
	for _, s := range c.sorted() {
		if s.kind != "v" {
			continue
		}
		r := row{
			"table_catalog": env.Database, "table_schema": s.Schema, "table_name": s.Name, "check_option": "NONE", "is_updatable": "NO",
			"is_insertable_into": "NO", "is_trigger_updatable": "NO", "is_trigger_deletable": "NO", "is_trigger_insertable_into": "NO",
		}
		if own {
			r["view_definition"] = orNull(c.viewSQL[s.OID])
		}
		rows = append(rows, r)
	}
	return rows
}

// fixedSizes are the sizes of the system relations, which take no space.
func fixedSizes(c *Catalog, _ string) ([][]any, error) {
	classes, err := systemClasses()
	var rows [][]any
	for _, k := range classes {
		rows = append(rows, []any{k.oid, 0})
	}
	for _, s := range c.sorted() {
		if s.own {
			rows = append(rows, []any{s.OID, 0})
		}
	}
	return rows, err
}

// fillSizes are the bytes that tables take: in the lake, and in the log what is not in the lake yet.
// Indexes and views take none.
func fillSizes(_ context.Context, _ *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows [][]any
	for _, t := range env.Snapshot.AllTables() {
		l, err := waiting(env, t)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []any{planner.TableOID(t.Face()), env.Snapshot.LakeState(t.ID).Bytes + l.bytes})
		for _, x := range indexesOf(t) {
			rows = append(rows, []any{x.oid, 0})
		}
	}
	for _, v := range env.Snapshot.Views() {
		rows = append(rows, []any{planner.TableOID(v.ID), 0})
	}
	for _, s := range env.Snapshot.Sequences() {
		rows = append(rows, []any{planner.TableOID(s.ID), 0})
	}
	return rows, nil
}
