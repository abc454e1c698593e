package ingest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/change"
)

// TestPostgres copies and follows a real server under load, the tables with and
// without a key, while our process is killed again and again; then all rows are
// compared.
func TestPostgres(t *testing.T) {
	server := pgtest.Start(t)
	dsn := server.CreateDatabase(t)
	server.Exec(t, dsn,
		`CREATE TABLE acct (id int PRIMARY KEY, bal bigint NOT NULL, note text)`,
		`CREATE TABLE hist (acct int, delta int, note text)`,
		`INSERT INTO acct SELECT i, 1000, repeat('x', i % 300) FROM generate_series(1, 20000) i`,
		`INSERT INTO hist SELECT i, 0, 'before' FROM generate_series(1, 20000) i`)
	factory := func(ctx context.Context, c ingest.ResolvedConnection, p *catalog.Pipeline, d ingest.SourceDeps) (ingest.Source, error) {
		c.Kind, c.Options = "postgres", map[string]string{"DSN": dsn}
		named := p.Clone()
		named.Name = "ingest_test"
		named.Options["backfill_chunk_pages"] = "8"
		return postgres.New(ctx, c, named, d)
	}
	w := newWorldAs(t, func(w *world) { w.factory, w.disk.opaque = factory, true })
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	w.start()
	var writers sync.WaitGroup
	var killed atomic.Bool
	for n := range 4 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			if err := write(ctx, dsn, n, 400, &killed); err != nil {
				t.Errorf("writer %d: %v", n, err)
			}
		}()
	}
	for round := range 5 {
		w.killAfter(ctx, []killPoint{beforeDurable, beforePublish, beforeReturn}[round%3], 5+7*round)
	}
	killed.Store(true)
	writers.Wait()
	w.start()
	if _, err := w.supervisor.Sync(ctx, "shop", 0, func(ingest.PipelineStatus) {}); err != nil {
		t.Fatalf("%v; %s", err, w.describe())
	}
	for table, columns := range map[string]string{"acct": "id, bal, note", "hist": "acct, delta, note"} {
		w.same(table, w.fold(table, func(s catalog.Slice) *change.Batch { return w.disk.read(s.Ref) }),
			sourceRows(t, dsn, table, columns))
	}
	if _, err := w.supervisor.Drop(ctx, "shop", false); err != nil {
		t.Error(err)
	}
}

// killAfter kills the server at the n-th append from now, and boots it again.
func (w *world) killAfter(ctx context.Context, kill killPoint, n int) {
	died := w.disk.killAt(kill, n)
	select {
	case <-died:
	case <-ctx.Done():
		w.t.Fatalf("not killed: %s", w.describe())
	}
	w.stop()
	w.disk.revive()
	w.boot()
}

// write commits transactions that change both tables, now and then a key: so many, and on
// until enough is set.
func write(ctx context.Context, dsn string, writer, transactions int, enough *atomic.Bool) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for i := 0; i < transactions || !enough.Load(); i++ {
		id := (writer*7919+i*131)%20000 + 1
		sql := fmt.Sprintf(`BEGIN; UPDATE acct SET bal = bal - %[1]d WHERE id = %[2]d;
			INSERT INTO hist VALUES (%[2]d, -%[1]d, 'w%[3]d.%[4]d');`, i+1, id, writer, i)
		switch i % 10 {
		case 3:
			sql += fmt.Sprintf(`DELETE FROM acct WHERE id = %d;`, (id+writer+4)%20000+1)
		case 5:
			sql += fmt.Sprintf(`INSERT INTO acct VALUES (%d, 5, 'new');`, 1_000_000*(writer+1)+i)
		case 7:
			sql += fmt.Sprintf(`UPDATE acct SET id = id + 100000 WHERE id = %d;`, (id+writer+9000)%20000+1)
		}
		if _, err := conn.PgConn().Exec(ctx, sql+"COMMIT").ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

func sourceRows(t *testing.T, dsn, table, columns string) []string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `SELECT concat_ws('|', `+columns+`) FROM `+table)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	return got
}
