package planner_test

import (
	"testing"

	"github.com/skipprd/skipprd/planner/pgsql"
)

// BenchmarkAnalyze is the cost of understanding a statement, parser included.
func BenchmarkAnalyze(b *testing.B) {
	w := newWorld(b)
	c := w.connect()
	for name, sql := range map[string]string{
		"point":     `SELECT name, "Total" FROM shop.orders WHERE id = 42`,
		"aggregate": `SELECT name, count(*), sum("Total"), avg("Total") FROM shop.orders WHERE id BETWEEN 10 AND 1000 AND name LIKE 'a%' GROUP BY name HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 10`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.PgConn().Prepare(b.Context(), "", sql, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("parse only", func(b *testing.B) {
		for b.Loop() {
			if _, err := pgsql.Parse(`SELECT name, "Total" FROM shop.orders WHERE id = 42`); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkQuery is a whole round trip over the wire.
func BenchmarkQuery(b *testing.B) {
	w := newWorld(b)
	w.put("1 ada 10.50", "2 bob 20.00", "3 cy 1.00")
	c := w.connect()
	for name, sql := range map[string]string{
		"constant": "SELECT 1", "live": "SELECT * FROM shop.orders WHERE id = 2",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := simple(b, c, sql); len(got) < 8 {
					b.Fatal(got)
				}
			}
		})
	}
}
