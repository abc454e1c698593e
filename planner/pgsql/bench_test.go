package pgsql_test

import "testing"

// BenchmarkMillionRows is what the engine takes for a million rows of what is common in
// reports: numbers as decimals, as decimals of several scales, as text; a member of a jsonb.
func BenchmarkMillionRows(b *testing.B) {
	pool := openEngine(b)
	inline := testArrow(b)
	for _, q := range []struct{ name, sql string }{
		{"decimal", "SELECT sum(g * 0.01), avg(g * 0.01) FROM generate_series(1, 1000000) g"},
		{"choice", "SELECT sum(CASE WHEN g % 2 = 0 THEN g * 0.01 ELSE 0 END) FROM generate_series(1, 1000000) g"},
		{"text", "SELECT sum(g::text::numeric) FROM generate_series(1, 1000000) g"},
		{"quotient", "SELECT sum(g / 7.0) FROM generate_series(1, 1000000) g"},
		{"float", "SELECT sum(g * 0.5::float8) FROM generate_series(1, 1000000) g"},
		{"jsonb", "SELECT count(*) FROM generate_series(1, 1000000) g WHERE '{\"a\": 1, \"b\": [2, 3]}'::jsonb ->> g = 'x'"},
		{"date_trunc", "SELECT count(DISTINCT date_trunc('month', timestamp '2024-01-01' + interval '1 minute' * g)) FROM generate_series(1, 1000000) g"},
		{"to_char", "SELECT count(DISTINCT to_char(date '2024-01-01' + g % 1000, 'YYYY-MM')) FROM generate_series(1, 1000000) g"},
	} {
		b.Run(q.name, func(b *testing.B) {
			for b.Loop() {
				if a := runOurs(b, pool, inline, q.sql); a.err != nil || a.engineErr != nil {
					b.Fatal(a.err, a.engineErr)
				}
			}
		})
	}
}
