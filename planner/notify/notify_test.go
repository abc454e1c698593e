package notify_test

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/notify"
)

// What a transaction notifies of and listens to happens at its commit, and what it rolled
// back does not; equal notifications of one transaction are one.
func TestTransaction(t *testing.T) {
	hub := notify.New()
	woken := 0
	a := hub.Session(1, func() { woken++ })
	b := hub.Session(2, func() {})
	a.OnCommit("one", true)
	if a.Listens() {
		t.Error("listens before the commit")
	}
	a.End(true)
	send := func(channel, payload string) {
		t.Helper()
		if err := b.Notify(channel, payload); err != nil {
			t.Fatal(err)
		}
	}
	send("one", "x")
	m := b.Mark()
	send("one", "gone")
	b.RollbackTo(m)
	send("one", "x")
	send("other", "x")
	send("one", "y")
	b.End(true)
	send("one", "lost")
	b.End(false)
	got := a.Take()
	if woken != 1 || len(got) != 2 || got[0] != (notify.Notification{Channel: "one", Payload: "x", PID: 2}) || got[1].Payload != "y" {
		t.Errorf("woken %d times for %v", woken, got)
	}
	send("one", "x")
	b.End(true)
	a.OnCommit("", false)
	a.End(true)
	if left := a.Take(); len(left) > 0 || a.Listens() {
		t.Errorf("still heard %v", left)
	}
}

// A session that does not read bounds what others can send it.
func TestFull(t *testing.T) {
	hub := notify.New()
	a, b := hub.Session(1, func() {}), hub.Session(2, func() {})
	a.Listen("one")
	payload := strings.Repeat("x", 7000)
	for i := range 10000 {
		if err := b.Notify("one", payload); err != nil {
			t.Fatal(err)
		}
		if err := b.Prepare(); err != nil {
			if e, ok := pgerr.As(err); !ok || e.Code != "54000" || i < 1000 {
				t.Errorf("after %d: %v", i, err)
			}
			b.End(false)
			if a.Take(); b.Notify("one", payload) != nil || b.Prepare() != nil {
				t.Error("there is room again")
			}
			return
		}
		b.End(true)
	}
	t.Error("the queue has no end")
}
