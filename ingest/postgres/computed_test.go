package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/generated"
	"github.com/skipprd/skipprd/wal/change"
)

// computeAgain has the source compute the columns of a table's copy that it does not send,
// and returns what the copy has and what was computed, by row.
func computeAgain(r *rig, name string) (want, got []string, err error) {
	r.Helper()
	b := r.backfill()
	t := r.table(name)
	s := newSchema(r, t)
	chunks, err := b.Plan(r.Context(), t)
	if err != nil {
		r.Fatal(err)
	}
	for _, c := range chunks {
		err := b.Read(r.Context(), t, s, c, 1, func(batch *change.Batch) error {
			defer batch.Release()
			columns, err := r.src.Compute(r.Context(), t.OID, s, blanked(s, batch.Record))
			if err != nil {
				return err
			}
			n := 0
			for i, f := range s.Fields {
				if !f.Unsent() {
					continue
				}
				for row := range int(batch.Rows()) {
					want = append(want, fmt.Sprintf("%s: %s", f.Name, text(batch.Record.Column(change.SystemColumns+i), row)))
					got = append(got, fmt.Sprintf("%s: %s", f.Name, text(columns[n], row)))
				}
				columns[n].Release()
				n++
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return want, got, nil
}

func text(a arrow.Array, row int) string {
	if a.IsNull(row) {
		return "null"
	}
	return a.ValueStr(row)
}

// blanked is a record without the values of the columns that are not sent.
func blanked(s *schema.Table, rec arrow.RecordBatch) arrow.RecordBatch {
	columns := slices.Clone(rec.Columns())
	for i, f := range s.Fields {
		if f.Unsent() {
			columns[change.SystemColumns+i] = array.MakeArrayOfNull(memory.DefaultAllocator, schema.ArrowType(f.Type), int(rec.NumRows()))
		}
	}
	return array.NewRecordBatch(rec.Schema(), columns, rec.NumRows())
}

// What the source computes again is what the row has, for columns and expressions of every
// kind.
func TestComputeMatrix(t *testing.T) {
	for _, c := range []struct{ name, columns, rows string }{
		{
			"numbers", "a int2, b int8, c real, d float8, e numeric(12,3), f numeric, " +
				"g int GENERATED ALWAYS AS (a * 2) STORED, h numeric(20,1) GENERATED ALWAYS AS (b / 3.0 + e) STORED, " +
				"i float8 GENERATED ALWAYS AS (c + d) STORED, j numeric GENERATED ALWAYS AS (f / 7) STORED",
			`(1, 2, 0.1, 0.1, 1.005, 123456789012345678901234567890.5), (-32768, -9223372036854775808, 'NaN', 'Infinity', -0.001, 'NaN'),
			 (NULL, NULL, NULL, NULL, NULL, NULL), (7, 9, 1.17549435e-38, 5e-324, 999999999.999, 0.000000000000000000001)`,
		},
		{
			"texts", `a text, b varchar(5), c char(4), d "char", e name, f bytea, ` +
				"g text GENERATED ALWAYS AS (upper(a) || b) STORED, h int GENERATED ALWAYS AS (octet_length(c) + length(b)) STORED, " +
				"i bool GENERATED ALWAYS AS (c = 'ab') STORED, j bytea GENERATED ALWAYS AS (f || '\\x00') STORED, k varchar(3) GENERATED ALWAYS AS (substr(a, 1, 3)) STORED, " +
				`l text GENERATED ALWAYS AS (d::text || e) STORED`,
			`(E'ä"b\\c,{}\n\t\'', 'ab', 'ab', 'x', 'n', '\xdeadbeef'), ('', '', '', '', '', ''), ('NULL', 'NULL', 'a  b', NULL, NULL, NULL)`,
		},
		{
			"times", "a date, b timestamp, c timestamptz, d time, e timetz, f interval, " +
				"g date GENERATED ALWAYS AS (a + 1) STORED, h timestamp GENERATED ALWAYS AS (b + f) STORED, i timestamp GENERATED ALWAYS AS (c AT TIME ZONE 'Asia/Tokyo') STORED, " +
				"j interval GENERATED ALWAYS AS (f * 1.5) STORED, k timestamp(0) GENERATED ALWAYS AS (b) STORED, l time GENERATED ALWAYS AS (d + interval '1 microsecond') STORED",
			`('0044-03-15 BC', '0044-03-15 12:00:00.000001 BC', '0001-01-01 00:00:00Z', '23:59:59.999998', '12:00:00+09', '1 mon -3 days 04:05:06.7'),
			 ('12026-01-02', '12026-01-02 03:04:05.6', '12026-01-02 03:04:05.123456+09', '24:00', '00:00:00-15:59', '-178 years'), (NULL, NULL, NULL, NULL, NULL, NULL)`,
		},
		{
			"exact text", "a jsonb, b inet, c mood, d int4range, e uuid, f bit(3), m money, x xml, p point, v tsvector, " +
				"g text GENERATED ALWAYS AS (a->>'x') STORED, h text GENERATED ALWAYS AS (host(b)) STORED, i mood GENERATED ALWAYS AS (CASE WHEN c = 'sad' THEN 'so, so' ELSE c END) STORED, " +
				"j int4range GENERATED ALWAYS AS (d * int4range(0, 10)) STORED, k tsvector GENERATED ALWAYS AS (to_tsvector('pg_catalog.english', a->>'x') || v) STORED, " +
				"l bool GENERATED ALWAYS AS (e = '00112233-4455-6677-8899-aabbccddeeff') STORED, n bit(5) GENERATED ALWAYS AS (f || b'01') STORED, o float8 GENERATED ALWAYS AS (p <-> point '(0,0)') STORED",
			`('{"x": "Running \"foxes\" jump"}', '10.0.0.1/8', 'sad', '[1,5)', '00112233-4455-6677-8899-aabbccddeeff', '101', '1.5', '<a/>', '(3,4)', 'a:1 b:2'),
			 ('[]', '::1', 'so, so', 'empty', NULL, '000', NULL, NULL, '(0,0)', '')`,
		},
		{
			"arrays", "a int[], b text[], c int[][], d box[], e mood[], f timestamptz[], " +
				"g int GENERATED ALWAYS AS (cardinality(a) + a[1]) STORED, h text[] GENERATED ALWAYS AS (b || 'x'::text) STORED, i int[] GENERATED ALWAYS AS (a || 7) STORED, " +
				"j int GENERATED ALWAYS AS (cardinality(c)) STORED, l mood GENERATED ALWAYS AS (e[1]) STORED, m timestamptz GENERATED ALWAYS AS (f[1]) STORED",
			`('{1,NULL,3}', '{"a,b","\"q\\\\",NULL,"NULL",""}', '{{1,2},{3,4}}', '{(1,1),(0,0)}', '{"so, so",NULL}', '{2026-01-02 03:04:05.000006+00}'),
			 ('{}', '{}', '{}', '{}', '{}', '{}'), (NULL, NULL, NULL, NULL, NULL, NULL)`,
		},
		{
			"of the user", `a amount, b s."T t", c pair, d names, "select" int, "A ""b""" text, e text COLLATE "C", ` +
				`g amount GENERATED ALWAYS AS (a + 1) STORED, h text GENERATED ALWAYS AS (s.f(b)) STORED, i int GENERATED ALWAYS AS ((c).x + "select") STORED, ` +
				`j text GENERATED ALWAYS AS (d[1] || "A ""b""") STORED, k bool GENERATED ALWAYS AS (e < 'b') STORED, l int GENERATED ALWAYS AS (42) STORED, ` +
				`m int GENERATED ALWAYS AS (s.half("select")) STORED`,
			`(1.5, 'x', '(1,"a,b")', '{n}', 3, 'q', 'B'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "CREATE TYPE mood AS ENUM ('sad', 'so, so'); CREATE SCHEMA s; CREATE DOMAIN amount AS numeric(9,2) CHECK (value > 0)",
				`CREATE DOMAIN s."T t" AS varchar(3); CREATE TYPE pair AS (x int, y text); CREATE DOMAIN names AS text[]`,
				`CREATE FUNCTION s.f(t s."T t") RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT 'f' || t $$`,
				`CREATE FUNCTION other(n int) RETURNS int IMMUTABLE LANGUAGE sql AS $$ SELECT n / 2 $$`,
				`CREATE FUNCTION s.half(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN other(n); END $$`,
				"CREATE TABLE t (id int PRIMARY KEY GENERATED ALWAYS AS IDENTITY, "+c.columns+")")
			names := strings.Split(r.one("SELECT string_agg(quote_ident(attname), '|' ORDER BY attnum) FROM pg_attribute "+
				"WHERE attrelid = 'public.t'::regclass AND attnum > 1 AND attgenerated = ''"), "|")
			r.exec("CREATE PUBLICATION skippr_" + r.name + " FOR ALL TABLES") // which does not send them
			r.exec("INSERT INTO t (" + strings.Join(names, ", ") + ") VALUES " + c.rows)
			r.begin()
			want, got, err := computeAgain(r, "t")
			if err != nil {
				t.Fatal(err)
			}
			if len(want) == 0 || !slices.Equal(want, got) {
				t.Errorf("computed\n%s\nwant\n%s\nnotes %v", strings.Join(got, "\n"), strings.Join(want, "\n"), r.table("t").Notes)
			}
			if unsent := strings.Count(c.columns, "GENERATED"); len(want)%unsent != 0 {
				t.Errorf("%d values of %d columns, notes %v", len(want), unsent, r.table("t").Notes)
			}
		})
	}
}

// one is the only value that a query gives.
func (r *rig) one(sql string) string {
	r.Helper()
	conn, err := r.src.dial(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	defer closeNow(conn.PgConn())
	row, err := oneRow(r.Context(), conn.PgConn(), sql)
	if err != nil {
		r.Fatal(err)
	}
	return row[0]
}

// Expressions are evaluated by the owner of their table, as in PostgreSQL's own maintenance
// commands, and nothing of that stays in the session.
func TestComputeAsOwner(t *testing.T) {
	r := newRig(t)
	reader := r.loginOnly()
	owner := "Own_" + r.name
	r.exec(`DROP ROLE IF EXISTS "`+owner+`"`, `CREATE ROLE "`+owner+`"`)
	r.Cleanup(func() { r.exec(`DROP OWNED BY "`+owner+`"`, `DROP ROLE "`+owner+`"`) })
	r.exec("CREATE FUNCTION who(n int) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN current_user; END $$",
		"CREATE FUNCTION shut(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN n; END $$",
		"CREATE TABLE t (id int PRIMARY KEY, g text GENERATED ALWAYS AS (who(id)) STORED)", "INSERT INTO t VALUES (1), (2)",
		"CREATE TABLE barred (id int PRIMARY KEY, g int GENERATED ALWAYS AS (shut(id)) STORED)", "REVOKE EXECUTE ON FUNCTION shut FROM PUBLIC",
		"CREATE PUBLICATION skippr_"+r.name+" FOR ALL TABLES", // which does not send them
		`ALTER TABLE t OWNER TO "`+owner+`"`, `ALTER TABLE barred OWNER TO "`+owner+`"`)
	r.begin()
	if _, got, err := computeAgain(r, "t"); err != nil || !slices.Equal(got, []string{"g: " + owner, "g: " + owner}) {
		t.Errorf("computed %v, %v", got, err)
	}
	if notes := strings.Join(r.table("barred").Notes, "; "); !strings.Contains(notes, "permission denied for function shut") {
		t.Errorf("a function that the owner may not call: %s", notes)
	}
	report := r.findings()
	fix := `GRANT EXECUTE ON FUNCTION public.shut(integer) TO "` + owner + `";`
	if !slices.ContainsFunc(report, func(f ingest.Finding) bool { return f.Fix == fix }) {
		t.Errorf("no finding says %s: %+v", fix, report)
	}

	oid, err := strconv.ParseUint(r.one("SELECT 'public.t'::regclass::oid"), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dsn string
		table     uint32
		want      string
	}{
		{"may act as the owner", r.dsn, uint32(oid), owner},
		{"may not", reader, uint32(oid), "Cdc_" + r.name},
		{"no such table", reader, 1, "Cdc_" + r.name},
		{"no such table, superuser", r.dsn, 1, "pg_read_all_settings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := r.openAs(c.dsn).dialComputing(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer closeNow(conn.PgConn())
			ask := func(sql string) (role string, err error) {
				err = generated.Session{Conn: conn.PgConn(), Table: c.table}.Query(t.Context(), sql, nil, func(row [][]byte) error {
					role = string(row[0])
					return nil
				})
				return role, err
			}
			before, err := oneRow(t.Context(), conn.PgConn(), "SELECT current_user")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ask("SELECT 1 / 0"); code(err) != "22012" {
				t.Errorf("error %v", err)
			}
			if _, err := ask("CREATE TEMP TABLE x ()"); code(err) != "25006" {
				t.Errorf("error %v", err)
			}
			if _, err := ask("SELECT set_config('role', 'none', false), set_config('search_path', 'nowhere', false)"); err != nil {
				t.Error(err)
			}
			if got, err := ask("SELECT current_user"); err != nil || got != c.want {
				t.Errorf("evaluated as %s, %v, want %s", got, err, c.want)
			}
			after, err := oneRow(t.Context(), conn.PgConn(), "SELECT current_user WHERE current_setting('search_path') NOT LIKE '%nowhere%'")
			if err != nil || after[0] != before[0] {
				t.Errorf("the session's role is %v, %v, was %v", after, err, before)
			}
		})
	}
}
