package wire

import (
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5/pgproto3"
)

// scrolling fetches and moves cursors in all directions, drawn. Those WITH HOLD need no
// transaction, which an error would end.
func scrolling() []corner {
	r := rand.New(rand.NewPCG(1, 2))
	cursors := map[string]string{
		"some": "SCROLL CURSOR WITH HOLD FOR SELECT i, i::text || 'x' FROM generate_series(1, 7) AS i",
		"none": "SCROLL CURSOR WITH HOLD FOR SELECT i FROM generate_series(1, 0) AS i",
		"one":  "SCROLL CURSOR WITH HOLD FOR VALUES ('one')",
		"on":   "NO SCROLL CURSOR WITH HOLD FOR SELECT i FROM generate_series(1, 7) AS i",
		"back": "CURSOR WITH HOLD FOR SELECT i FROM generate_series(1, 7) AS i",
		"many": "SCROLL CURSOR WITH HOLD FOR SELECT i FROM generate_series(1, 5000) AS i",
	}
	steps := map[string]int{"some": 200, "none": 40, "one": 60, "on": 60, "back": 60, "many": 60}
	var out []corner
	for _, name := range []string{"some", "none", "one", "on", "many", "back"} {
		send := messages{query(fmt.Sprintf("DECLARE %s %s", name, cursors[name]))}
		for range steps[name] {
			word := "FETCH"
			if name == "many" || r.IntN(4) == 0 {
				word = "MOVE"
			}
			send = append(send, query(fmt.Sprintf("%s %s FROM %s", word, direction(r, name == "many"), name)))
		}
		send = append(send, query(fmt.Sprintf("FETCH NEXT FROM %s; FETCH PRIOR FROM %s; FETCH PRIOR FROM %s; CLOSE %s", name, name, name, name)))
		out = append(out, corner{"scrolls " + name, send, len(send), ""})
	}
	return append(
		out,
		corner{"scroll in a transaction", messages{
			query("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT i FROM generate_series(1, 3) AS i; FETCH LAST FROM c; FETCH BACKWARD ALL FROM c"),
			query("SELECT name, statement, is_holdable, is_scrollable FROM pg_cursors"), query("COMMIT"), query("FETCH c"),
		}, 4, ""},
		corner{"binary cursor", messages{
			query("BEGIN; DECLARE b BINARY SCROLL CURSOR FOR SELECT id, name, paid, d, f8, b, ts, n FROM shop.customers ORDER BY id; FETCH 1 FROM b; MOVE 1 IN b; FETCH b"),
			describe('P', "b"), execute("b", 0), sync, query("SELECT name, is_binary FROM pg_cursors"),
			parse("", "FETCH PRIOR FROM b"), describe('S', ""), bind("", ""), describe('P', ""), execute("", 0), sync, query("COMMIT"),
			query("DECLARE b BINARY SCROLL CURSOR WITH HOLD FOR SELECT 1, NULL::int, 'x'"), query("FETCH b; FETCH PRIOR FROM b; FETCH ABSOLUTE 1 FROM b; CLOSE b"),
		}, 6, ""},
		corner{"formats of fetches", messages{
			query("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id, name, f8, d, tz FROM shop.customers ORDER BY id; FETCH 1 FROM c"),
			parse("", "FETCH FROM c"), &pgproto3.Bind{ResultFormatCodes: []int16{1}}, describe('P', ""), execute("", 0), sync,
			parse("", "FETCH PRIOR FROM c"), &pgproto3.Bind{ResultFormatCodes: []int16{1, 0, 0, 1, 1}}, describe('P', ""), execute("", 0), sync, query("FETCH ALL FROM c; COMMIT"),
		}, 4, ""},
		corner{"formats of a portal", messages{
			query("BEGIN"), parse("", "SELECT id, name, d FROM shop.customers ORDER BY id"),
			&pgproto3.Bind{DestinationPortal: "p", ResultFormatCodes: []int16{1}}, sync, query("FETCH 1 FROM p"), execute("p", 1), sync,
			parse("", "FETCH FROM p"), &pgproto3.Bind{ResultFormatCodes: []int16{0, 1, 1}}, execute("", 0), sync, query("COMMIT"),
		}, 6, ""},
		corner{"errors of what is held", messages{
			query("BEGIN; INSERT INTO loads VALUES (77)"), query("DECLARE h CURSOR WITH HOLD FOR SELECT 1 / (2 - i) FROM generate_series(1, 3) AS i"),
			query("COMMIT"), query("FETCH h"), query("SELECT count(*) FROM loads WHERE id = 77"),
			query("DECLARE h CURSOR WITH HOLD FOR SELECT 1 / (2 - i) FROM generate_series(1, 3) AS i"), query("FETCH h"),
			query("DECLARE h CURSOR WITH HOLD FOR SELECT id FROM shop.orders WHERE id = 1; SELECT 1/0"), query("FETCH h"),
		}, 9, ""},
		corner{"held past its transaction", messages{
			query("BEGIN; DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT i FROM generate_series(1, 3) AS i; FETCH 2 FROM c; COMMIT"),
			query("FETCH PRIOR FROM c"), query("FETCH ABSOLUTE -1 FROM c"), query("CLOSE c"),
		}, 4, ""},
		corner{"goes back without scroll", messages{
			query("BEGIN"), query("DECLARE c CURSOR FOR SELECT id FROM shop.customers;"), query("FETCH 2 FROM c; FETCH PRIOR FROM c; MOVE BACKWARD ALL FROM c; FETCH ALL FROM c"),
			query("SELECT statement, is_scrollable FROM pg_cursors"), query("ROLLBACK"),
		}, 5, ""},
		corner{"scroll and no scroll", messages{query("DECLARE c SCROLL NO SCROLL CURSOR WITH HOLD FOR SELECT 1")}, 1, ""},
		corner{"scroll in pieces", messages{
			query("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT i FROM generate_series(1, 6) AS i; MOVE LAST FROM c"),
			parse("", "FETCH BACKWARD 4 FROM c"), bind("", ""), describe('P', ""), execute("", 3), execute("", 3), sync,
			query("COMMIT"),
		}, 3, ""},
	)
}

func direction(r *rand.Rand, far bool) string {
	most := 9
	if far {
		most = 6000
	}
	words := []string{"FORWARD", "BACKWARD", "ABSOLUTE", "RELATIVE"}
	switch n := r.IntN(12); {
	case n < 8:
		return fmt.Sprintf("%s %d", words[n%4], r.IntN(2*most)-most)
	case n == 8:
		return []string{"FORWARD ALL", "BACKWARD ALL", "ALL"}[r.IntN(3)]
	case n == 9:
		return []string{"FIRST", "LAST"}[r.IntN(2)]
	case n == 10:
		return "PRIOR"
	}
	return "NEXT"
}
