package pgsql_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
)

// grammar holds the productions of testdata/grammar.txt by type: composed templates and
// simple values.
type grammar struct {
	templates, simple map[string][]string
}

func readGrammar(t testing.TB) *grammar {
	t.Helper()
	g := &grammar{templates: map[string][]string{}, simple: map[string][]string{}}
	file, err := os.Open("testdata/grammar.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for sc := bufio.NewScanner(file); sc.Scan(); {
		line := sc.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		if typ, text, ok := strings.Cut(line, " : "); ok && !strings.Contains(typ, " ") {
			g.templates[typ] = append(g.templates[typ], text)
			continue
		}
		if typ, text, ok := strings.Cut(line, " = "); ok {
			g.simple[typ] = append(g.simple[typ], text)
		}
	}
	return g
}

// valueTypes are the types of which whole expressions are drawn.
var valueTypes = []string{
	"bool", "int2", "int4", "int8", "numeric", "float8", "float4", "text", "varchar", "bpchar", "bytea", "date", "time",
	"timestamp", "timestamptz", "interval", "uuid", "int4[]", "text[]", "numeric[]", "jsonb", "json",
	"inet", "cidr", "bit", "varbit", "int4range", "numrange", "daterange", "tsrange", "tstzrange", "int4multirange",
}

var hole = regexp.MustCompile(`\{([a-z0-9]+(?:\[\])?)(=?)\}`)

// draw makes queries from one seed.
type draw struct {
	*grammar
	r    *rand.Rand
	only []string // when not empty, the templates that queries are made of
}

func (d *draw) one(list []string) string { return list[d.r.IntN(len(list))] }

// expr draws an expression of a type.
func (d *draw) expr(typ string, depth int) string {
	templates := d.templates[typ]
	if depth <= 0 || len(templates) == 0 || d.r.IntN(4) == 0 {
		return d.one(d.simple[typ])
	}
	return d.fill(d.one(templates), depth)
}

func (d *draw) fill(template string, depth int) string {
	return hole.ReplaceAllStringFunc(template, func(m string) string {
		sub := hole.FindStringSubmatch(m)
		if _, known := d.simple[sub[1]]; !known {
			return m
		}
		if sub[2] == "=" {
			return d.one(d.simple[sub[1]])
		}
		e := d.expr(sub[1], depth-1)
		if plainOperand.MatchString(e) {
			return e
		}
		return "(" + e + ")"
	})
}

var plainOperand = regexp.MustCompile(`^(?:[a-z0-9_]+|'[^']*')$`)

// value draws an expression of any type.
func (d *draw) value(depth int) string { return d.expr(d.one(valueTypes), depth) }

// aggregates are templates of aggregate calls, for plain, grouped and window use.
var aggregates = []string{
	"count({int4})", "count(DISTINCT {text})", "count(DISTINCT {numeric})", "sum({int4})", "sum({int8})", "sum({numeric})",
	"sum({interval})", "avg({int4})", "avg({numeric})", "avg({int8})", "avg({interval})", "min({int4})", "max({text})", "min({numeric})",
	"max({date})", "min({timestamptz})", "max({interval})", "min({bpchar})", "max({int4[]})", "min({time})", "bool_and({bool})", "bool_or({bool})",
	"every({bool})", "bit_and({int4})", "bit_or({int8})", "bit_xor({int2})", "stddev({int4})", "variance({numeric})", "stddev_pop({numeric})",
	"var_samp({int8})",
}

// orderedAggregates depend on the order of their input.
var orderedAggregates = []string{
	"string_agg({text}, ',' ORDER BY id)", "array_agg({int4} ORDER BY id)", "array_agg({text} ORDER BY id DESC)", "array_agg({numeric} ORDER BY id)",
	"json_agg({int4} ORDER BY id)", "jsonb_agg({text} ORDER BY id)", "array_agg(DISTINCT v ORDER BY v)", "string_agg(DISTINCT v, '-' ORDER BY v DESC)",
	"jsonb_object_agg(id, {int4} ORDER BY id)", "json_object_agg(id, {text} ORDER BY id)", "sum({float8} ORDER BY id)", "avg({float8} ORDER BY id)",
	"percentile_cont(0.5) WITHIN GROUP (ORDER BY {float8})", "percentile_disc(0.25) WITHIN GROUP (ORDER BY {int4})", "mode() WITHIN GROUP (ORDER BY {int4})",
	"percentile_cont(0.3) WITHIN GROUP (ORDER BY {interval})", "percentile_disc(ARRAY[0.2,0.9]) WITHIN GROUP (ORDER BY {int4})",
	"count(*) FILTER (WHERE {bool})", "sum({numeric}) FILTER (WHERE {bool})", "max({text}) FILTER (WHERE {bool})",
}

var windowCalls = []string{
	"row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile({small})", "lag({int4})", "lag({text}, {small})",
	"lead({numeric}, 1, {numeric})", "lead({int4}, {small}, {int4=})", "first_value({text})", "last_value({numeric})", "nth_value({int4}, {small})",
}

var frames = []string{
	"", "", "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
	"ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
	"ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW", "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE TIES",
}

// shapes are templates of whole queries.
var shapes = []string{
	"SELECT id FROM t WHERE {bool} ORDER BY id",
	"SELECT id, {int4} AS x FROM t ORDER BY x, id",
	"SELECT id FROM t ORDER BY {text} DESC, id",
	"SELECT id FROM t ORDER BY {numeric} DESC NULLS LAST, id LIMIT 3",
	"SELECT id FROM t ORDER BY {interval} NULLS FIRST, id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
	"SELECT id FROM t ORDER BY {timestamptz}, id",
	"SELECT id FROM t ORDER BY {bool}, {int4[]}, id",
	"SELECT DISTINCT {bool} FROM t ORDER BY 1",
	"SELECT DISTINCT {int4} % 3 AS k, b FROM t ORDER BY 1, 2",
	"SELECT DISTINCT ON (v) v, id, {text} FROM t ORDER BY v, id",
	"SELECT v, count(*), sum({numeric}) FROM t GROUP BY v ORDER BY v",
	"SELECT {bool} AS k, count(*) FROM t GROUP BY 1 ORDER BY 1",
	"SELECT {numeric} AS k, count(*), sum(id) FROM t GROUP BY k ORDER BY k, 3",
	"SELECT {interval} AS k, count(*), sum(id) FROM t GROUP BY k ORDER BY k, 3",
	"SELECT v, b, sum({int4}), grouping(v, b) FROM t GROUP BY ROLLUP (v, b) ORDER BY 1, 2, 4",
	"SELECT v, b, count({text}) FROM t GROUP BY GROUPING SETS ((v), (b), ()) ORDER BY 1, 2, 3",
	"SELECT v, max({numeric}) FROM t GROUP BY CUBE (v) HAVING count(*) > 1 ORDER BY 1",
	"SELECT {int4} FROM t UNION SELECT {int4} FROM t ORDER BY 1",
	"SELECT {numeric} FROM t WHERE id = 1 UNION ALL SELECT {int4} FROM t WHERE id = 2 ORDER BY 1",
	"SELECT {text} FROM t INTERSECT SELECT {text} FROM t ORDER BY 1",
	"SELECT {int4} FROM t EXCEPT ALL SELECT {int4} FROM t ORDER BY 1",
	"SELECT x.id, y.k FROM t x JOIN (SELECT id, {int4} AS k FROM t) y ON y.id = x.i2 OR y.k = x.id ORDER BY 1, 2",
	"SELECT x.id, y.id FROM t x LEFT JOIN t y ON x.i8 = y.i8 AND x.id < y.id ORDER BY 1, 2",
	"WITH q AS (SELECT id, {numeric} AS k FROM t) SELECT id, k, k * 2 FROM q ORDER BY id",
	"SELECT t.id, l.k FROM t, LATERAL (SELECT {numeric} AS k) l ORDER BY 1",
	"SELECT t.id, u FROM t, unnest({int4[]}) u ORDER BY 1, 2",
	"SELECT g, {int4} FROM generate_series(1, 3) g, t WHERE id = g ORDER BY 1",
	"SELECT * FROM (VALUES ({int4}, {text}), ({int4}, {text})) q(x, y), t WHERE t.id = 1",
	"SELECT (SELECT {text} LIMIT 1) FROM t ORDER BY id",
	"SELECT id, count(*) OVER (PARTITION BY {bool}) FROM t ORDER BY id",
	"SELECT sum(k) FROM (SELECT {numeric} AS k FROM t) q",
	"SELECT string_agg(k, ',' ORDER BY k) FROM (SELECT DISTINCT {text} AS k FROM t) q",
	"SELECT {jsonb} AS k, count(*), min(id) FROM t GROUP BY k ORDER BY k, 3",
	"SELECT DISTINCT {jsonb} FROM t ORDER BY 1",
	"SELECT id FROM t ORDER BY {jsonb}, {bytea} DESC, id",
	"SELECT id FROM t ORDER BY {date} DESC NULLS LAST, {time}, {uuid}, id",
	"SELECT {interval} FROM t UNION SELECT {interval} FROM t ORDER BY 1",
	"SELECT {numeric} FROM t EXCEPT SELECT {numeric} FROM t ORDER BY 1",
	"SELECT x.id, y.id FROM t x JOIN t y ON x.nn = y.n OR x.nn * 2 = y.id ORDER BY 1, 2",
	"SELECT v, sum(count(*)) OVER (ORDER BY v), avg({numeric}), max({interval}) FROM t GROUP BY v ORDER BY v",
	"SELECT id, CASE WHEN {bool} THEN {text} WHEN {bool} THEN {text} END, coalesce({numeric}, {int4}, 0) FROM t ORDER BY id",
	"SELECT ROW({int4}, {text}, {numeric}, {bool}, {date}, {int4[]}), ({text}, {float8})::text FROM t ORDER BY id",
	"SELECT nullif({numeric}, {int4}), nullif({text}, {text}), greatest({date}, {date}), least({interval}, {interval}) FROM t ORDER BY id",
	"WITH RECURSIVE r(i, k) AS (SELECT 1, ({numeric=})::numeric UNION ALL SELECT i + 1, k * 1.5 FROM r WHERE i < 4) SELECT * FROM r ORDER BY i",
	"SELECT * FROM (SELECT id, v FROM t) x FULL JOIN (SELECT id, {int4} AS k FROM t) y USING (id) ORDER BY id",
	"SELECT count(*) FROM t WHERE {numeric} > ANY (SELECT nn FROM t) OR {int4} IN (SELECT id FROM t WHERE {bool})",
	"SELECT id FROM t ORDER BY {inet}, {int4range} DESC, {numrange}, id",
	"SELECT {inet} AS k, count(*), min(id), max({inet}) FROM t GROUP BY k ORDER BY k, 3",
	"SELECT DISTINCT {int4range} AS k FROM t ORDER BY k",
	"SELECT {inet} FROM t UNION SELECT {cidr} FROM t ORDER BY 1",
	"SELECT range_agg({int4range}), range_intersect_agg({int4range}), count(DISTINCT {numrange}) FROM t",
	"SELECT t.id, u FROM t, unnest({int4multirange}) u ORDER BY 1, 2",
	"SELECT id, rank() OVER (ORDER BY {inet}), max({inet}) OVER (PARTITION BY b) FROM t ORDER BY id",
	"SELECT x.id, y.id FROM t x JOIN t y ON int4range(x.id, x.id + 2) && int4range(y.id, y.i2) WHERE y.i2 > y.id ORDER BY 1, 2",
	"SELECT k, row_number() OVER (ORDER BY k DESC, id) FROM (SELECT id, {numeric} AS k FROM t) q ORDER BY id",
}

// query draws a query.
func (d *draw) query() string {
	const depth = 3
	if len(d.only) > 0 {
		return fmt.Sprintf("SELECT %s FROM t ORDER BY id", d.fill(d.one(d.only), 2))
	}
	switch d.r.IntN(10) {
	case 0:
		return d.fill(d.one(shapes), depth-1)
	case 1:
		return "SELECT " + d.fill(d.one(aggregates), depth-1) + " FROM t"
	case 2:
		return "SELECT " + d.fill(d.one(orderedAggregates), depth-1) + " FROM t"
	case 3:
		call := d.fill(d.one(append(windowCalls, aggregates...)), depth-2)
		over := "PARTITION BY b "
		if d.r.IntN(2) == 0 {
			over = ""
		}
		over += "ORDER BY id " + d.one(frames)
		return "SELECT id, " + call + " OVER (" + over + ") FROM t ORDER BY id"
	}
	return fmt.Sprintf("SELECT %s FROM t ORDER BY id", d.value(1+d.r.IntN(depth)))
}

// newDraw makes the draws of a seed.
func newDraw(g *grammar, seed uint64) *draw {
	return &draw{grammar: g, r: rand.New(rand.NewPCG(seed, 1))}
}

// restrict lets the queries be made of the templates that contain a text.
func (d *draw) restrict(text string) {
	for _, typ := range valueTypes {
		for _, t := range d.templates[typ] {
			if strings.Contains(t, text) {
				d.only = append(d.only, t)
			}
		}
	}
}
