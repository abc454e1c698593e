package pgwire_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/wal/env"
)

// bubble is a server whose clients are at the other ends of pipes without a buffer, in a
// bubble: time passes when everybody waits.
type bubble struct {
	t      *testing.T
	toy    *toyEngine
	server *pgwire.Server
	pipes  *pipeListener
	served chan error
}

func newBubble(t *testing.T, config pgwire.Config) *bubble {
	clock, _ := env.System()
	config.AuthRemote = pgwire.AuthTrust
	b := &bubble{
		t: t, toy: newToy(), served: make(chan error, 1), pipes: newPipeListener(),
	}
	var err error
	b.server, err = pgwire.New(config, pgwire.Deps{
		Engine: b.toy, Clock: clock, IDs: env.NewFake(time.Now(), 1), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { b.served <- b.server.Serve(b.pipes) }()
	return b
}

// dial connects a client.
func (b *bubble) dial() *rawClient {
	client, server := net.Pipe()
	b.pipes.conns <- server
	_ = client.SetDeadline(time.Now().Add(3 * time.Hour)) // the bubble does not end while peers are watched
	b.t.Cleanup(func() { _ = client.Close() })
	return &rawClient{t: b.t, conn: client, f: newFrontend(client)}
}

func (b *bubble) login() *rawClient {
	c := b.dial()
	c.start("lake")
	return c
}

// close ends the server. Whatever goes on then keeps the bubble from ending.
func (b *bubble) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = b.server.Shutdown(ctx)
	if err := <-b.served; err != nil {
		b.t.Errorf("serve: %v", err)
	}
}

// expect reads up to a message of a kind.
func (c *rawClient) expect(kinds, want string) {
	c.t.Helper()
	if got := c.until(kinds); got != want {
		c.t.Fatalf("got %s, want %s", got, want)
	}
}

// after checks how much time has passed.
func (b *bubble) after(began time.Time, want time.Duration) {
	b.t.Helper()
	if got := time.Since(began); got != want {
		b.t.Fatalf("after %v, want %v", got, want)
	}
}

// flooding has a client ask for rows without end, which it does not read.
func (b *bubble) flooding() *rawClient {
	b.t.Helper()
	c := b.login()
	c.send(query("flood"))
	<-b.toy.running
	synctest.Wait() // the server is stuck in its write
	return c
}

func TestBubble(t *testing.T) {
	for _, test := range []struct {
		name   string
		config pgwire.Config
		run    func(*bubble)
	}{
		{"statement timeout", pgwire.Config{}, func(b *bubble) {
			c, began := b.login(), time.Now()
			c.send(query("limited 5s"))
			c.expect("Z", "E:57014 Z:I")
			b.after(began, 5*time.Second)
			c.send(query("select 1"))
			c.expect("Z", "T:?column?/-1/0 D[1] C:SELECT_1 Z:I")
		}},
		{"statement timeout in a transaction, then its idle timeout", pgwire.Config{IdleTxTimeout: time.Minute}, func(b *bubble) {
			c := b.login()
			c.send(query("begin"))
			c.expect("Z", "C:BEGIN Z:T")
			c.send(query("limited 5s"))
			c.expect("Z", "E:57014 Z:E")
			began := time.Now()
			c.expect("", "F:25P03 EOF")
			b.after(began, time.Minute)
		}},
		{"a message at the last moment keeps an idle session", pgwire.Config{IdleTimeout: time.Minute}, func(b *bubble) {
			c := b.login()
			time.Sleep(time.Minute - time.Nanosecond)
			c.send(query("select 1"))
			c.expect("Z", "T:?column?/-1/0 D[1] C:SELECT_1 Z:I")
			began := time.Now()
			c.expect("", "F:57P05 EOF")
			b.after(began, time.Minute)
		}},
		{"a long statement is not idle", pgwire.Config{IdleTimeout: time.Minute, IdleTxTimeout: time.Minute}, func(b *bubble) {
			c, began := b.login(), time.Now()
			c.send(query("limited 1h"))
			c.expect("Z", "E:57014 Z:I")
			b.after(began, time.Hour)
		}},
		{"cancel between two statements hits neither", pgwire.Config{}, func(b *bubble) {
			c := b.login()
			c.send(query("select 1"))
			c.expect("Z", "T:?column?/-1/0 D[1] C:SELECT_1 Z:I")
			if !b.server.Cancel(c.pid) {
				b.t.Fatal("no such session")
			}
			c.send(query("select 2"))
			c.expect("Z", "T:?column?/-1/0 D[2] C:SELECT_1 Z:I")
		}},
		{"cancel between two fetches, and during the third", pgwire.Config{}, func(b *bubble) {
			c := b.login()
			c.send(query("begin"))
			c.expect("Z", "C:BEGIN Z:T")
			c.send(parse("", "rows 3"), bind("", ""), flush)
			c.expect("B", "ParseComplete BindComplete")
			c.send(execute("", 1), flush)
			c.expect("P", "D[0,row 0] PortalSuspended")
			b.server.Cancel(c.pid)
			synctest.Wait()
			c.send(execute("", 1), flush)
			c.expect("P", "D[1,row 1] PortalSuspended")
			c.send(parse("s", "sleep"), bind("p", "s"), execute("p", 0), flush)
			<-b.toy.running
			b.server.Cancel(c.pid)
			c.expect("E", "ParseComplete BindComplete E:57014")
			c.send(&pgproto3.Sync{})
			c.expect("Z", "Z:E")
		}},
		{"a slow reader holds up the rows, not the session", pgwire.Config{}, func(b *bubble) {
			c := b.flooding()
			made := b.toy.flooded.Load()
			time.Sleep(time.Hour)
			synctest.Wait()
			if now := b.toy.flooded.Load(); now != made || made > 16 {
				b.t.Fatalf("%d rows were made for who does not read, then %d", made, now)
			}
			for range 50 {
				if _, err := c.f.Receive(); err != nil {
					b.t.Fatal(err)
				}
			}
			synctest.Wait()
			if b.toy.flooded.Load() <= made {
				b.t.Fatal("no rows for who reads again")
			}
		}},
		{"cancel while the client does not read, which then reads on", pgwire.Config{}, func(b *bubble) {
			c := b.flooding()
			b.server.Cancel(b.server.Sessions()[0].PID)
			time.Sleep(time.Hour)
			got := c.until("Z")
			if rows := strings.Count(got, "D["); !strings.HasSuffix(got, "E:57014 Z:I") || rows > 16 {
				b.t.Fatalf("%d rows, then %s", rows, got[max(0, len(got)-20):])
			}
		}},
		{"terminated while its client does not read", pgwire.Config{}, func(b *bubble) {
			b.flooding()
			began := time.Now()
			b.server.Terminate(b.server.Sessions()[0].PID)
			if err := <-b.toy.canceled; err == nil {
				b.t.Fatal("the statement has ended well")
			}
			if waited := time.Since(began); waited > 2*time.Second {
				b.t.Fatalf("it took %v", waited)
			}
		}},
		{"the client vanishes under rows", pgwire.Config{}, func(b *bubble) {
			c := b.flooding()
			_ = c.conn.Close()
			if err := <-b.toy.canceled; err == nil {
				b.t.Fatal("the statement has ended well")
			}
			synctest.Wait()
			if left := b.server.Sessions(); len(left) > 0 {
				b.t.Fatalf("sessions %v are left", left)
			}
		}},
		{"the client vanishes in the midst of COPY", pgwire.Config{}, func(b *bubble) {
			c := b.login()
			c.send(query("copyin"))
			c.expect("C", "CopyInResponse")
			<-b.toy.running
			c.raw([]byte{'d', 0, 0, 0, 9, '1', '\n', '2'}) // of five bytes three
			time.Sleep(time.Hour)                          // it has all the time
			_ = c.conn.Close()
			if err := <-b.toy.canceled; err == nil {
				b.t.Fatal("COPY has ended well")
			}
			synctest.Wait()
			if left := b.server.Sessions(); len(left) > 0 || len(b.toy.copied) > 0 {
				b.t.Fatalf("sessions %v are left, %q copied", left, b.toy.copied)
			}
		}},
		{"a start that stays half", pgwire.Config{StartupTimeout: 30 * time.Second}, func(b *bubble) {
			c, began := b.dial(), time.Now()
			c.raw([]byte{0, 0, 0, 20, 0})
			c.expect("", "EOF")
			b.after(began, 30*time.Second)
		}},
		{"shutdown under a statement and a client that does not read", pgwire.Config{}, func(b *bubble) {
			c := b.login()
			c.send(query("sleep"))
			<-b.toy.running
			b.flooding()
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- b.server.Shutdown(ctx) }()
			time.Sleep(9 * time.Second)
			if len(b.toy.canceled) > 0 {
				b.t.Fatal("a statement was canceled early")
			}
			if got := c.until(""); !strings.HasPrefix(got, "F:57P01") {
				b.t.Fatalf("canceled: %s", got)
			}
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				b.t.Fatalf("shutdown: %v", err)
			}
			if took := time.Since(began); took > 11*time.Second {
				b.t.Fatalf("it took %v", took)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, test.config)
				defer b.close()
				test.run(b)
			})
		})
	}
}
