package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/skipprd/skipprd/lake/duckdb/admission"
)

// TestIdleStreamsLoseTheirPlaces: readers that ask for nothing, as open cursors and
// slow clients do, keep nobody waiting, and go on where they were.
func TestIdleStreamsLoseTheirPlaces(t *testing.T) {
	p := newTestPool(t, PoolConfig{InProcess: true, MaxQueries: 2}, nil)
	ctx := context.Background()
	const rows = 300_000
	var cursors []*Stream
	for range 5 {
		s, err := p.Query(ctx, one(fmt.Sprintf("SELECT i::VARCHAR FROM range(%d) t(i)", rows)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		cursors = append(cursors, s)
	}
	mustRun(t, p, one("SELECT 'a query between'"))
	for i, s := range cursors {
		n := 0
		for {
			f, err := s.Next(ctx)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("cursor %d: %v", i, err)
			}
			n += f.Rows
		}
		if n != rows {
			t.Errorf("cursor %d has %d rows", i, n)
		}
		s.Close()
	}
	if n := p.places.Held(); n != 0 || p.Stats().Active != 0 {
		t.Errorf("%d places are taken after all queries, %+v", n, p.Stats())
	}
}

// TestReaderWithoutPlaceWaits: a stream that lost its place waits for another one in
// Next, which can be canceled.
func TestReaderWithoutPlaceWaits(t *testing.T) {
	p := newTestPool(t, PoolConfig{InProcess: true, MaxQueries: 1}, nil)
	cursor, err := p.Query(context.Background(), one("SELECT i::VARCHAR FROM range(3000000) t(i)"))
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	busy := &admission.Seat{}
	if err := p.places.Enter(context.Background(), busy); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	for err == nil {
		_, err = cursor.Next(ctx) // the first frame is there already
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
	p.places.Leave(busy)
	if _, err := cursor.Next(context.Background()); err != nil {
		t.Errorf("with a place again: %v", err)
	}
	cursor.Close()
	if n := p.places.Held(); n != 0 {
		t.Errorf("%d places are taken", n)
	}
}
