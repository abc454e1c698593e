package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	bykey "github.com/skipprd/skipprd/ingest/fill"
	"github.com/skipprd/skipprd/wal/change"
)

// A large value that an update leaves as it is is not sent: the cell says so, and whether
// the row has another key now. Small ones, and all with the identity FULL, are.
func TestStreamLeavesOut(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (v text, id int PRIMARY KEY, n int, w text)",
		"ALTER TABLE a ALTER v SET STORAGE EXTERNAL, ALTER w SET STORAGE EXTERNAL",
		"INSERT INTO a VALUES (repeat('x', 20000), 1, 1, repeat('y', 20000)), ('small', 2, 1, NULL)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("UPDATE a SET n = 2", "UPDATE a SET id = id + 10, w = 'now'", "UPDATE a SET v = 'none' WHERE id = 11",
		"UPDATE a SET v = repeat('z', 3000) WHERE id = 11", "ALTER TABLE a REPLICA IDENTITY FULL", "UPDATE a SET n = 3 WHERE id = 11")
	large := strings.Repeat("z", 3000)
	k.expect("a update ~|1|2|~", "a update small|2|2|-",
		"a delete -|1|-|-", "a insert ^|11|2|now", "a delete -|2|-|-", "a insert small|12|2|now",
		"a update none|11|2|now", "a update "+large+"|11|2|now", "a update "+large+"|11|3|now")
}

// What is fetched by key is what the copy reads, for keys and values of every kind, also
// when the rows are gone and the table has another name by then.
func TestFetch(t *testing.T) {
	for _, c := range []struct{ name, columns, key, rows string }{
		{"int", "k int, v text", "k", "(1, 'a'), (-5, NULL), (2147483647, 'c')"},
		{"text", "k text, v jsonb", "k", `('', '{}'), ('a"b\\c,{}', '[1]'), (E'\n\t é', 'null'), ('NULL', NULL)`},
		{"several", "a bigint, v int[], b uuid, c bool", "c, b, a", "(1, '{1,NULL}', '00112233-4455-6677-8899-aabbccddeeff', true), (-9, '{}', '00112233-4455-6677-8899-aabbccddeeff', false)"},
		{"times", "a timestamptz, b timestamp, c date, d time, v bytea", "a, b, c, d", `('0044-03-15 12:00:00.000001Z BC', '12026-01-02 03:04:05', '0001-01-01 BC', '24:00', '\x00ff'), ('2026-01-02 03:04:05.123456+09', '1969-12-31 23:59:59.9', '2026-02-03', '00:00:00.000001', NULL)`},
		{"numbers", "a numeric(20,4), b float8, c real, d numeric, e bytea, v varchar(7)", "a, b, c, d, e", `(-0.0001, 0.1, -1.5e10, 123456789012345678901234567890.5, '\xdead', 'x'), (1, 'Infinity', 'NaN', 0, '', 'y')`},
		{"exact text", "a inet, b char(4), c mood, d bit(3), v interval", "a, b, c, d", "('10.0.0.1/8', 'ab', 'sad', '101', '1 mon'), ('::1', '', 'so, so', '000', NULL)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "CREATE TYPE mood AS ENUM ('sad', 'so, so')",
				fmt.Sprintf("CREATE TABLE a (%s, PRIMARY KEY (%s)); INSERT INTO a VALUES %s", c.columns, c.key, c.rows))
			r.begin()
			b, copies := r.backfill(), r.backfill()
			defer func() { _ = b.Close() }() // it is read
			table := r.table("a")
			s := newSchema(r, table)
			var all []*change.Batch
			chunks, err := copies.Plan(r.Context(), table)
			if err != nil {
				r.Fatal(err)
			}
			for _, chunk := range chunks {
				if err := copies.Read(r.Context(), table, s, chunk, 1, func(b *change.Batch) error {
					all = append(all, b)
					return nil
				}); err != nil {
					r.Fatal(err)
				}
			}
			_ = copies.Close() // it holds a lock
			r.exec("SET lock_timeout = '10s'", "ALTER TABLE a RENAME TO other", "UPDATE other SET v = NULL", "DELETE FROM other")
			var fields []int32
			for _, f := range s.Fields {
				if !slices.Contains(s.Key, f.ID) {
					fields = append(fields, f.ID)
				}
			}
			var want, got []string
			for _, batch := range all {
				var columns []arrow.Array
				var names []arrow.Field
				for _, id := range append(slices.Clone(s.Key), fields...) {
					columns = append(columns, batch.Record.Column(change.SystemColumns+s.Index(id)))
					names = append(names, arrow.Field{Name: bykey.FieldName(id), Type: columns[len(columns)-1].DataType(), Nullable: true})
				}
				rec := array.NewRecordBatch(arrow.NewSchema(names, nil), columns, batch.Rows())
				want = append(want, lines(rec)...)
				keys := rec.Columns()[:len(s.Key)]
				q := &bykey.Query{Schema: s, Fields: fields, Keys: array.NewRecordBatch(arrow.NewSchema(names[:len(s.Key)], nil), keys, batch.Rows())}
				err := b.(*backfill).Fetch(r.Context(), table, q, func(rec arrow.RecordBatch) error {
					got = append(got, lines(rec)...)
					return nil
				})
				if err != nil {
					r.Fatal(err)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) || len(want) < 2 {
				t.Errorf("fetched\n%s\ncopied\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// lines are a record's rows as text.
func lines(rec arrow.RecordBatch) []string {
	var out []string
	for i := range int(rec.NumRows()) {
		var row []string
		for c, column := range rec.Columns() {
			row = append(row, rec.ColumnName(c)+"="+column.ValueStr(i))
		}
		out = append(out, strings.Join(row, " "))
	}
	return out
}

// What is not as it was is not found: the column has another type or name, or is gone.
func TestFetchFindsNothing(t *testing.T) {
	for _, ddl := range []string{"ALTER TABLE a ALTER v TYPE int USING 1", "ALTER TABLE a DROP v", "ALTER TABLE a RENAME v TO w", "TRUNCATE a", "DROP TABLE a"} {
		r := newRig(t, "CREATE TABLE a (k int PRIMARY KEY, v text); INSERT INTO a VALUES (1, 'x')")
		r.begin()
		b := r.backfill()
		table := r.table("a")
		s := newSchema(r, table)
		r.exec("SET lock_timeout = '10s'", ddl)
		found := 0
		err := b.(*backfill).Fetch(r.Context(), table, queryOf(t, s, 1), func(rec arrow.RecordBatch) error {
			found += int(rec.NumRows())
			return nil
		})
		if err != nil || found > 0 {
			t.Errorf("%s: %d rows, error %v", ddl, found, err)
		}
		_ = b.Close() // it is read
	}
}

// queryOf asks for the column v of the row with an integer key.
func queryOf(t *testing.T, s *schema.Table, key int32) *bykey.Query {
	t.Helper()
	b := array.NewInt32Builder(memory.DefaultAllocator)
	defer b.Release()
	b.Append(key)
	column := b.NewArray()
	defer column.Release()
	v, ok := s.FieldByName("v")
	if !ok {
		t.Fatal("no column v")
	}
	return &bykey.Query{
		Schema: s, Fields: []int32{v.ID},
		Keys: array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int32}}, nil), []arrow.Array{column}, 1),
	}
}
