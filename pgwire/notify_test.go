package pgwire_test

import (
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/pgwire"
)

// A session that idles tells its client at once what has come; one that works does when it
// is done, and nothing that the client sends meanwhile is lost or cut short.
func TestNotifications(t *testing.T) {
	toy := newToy()
	_, addr := startServer(t, toy, pgwire.Config{})
	c := login(t, addr)
	toy.notify("idle")
	if m, err := c.f.Receive(); err != nil {
		t.Fatal(err)
	} else if n, ok := m.(*pgproto3.NotificationResponse); !ok || n.Payload != "idle" {
		t.Fatalf("received %T, %v", m, m)
	}
	const total = 2000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range total {
			toy.notify(strconv.Itoa(i))
		}
	}()
	heard := 0
	for round := 0; heard < total; round++ {
		c.send(query("copyin"), &pgproto3.CopyData{Data: []byte("1\n")}, &pgproto3.CopyData{Data: []byte("2\n")}, &pgproto3.CopyDone{}, query("select 1"))
		rows := 0
		for ready := 0; ready < 2; {
			m, err := c.f.Receive()
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			switch m := m.(type) {
			case *pgproto3.NotificationResponse:
				if m.Payload != strconv.Itoa(heard) {
					t.Fatalf("heard %s as number %d", m.Payload, heard)
				}
				heard++
			case *pgproto3.DataRow:
				rows++
			case *pgproto3.ErrorResponse:
				t.Fatalf("round %d: %s", round, m.Message)
			case *pgproto3.ReadyForQuery:
				ready++
			}
		}
		<-toy.running // of "copyin"
		if rows != 1 {
			t.Fatalf("round %d: %d rows", round, rows)
		}
	}
	<-done
}
