package pgwire_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/pgwire"
)

func BenchmarkRoundTrip(b *testing.B) {
	_, addr := startServer(b, newToy(), pgwire.Config{})
	ctx := context.Background()
	for name, mode := range map[string]pgx.QueryExecMode{
		"prepared": pgx.QueryExecModeCacheStatement, "simple": pgx.QueryExecModeSimpleProtocol,
	} {
		b.Run(name, func(b *testing.B) {
			c, err := pgx.Connect(ctx, "postgres://postgres@"+addr+"/lake?sslmode=disable")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close(ctx) }()
			b.ReportAllocs()
			for b.Loop() {
				var s string
				if err := c.QueryRow(ctx, "select 1", mode).Scan(&s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRows is the way of encoded rows through a session: no work and no
// allocation for a row.
func BenchmarkRows(b *testing.B) {
	_, addr := startServer(b, newToy(), pgwire.Config{})
	c := login(b, addr)
	c.send(query("flood"))
	buf := make([]byte, 1<<20)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.ReadFull(c.conn, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// Sessions that idle must cost little: their buffers are small until they are used.
func TestIdleSessionMemory(t *testing.T) {
	l := newPipeListener()
	startOn(t, newToy(), pgwire.Config{ConnectionsMax: 1000}, l)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	before := heap()
	const sessions = 300
	for range sessions {
		client, server := net.Pipe()
		t.Cleanup(func() { _ = client.Close() })
		l.conns <- server
		c := &rawClient{t: t, conn: client, f: newFrontend(client)}
		c.start("lake")
	}
	if per := (heap() - before) / sessions; per > 64<<10 {
		t.Errorf("%d KiB for an idle session and its client", per>>10)
	}
}
