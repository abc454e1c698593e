package duckdb

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
)

// heavy are queries that each need more memory than the worker of TestHeavyQueriesFailNone
// has, and what they say.
var heavy = []struct{ sql, want string }{
	{"SELECT count(*)::VARCHAR FROM (SELECT row_number() OVER (ORDER BY md5(i::VARCHAR)) FROM range(600000) t(i))", "600000"},
	{"SELECT count(*)::VARCHAR FROM (SELECT md5(i::VARCHAR) AS k, count(*) FROM range(600000) t(i) GROUP BY 1)", "600000"},
	{
		"SELECT count(*)::VARCHAR FROM (SELECT md5(i::VARCHAR) AS k FROM range(400000) t(i)) a " +
			"JOIN (SELECT md5(i::VARCHAR) AS k FROM range(400000) t(i)) b USING (k)", "400000",
	},
	{"SELECT sum(length(k))::VARCHAR FROM (SELECT md5(i::VARCHAR) AS k FROM range(800000) t(i) ORDER BY 1 OFFSET 1)", "25599968"},
}

// TestHeavyQueriesFailNone: queries that need more memory than there is, all at once, all
// answer, and small ones beside them do not wait for them.
func TestHeavyQueriesFailNone(t *testing.T) {
	p := newTestPool(t, PoolConfig{
		Worker:     WorkerConfig{MemoryLimit: 72 << 20, TempDir: t.TempDir()},
		MaxQueries: 16, QueryMemory: 4 << 20, // more at once than there is memory for
	}, nil)
	var all sync.WaitGroup
	for range 3 {
		for _, h := range heavy {
			all.Go(func() {
				got, err := run(context.Background(), p, one(h.sql))
				if err != nil || got[0] != h.want {
					t.Errorf("%s: %v, %v", h.sql, got, err)
				}
			})
		}
	}
	for range 300 {
		if got, err := run(context.Background(), p, one("SELECT 'small'")); err != nil || got[0] != "small" {
			t.Errorf("a small query: %v, %v", got, err)
		}
	}
	all.Wait()
	t.Logf("%d queries ran again", p.Stats().Retries)
	if p.places.Held() != 0 {
		t.Errorf("%d places are held", p.places.Held())
	}
}

// TestTempLimitIsAnError: what queries spill has a bound, which the message names.
func TestTempLimitIsAnError(t *testing.T) {
	p := newTestPool(t, PoolConfig{Worker: WorkerConfig{MemoryLimit: 72 << 20, TempDir: t.TempDir(), TempLimit: 1 << 20}}, nil)
	_, err := run(context.Background(), p, one("SELECT sum(length(k))::VARCHAR FROM (SELECT md5(i::VARCHAR) AS k FROM range(3000000) t(i) ORDER BY 1 OFFSET 1)"))
	if !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "failed to offload data block") {
		t.Errorf("err = %v", err)
	}
	mustRun(t, p, one("SELECT 'ok'"))
}
