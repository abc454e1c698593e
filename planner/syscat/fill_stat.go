package syscat

import (
	"context"

	"github.com/skipprd/skipprd/planner"
)

// statFills are the views of statistics and privileges.
func statFills() map[string]fill {
	return map[string]fill{
		"pg_catalog.pg_stat_user_tables":       fillStatTables,
		"pg_catalog.pg_stat_all_tables":        fillStatTables,
		"pg_catalog.pg_stat_user_indexes":      fillStatIndexes,
		"pg_catalog.pg_stat_all_indexes":       fillStatIndexes,
		"pg_catalog.pg_statio_user_tables":     fillStatIOTables,
		"pg_catalog.pg_statio_all_tables":      fillStatIOTables,
		"pg_catalog.pg_stat_database":          fillStatDatabase,
		"information_schema.role_table_grants": fillGrants("information_schema.role_table_grants"),
		"information_schema.table_privileges":  fillGrants("information_schema.table_privileges"),
	}
}

func fillStatDatabase(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	r := row{"datid": oidDatabase, "datname": env.Database, "stats_reset": env.Started}
	if env.Sessions != nil {
		r["numbackends"] = len(env.Sessions())
	}
	return c.build("pg_catalog.pg_stat_database", []row{r})
}

func fillStatTables(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range env.Snapshot.AllTables() {
		rows = append(rows, row{
			"relid": planner.TableOID(t.Face()), "schemaname": t.Schema, "relname": t.Name, "n_live_tup": env.Snapshot.LakeState(t.ID).Rows,
		})
	}
	return c.build("pg_catalog.pg_stat_user_tables", rows)
}

func fillStatIndexes(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range keyed(env) {
		rows = append(rows, row{
			"relid": planner.TableOID(t.Face()), "indexrelid": planner.IndexOID(t.Face()), "schemaname": t.Schema, "relname": t.Name,
			"indexrelname": t.Name + "_pkey", "idx_scan": 0, "idx_tup_read": 0, "idx_tup_fetch": 0,
		})
	}
	return c.build("pg_catalog.pg_stat_user_indexes", rows)
}

func fillStatIOTables(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, t := range env.Snapshot.AllTables() {
		rows = append(rows, row{"relid": planner.TableOID(t.Face()), "schemaname": t.Schema, "relname": t.Name})
	}
	return c.build("pg_catalog.pg_statio_user_tables", rows)
}

// fillGrants makes the rows of a view of privileges: every role reads every table.
func fillGrants(key string) fill {
	return func(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
		var rows []row
		for _, r := range env.Snapshot.Roles() {
			for _, t := range env.Snapshot.AllTables() {
				rows = append(rows, row{
					"grantor": r.Name, "grantee": r.Name, "table_catalog": env.Database, "table_schema": t.Schema, "table_name": t.Name,
					"privilege_type": "SELECT", "is_grantable": "NO", "with_hierarchy": "YES",
				})
			}
		}
		return c.build(key, rows)
	}
}

// fixedViews are the system views; their definitions are not SQL.
func fixedViews(c *Catalog, _ string) ([][]any, error) {
	var rows []row
	for _, s := range c.sorted() {
		if s.kind == "v" {
			rows = append(rows, row{"schemaname": s.Schema, "viewname": s.Name, "viewowner": "postgres"})
		}
	}
	return c.build("pg_catalog.pg_views", rows)
}

func fixedInfoViews(c *Catalog, database string) ([][]any, error) {
	var rows []row
	for _, s := range c.sorted() {
		if s.kind == "v" {
			rows = append(rows, row{
				"table_catalog": database, "table_schema": s.Schema, "table_name": s.Name, "check_option": "NONE", "is_updatable": "NO",
				"is_insertable_into": "NO", "is_trigger_updatable": "NO", "is_trigger_deletable": "NO", "is_trigger_insertable_into": "NO",
			})
		}
	}
	return c.build("information_schema.views", rows)
}
