package pgsql_test

import (
	"testing"

	"github.com/skipprd/skipprd/planner/pgsql"
)

// What goes back without SCROLL is what PostgreSQL 15 says in pg_cursors.is_scrollable.
func TestGoesBack(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT id FROM t":                              true,
		"SELECT id FROM t ORDER BY s":                   true,
		"SELECT id + 1 FROM t WHERE s = 'x' LIMIT 3":    true,
		"SELECT id FROM t FOR UPDATE":                   false,
		"SELECT * FROM (SELECT id FROM t FOR UPDATE) q": false,
		"VALUES (1), (2)":                               true,
		"VALUES (1)":                                    false,
		"SELECT 1":                                      false,
		"SELECT 1 ORDER BY 1":                           false,
		"SELECT generate_series(1, 3)":                  false,
		"SELECT generate_series(1, 3) ORDER BY 1":       true,
		"SELECT * FROM generate_series(1, 3)":           true,
		"SELECT * FROM generate_series(1, 3) a, generate_series(1, 2) b": false,
		"SELECT count(*) FROM t":                                                                        false,
		"SELECT max(id) FROM t":                                                                         false,
		"SELECT max(id) FROM t ORDER BY 1":                                                              true,
		"SELECT jsonb_agg(id) FROM t":                                                                   false,
		"SELECT (SELECT max(id) FROM t)":                                                                false,
		"SELECT id, (SELECT max(id) FROM t) FROM t":                                                     true,
		"SELECT s, count(*) FROM t GROUP BY s":                                                          false,
		"SELECT s, count(*) FROM t GROUP BY s ORDER BY count(*)":                                        true,
		"SELECT id, row_number() OVER () FROM t":                                                        false,
		"SELECT DISTINCT s FROM t":                                                                      false,
		"SELECT DISTINCT ON (s) s, id FROM t ORDER BY s, id":                                            false,
		"SELECT id FROM t UNION ALL SELECT id FROM t":                                                   true,
		"SELECT id FROM t UNION ALL SELECT 1":                                                           false,
		"SELECT id FROM t UNION SELECT id FROM t":                                                       false,
		"SELECT s FROM t EXCEPT SELECT s FROM t ORDER BY 1":                                             true,
		"SELECT * FROM (SELECT id FROM t OFFSET 0) q WHERE id > 3":                                      true,
		"SELECT * FROM (SELECT count(*) FROM t) q":                                                      false,
		"WITH x AS (SELECT id FROM t) SELECT * FROM x":                                                  true,
		"WITH x AS (SELECT count(*) FROM t) SELECT * FROM x":                                            false,
		"WITH x AS MATERIALIZED (SELECT count(*) FROM t) SELECT * FROM x":                               true,
		"WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x WHERE n < 5) SELECT * FROM x": true,
		"WITH t AS (SELECT * FROM t) SELECT * FROM t":                                                   true,
		"SELECT id FROM t WHERE id IN (SELECT id FROM t)":                                               false,
		"SELECT id FROM t WHERE id IN (SELECT id FROM t) OR s = 'x'":                                    true,
		"SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.s = t.s)":                         false,
		"SELECT id FROM t WHERE id NOT IN (SELECT id FROM t)":                                           true,
		"SELECT id FROM t WHERE id = (SELECT min(id) FROM t)":                                           true,
		"SELECT id FROM t TABLESAMPLE BERNOULLI (50)":                                                   false,
	} {
		p, err := pgsql.Parse(sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := pgsql.GoesBack(p.Node.GetSelectStmt(), testEnv()); got != want {
			t.Errorf("%s: %t", sql, got)
		}
	}
}
