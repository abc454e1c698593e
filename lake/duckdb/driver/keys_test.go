package driver

import (
	"context"
	"fmt"
	"math"
	"testing"
)

// TestKeySet asks for members and strangers near them, at both ends of the range and
// in sets of every size around the powers of two.
func TestKeySet(t *testing.T) {
	_, conn := open(t)
	for _, keys := range [][]int64{
		nil,
		{0},
		{math.MinInt64},
		{math.MinInt64, math.MaxInt64, -1, 0, 1, 1},
		multiples(31, 3), multiples(32, 3), multiples(33, 3), multiples(100_000, 2), multiples(1000, 1<<40), multiples(500, 512),
	} {
		set, err := NewKeySet(keys)
		if err != nil {
			t.Fatal(err)
		}
		members := map[int64]bool{}
		for _, k := range keys {
			members[k] = true
		}
		for _, probe := range []int64{math.MinInt64, math.MinInt64 + 1, -2, -1, 0, 1, 2, 3, 90, 91, 92, 93, 96, 99, math.MaxInt64} {
			sql := fmt.Sprintf("SELECT NOT %s FROM (VALUES ('%d'::BIGINT)) t(k)", set.Lacks("k"), probe)
			if got := oneBool(t, conn, sql); got != members[probe] {
				t.Errorf("%d keys: %d is a member: %v", len(keys), probe, got)
			}
		}
		sql := fmt.Sprintf("SELECT count(*) = %d FROM range(-10, 300000) t(k) WHERE NOT %s", countIn(members, -10, 300_000), set.Lacks("k"))
		if !oneBool(t, conn, sql) {
			t.Errorf("%d keys: wrong count in range", len(keys))
		}
		set.Close()
	}
	if _, err := conn.Query(context.Background(), "SELECT skippr_stranger(99999::UBIGINT, k) FROM range(3) t(k)"); err == nil {
		t.Error("a set that does not exist was asked")
	}
}

func multiples(n int, of int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i) * of
	}
	return out
}

func countIn(members map[int64]bool, lo, hi int64) int {
	n := 0
	for k := range members {
		if k >= lo && k < hi {
			n++
		}
	}
	return n
}

func oneBool(t *testing.T, c *Conn, sql string) bool {
	t.Helper()
	s, err := c.Query(context.Background(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer s.Close()
	chunk, err := s.Next()
	if err != nil || chunk == nil || chunk.Rows != 1 {
		t.Fatalf("%s: %v, %v", sql, chunk, err)
	}
	return *(*bool)(chunk.Columns[0].Data)
}
