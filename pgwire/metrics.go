package pgwire

import (
	"maps"
	"sync"
	"sync/atomic"
)

// counter is a monotonic count, safe for concurrent use.
type counter struct{ n atomic.Int64 }

func (c *counter) add(n int64) { c.n.Add(n) }

// metrics are a server's counters. Safe for concurrent use.
type metrics struct {
	connections, rejected, queries, rows, bytes counter
	mu                                          struct {
		sync.Mutex
		errors map[string]int64
	}
}

func (m *metrics) countError(sqlstate string) {
	if len(sqlstate) < 2 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.errors == nil {
		m.mu.errors = map[string]int64{}
	}
	m.mu.errors[sqlstate[:2]]++
}

// Stats is a reading of a server's counters since its start.
type Stats struct {
	// Sessions is the number of sessions now.
	Sessions int64
	// Connections counts accepted connections, Rejected those that did not reach
	// their first ReadyForQuery.
	Connections, Rejected int64
	// Queries counts executed statements, Rows and Bytes what was sent.
	Queries, Rows, Bytes int64
	// Errors counts errors sent, by class: the first two characters of the SQLSTATE.
	Errors map[string]int64
}

// Stats reads the counters.
func (s *Server) Stats() Stats {
	m := &s.metrics
	out := Stats{
		Connections: m.connections.n.Load(), Rejected: m.rejected.n.Load(), Queries: m.queries.n.Load(),
		Rows: m.rows.n.Load(), Bytes: m.bytes.n.Load(),
	}
	s.mu.Lock()
	out.Sessions = int64(len(s.mu.sessions))
	s.mu.Unlock()
	m.mu.Lock()
	out.Errors = maps.Clone(m.mu.errors)
	m.mu.Unlock()
	return out
}
