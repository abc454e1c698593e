package death

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Link is a TCP proxy whose connections can be cut, reset, frozen and slowed down. Safe
// for concurrent use.
type Link struct {
	// Port is where the far side is reached through the link.
	Port int

	to       string
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	pairs map[*pair]bool
	down  bool          // new connections are refused
	delay time.Duration // of each piece of data
}

// pair is one connection through the link.
type pair struct {
	near, far net.Conn
	frozen    chan struct{} // closed when nothing passes any more, silently
	freeze    sync.Once
	once      sync.Once
}

// NewLink leads to an address until the test ends.
func NewLink(t testing.TB, to string) *Link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	link := &Link{Port: l.Addr().(*net.TCPAddr).Port, to: to, listener: l, pairs: map[*pair]bool{}}
	link.wg.Go(link.accept)
	t.Cleanup(func() {
		_ = l.Close() // ends accept
		link.Cut(false)
		link.wg.Wait()
	})
	return link
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.mu.Lock()
		down := l.down
		l.mu.Unlock()
		if down {
			_ = near.Close() // as if nobody listened
			continue
		}
		far, err := net.Dial("tcp", l.to)
		if err != nil {
			_ = near.Close() // nobody listens there
			continue
		}
		p := &pair{near: near, far: far, frozen: make(chan struct{})}
		l.mu.Lock()
		l.pairs[p] = true
		l.mu.Unlock()
		l.wg.Go(func() { l.pump(p, near, far) })
		l.wg.Go(func() { l.pump(p, far, near) })
	}
}

// pump carries one direction until either side closes.
func (l *Link) pump(p *pair, from, to net.Conn) {
	defer func() {
		select {
		case <-p.frozen: // the other side hears nothing, not even the end
			return
		default:
		}
		l.end(p, false)
	}()
	b := make([]byte, 16<<10)
	for {
		n, err := from.Read(b)
		l.mu.Lock()
		delay := l.delay
		l.mu.Unlock()
		if delay > 0 {
			time.Sleep(delay)
		}
		select {
		case <-p.frozen:
			_, _ = io.Copy(io.Discard, from) // taken, and never delivered
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// end closes a pair, with a reset if asked.
func (l *Link) end(p *pair, reset bool) {
	p.once.Do(func() {
		for _, c := range []net.Conn{p.near, p.far} {
			if reset {
				_ = c.(*net.TCPConn).SetLinger(0) // a wish
			}
			_ = c.Close() // what is under way is lost
		}
		l.mu.Lock()
		delete(l.pairs, p)
		l.mu.Unlock()
	})
}

func (l *Link) all() []*pair {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*pair
	for p := range l.pairs {
		out = append(out, p)
	}
	return out
}

// Cut closes every connection, with a reset if asked, and returns how many there were.
func (l *Link) Cut(reset bool) int {
	pairs := l.all()
	for _, p := range pairs {
		l.end(p, reset)
	}
	return len(pairs)
}

// Freeze makes every present connection silent in both directions, without an end:
// half-open. New ones work.
func (l *Link) Freeze() int {
	pairs := l.all()
	for _, p := range pairs {
		p.freeze.Do(func() { close(p.frozen) })
	}
	return len(pairs)
}

// Down refuses new connections until called with false.
func (l *Link) Down(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// Delay holds up each piece of data.
func (l *Link) Delay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

// Via is a connection string that leads through the link.
func (l *Link) Via(database string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=%s sslmode=disable", l.Port, database)
}
