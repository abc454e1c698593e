package pgtest

import (
	"strconv"
	"testing"
)

// A test has a server that no other has, for as long as it asks for it, and what one gave
// back is another's.
func TestPool(t *testing.T) {
	made := 0
	p := newPool(func() *Server { made++; return &Server{Host: strconv.Itoa(made)} }, false)
	a, b := p.take("a"), p.take("b")
	if again := p.take("a"); a == b || again != a {
		t.Fatalf("a has %s and %s, b has %s", a.Host, again.Host, b.Host)
	}
	p.giveBack("a")
	if c := p.take("c"); c == a || made != 3 {
		t.Fatalf("c has %s, which a has still; %d were made", c.Host, made)
	}
	p.giveBack("a")
	if d := p.take("d"); d != a || made != 3 {
		t.Fatalf("d has %s, free was %s; %d were made", d.Host, a.Host, made)
	}
}

// Where there is only one, tests wait for it.
func TestPoolOfOne(t *testing.T) {
	only := &Server{}
	p := newPool(func() *Server { return only }, true)
	p.take("a")
	done := make(chan *Server)
	go func() { done <- p.take("b") }()
	p.giveBack("a")
	if s := <-done; s != only {
		t.Error("another server")
	}
}
