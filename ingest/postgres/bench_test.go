package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkBackfill reports rows per second of our own processor time, the server's
// not counted.
func BenchmarkBackfill(b *testing.B) {
	for name, create := range map[string]string{
		"accounts": `CREATE TABLE a AS SELECT i AS id, i % 10 AS bid, 0 AS abalance, ''::char(84) AS filler FROM generate_series(1, 500000) i`,
		"eight": `CREATE TABLE a AS SELECT i::bigint AS id, 'customer ' || i AS name, (i % 1000 / 7.0)::numeric(12,2) AS total, now() - i * interval '1 s' AS at,
		  i % 2 = 0 AS paid, 'a somewhat longer text about order ' || i AS note, i::float8 AS weight, current_date - i % 1000 AS day FROM generate_series(1, 500000) i`,
	} {
		b.Run(name, func(b *testing.B) { benchmarkBackfill(b, create) })
	}
}

func benchmarkBackfill(b *testing.B, create string) {
	s, tables, setup := benchSource(b, create, "ALTER TABLE a ADD PRIMARY KEY (id)", "VACUUM a")
	session, err := s.Backfill(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	chunks, err := session.Plan(b.Context(), tables[0])
	if err != nil {
		b.Fatal(err)
	}
	table, rows := newSchema(b, tables[0]), int64(0)
	b.ResetTimer()
	used := cpu()
	for range b.N {
		for _, c := range chunks {
			err := session.Read(b.Context(), tables[0], table, c, setup.Token, func(batch *change.Batch) error {
				rows += batch.Rows()
				batch.Release()
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(rows)/(cpu()-used).Seconds(), "rows/cpu-s")
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// benchSource sets up a source on a new database.
func benchSource(b *testing.B, statements ...string) (*Source, []ingest.SourceTable, ingest.SetupResult) {
	server := pgtest.Start(b)
	dsn := server.CreateDatabase(b)
	server.Exec(b, dsn, statements...)
	sel := catalog.TableSelection{AllTables: true}
	clock, ids := env.System()
	s, err := New(b.Context(), ingest.ResolvedConnection{Options: map[string]string{"DSN": dsn}}, &catalog.Pipeline{Name: "bench", Selection: sel},
		ingest.SourceDeps{Clock: clock, IDs: ids})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	tables, err := s.Discover(b.Context(), sel)
	if err != nil {
		b.Fatal(err)
	}
	setup, err := s.Setup(b.Context(), nil, tables)
	if err != nil {
		b.Fatal(err)
	}
	return s.(*Source), tables, setup
}

// BenchmarkStream streams inserts of eight columns from a server.
func BenchmarkStream(b *testing.B) {
	for _, perTxn := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(perTxn), func(b *testing.B) { benchmarkStream(b, perTxn) })
	}
}

func benchmarkStream(b *testing.B, perTxn int) {
	s, tables, setup := benchSource(b, `CREATE TABLE a (id bigint PRIMARY KEY, name text, total numeric(12,2), at timestamptz, paid bool, note text, weight float8, day date)`)
	const transactions = 300
	sql := fmt.Sprintf(`DO $$ BEGIN FOR t IN 1..%d LOOP
	  INSERT INTO a SELECT (t * %d + i)::bigint, 'customer ' || i, (i %% 1000 / 7.0)::numeric(12,2), now(), i %% 2 = 0,
	    'a somewhat longer text about order ' || i, i::float8, current_date FROM generate_series(1, %d) i;
	  COMMIT; END LOOP; END $$`, transactions*1000/perTxn, perTxn, perTxn)
	pgtest.Start(b).Exec(b, s.cfg.conn.ConnString(), sql)
	table := ingest.StreamTable{ID: 1, Source: tables[0], Schema: newSchema(b, tables[0])}
	b.ResetTimer()
	used, rows := cpu(), int64(0)
	for range b.N {
		ctx, cancel := context.WithCancel(b.Context())
		k := &countingSink{
			schema: table.Schema, builder: change.NewBuilder(memory.DefaultAllocator, 1, 1, table.Schema.Arrow()),
			enough: transactions * 1000, done: cancel,
		}
		err := s.Stream(ctx, setup.Start, []ingest.StreamTable{table}, k)
		if !errors.Is(err, context.Canceled) {
			b.Fatal(err)
		}
		rows += k.rows + int64(k.builder.Rows())
	}
	b.ReportMetric(float64(rows)/(cpu()-used).Seconds(), "changes/cpu-s")
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "changes/s")
}

// countingSink takes changes and lets go of them.
type countingSink struct {
	schema  *schema.Table
	builder *change.Builder
	rows    int64
	enough  int64
	done    func()
}

func (k *countingSink) Begin(int64, time.Time) error                    { return nil }
func (k *countingSink) Builder(change.TableID) (*change.Builder, error) { return k.builder, nil }
func (k *countingSink) Truncate(change.TableID) error                   { return nil }
func (k *countingSink) Abort() error                                    { return nil }
func (k *countingSink) Evolve(change.TableID, ingest.SchemaChange) (*schema.Table, error) {
	return k.schema, nil // it stays
}
func (k *countingSink) Idle(change.Position) error { return nil }
func (k *countingSink) StopTable(_ change.TableID, why *ingest.TableError) error {
	return fmt.Errorf("%s", why.Reason)
}

func (k *countingSink) Commit(change.Position) error {
	if k.builder.Rows() >= 1<<14 {
		k.rows += int64(k.builder.Rows())
		k.builder.Batch().Release()
	}
	if k.enough > 0 && k.rows+int64(k.builder.Rows()) >= k.enough {
		k.done()
	}
	return nil
}

// message builds messages of the output plugin.
type message []byte

func (m message) u8(v byte) message    { return append(m, v) }
func (m message) u16(v uint16) message { return binary.BigEndian.AppendUint16(m, v) }
func (m message) u32(v uint32) message { return binary.BigEndian.AppendUint32(m, v) }
func (m message) u64(v uint64) message { return binary.BigEndian.AppendUint64(m, v) }
func (m message) str(v string) message { return append(append(m, v...), 0) }

func (m message) tuple(values ...string) message {
	m = m.u16(uint16(len(values)))
	for _, v := range values {
		m = append(m.u8('t').u32(uint32(len(v))), v...)
	}
	return m
}

// benchColumns are the columns of the table whose changes are decoded.
var benchColumns = []struct {
	name   string
	oid    uint32
	typmod int32
	value  string
}{
	{"id", 20, -1, "123456789"},
	{"name", 25, -1, "customer 123456789"},
	{"total", 1700, (12<<16 | 2) + 4, "12345.67"},
	{"at", 1184, -1, "2026-01-02 03:04:05.123456+00"},
	{"paid", 16, -1, "t"},
	{"note", 25, -1, "a somewhat longer text about order 123456789"},
	{"weight", 701, -1, "3.25"},
	{"day", 1082, -1, "2026-01-02"},
}

func benchTable(t testing.TB) (ingest.StreamTable, message) {
	var st ingest.SourceTable
	relation := message{}.u8(pgoutput.KindRelation).u32(1).str("public").str("a").u8('d').u16(uint16(len(benchColumns)))
	for i, c := range benchColumns {
		typ, _ := schema.FromPostgres(c.oid, c.typmod, 0)
		st.Columns = append(st.Columns, ingest.SourceColumn{Name: c.name, OID: c.oid, TypMod: c.typmod, Type: typ})
		key := byte(0)
		if i == 0 {
			key = 1
		}
		relation = relation.u8(key).str(c.name).u32(c.oid).u32(uint32(c.typmod))
	}
	st.OID, st.Key = 1, []string{"id"}
	return ingest.StreamTable{ID: 1, Source: st, Schema: newSchema(t, st)}, relation
}

// BenchmarkStreamDecode decodes changes of eight columns, without a server.
func BenchmarkStreamDecode(b *testing.B) {
	for _, perTxn := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(perTxn), func(b *testing.B) {
			table, relation := benchTable(b)
			k := &countingSink{builder: change.NewBuilder(memory.DefaultAllocator, 1, 1, table.Schema.Arrow())}
			a, err := newApplier(newSource(config{}, ingest.SourceDeps{}), []ingest.StreamTable{table}, 0, k)
			if err != nil {
				b.Fatal(err)
			}
			values := make([]string, len(benchColumns))
			for i, c := range benchColumns {
				values[i] = c.value
			}
			begin := message{}.u8(pgoutput.KindBegin).u64(100).u64(0).u32(1)
			update := message{}.u8(pgoutput.KindUpdate).u32(1).u8('N').tuple(values...)
			commit := message{}.u8(pgoutput.KindCommit).u8(0).u64(100).u64(120).u64(0)
			if err := a.change(begin); err != nil {
				b.Fatal(err)
			}
			described, err := pgoutput.ParseRelation(relation)
			if err != nil {
				b.Fatal(err)
			}
			if err := a.tables[1].bind(described); err != nil { // there is no catalog to ask
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				if i%perTxn == 0 {
					_ = a.change(commit)
					_ = a.change(begin)
				}
				if err := a.change(update); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
		})
	}
}
