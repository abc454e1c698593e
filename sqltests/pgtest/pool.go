package pgtest

import (
	"os"
	"sync"
)

// servers are those of this test binary.
var servers = newPool(start, os.Getenv("SKIPPRD_TEST_PG_DSN") != "")

// pool gives each test a server of its own. Safe for concurrent use.
type pool struct {
	start func() *Server
	// single: there is only one, for which tests wait.
	single bool

	mu struct {
		sync.Mutex
		free  []*Server
		taken map[string]*taken // by the name of the test
		given *sync.Cond
	}
}

// taken is a server that a test has, asked for so many times.
type taken struct {
	*Server
	times int
}

func newPool(start func() *Server, single bool) *pool {
	p := &pool{start: start, single: single}
	p.mu.taken = map[string]*taken{}
	p.mu.given = sync.NewCond(&p.mu)
	return p
}

func (p *pool) take(test string) *Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if t := p.mu.taken[test]; t != nil {
			t.times++
			return t.Server
		}
		if n := len(p.mu.free); n > 0 {
			s := p.mu.free[n-1]
			p.mu.free = p.mu.free[:n-1]
			p.mu.taken[test] = &taken{s, 1}
			return s
		}
		if !p.single || len(p.mu.taken) == 0 {
			p.mu.free = append(p.mu.free, p.start())
			continue
		}
		p.mu.given.Wait()
	}
}

func (p *pool) giveBack(test string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.mu.taken[test]
	if t.times--; t.times > 0 {
		return
	}
	delete(p.mu.taken, test)
	p.mu.free = append(p.mu.free, t.Server)
	p.mu.given.Broadcast()
}
