package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/charset"
	"github.com/skipprd/skipprd/ingest/postgres/rewrite"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Source reads one PostgreSQL database for one pipeline. It implements
// ingest.Source, whose rules on concurrency hold.
type Source struct {
	cfg   config
	clock env.Clock
	ids   env.IDs
	log   *slog.Logger

	// acked is the newest LSN that Ack was told; ackWake pokes the running stream.
	acked   atomic.Uint64
	ackWake chan struct{}
	// noStandby says that the server must not take the stream for a standby; see awaitSeen.
	noStandby atomic.Bool

	// durable is what was durable here when the source was made; waiting, nil for nobody,
	// is told what the source waits for.
	durable LSN
	waiting func(string)

	// option is an option of the pipeline as it is now; nil: as it was.
	option func(name string) string
	others func() [][]byte // states of other pipelines; nil: none

	// scratch is where transactions that have not ended are kept; version is the
	// server's; whole says that there was no room, so that they come when they end.
	scratch ingest.Scratch
	version atomic.Int64
	whole   atomic.Bool

	recovery atomic.Bool // the server was a standby when the session began

	// control lends the one connection for questions: its holder has taken it out.
	control chan *pgx.Conn
	// seen are the partitions at the last look, truncated the truncations that were streamed;
	// files tells whether tables were rewritten.
	seen      seenParts
	truncated truncations
	files     rewrite.Known
	added     addedColumns
	// computing lends the session that evaluates expressions, likewise.
	computing chan *computing

	mu struct {
		sync.Mutex
		state *state
		// exporter keeps the snapshot of the slot that Setup made, until a backfill
		// has taken it over.
		exporter *exporter
		closed   bool
		texts    struct { // what we convert texts from, see charset
			asked bool
			from  *charset.Charset
		}
		beat heartbeat
	}
}

var _ ingest.Source = (*Source)(nil)

// exporter is a replication connection whose last command exported a snapshot, which
// lives until the next command or the connection's end.
type exporter struct {
	conn     *pgconn.PgConn
	snapshot string
	point    LSN
}

// New makes a source; it is an ingest.SourceFactory. It checks options and does not
// connect.
func New(_ context.Context, conn ingest.ResolvedConnection, p *catalog.Pipeline,
	deps ingest.SourceDeps,
) (ingest.Source, error) {
	cfg, err := newConfig(conn, p)
	if err != nil {
		return nil, &ingest.BadSourceError{Connection: conn.Name, Cause: err}
	}
	return newSource(cfg, deps), nil
}

func newSource(cfg config, deps ingest.SourceDeps) *Source {
	log := deps.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Source{
		cfg: cfg, clock: deps.Clock, ids: deps.IDs, log: log, scratch: deps.Scratch, option: deps.Option, others: deps.Others, waiting: deps.Waiting,
		ackWake: make(chan struct{}, 1),
		control: make(chan *pgx.Conn, 1), // the one connection, or nil for none yet
	}
	s.control <- nil
	s.computing = make(chan *computing, 1) // the one session
	s.computing <- &computing{}
	s.durable, _ = parseLSN(deps.Position) // ours, and so an LSN
	return s
}

// Ack implements ingest.Source.
func (s *Source) Ack(p change.Position) {
	lsn, err := parseLSN(p)
	if err != nil {
		s.log.Error("acknowledged position was unreadable", env.KeyPosition, string(p), env.KeyError, err)
		return
	}
	for {
		old := s.acked.Load()
		if uint64(lsn) <= old {
			return
		}
		if s.acked.CompareAndSwap(old, uint64(lsn)) {
			break
		}
	}
	s.pokeFeedback()
}

// pokeFeedback has a status sent soon.
func (s *Source) pokeFeedback() {
	select {
	case s.ackWake <- struct{}{}:
	default: // a poke is pending already
	}
}

// Compare implements ingest.Source.
func (s *Source) Compare(a, b change.Position) int { return comparePositions(a, b) }

// Close implements ingest.Source. A stream or backfill that is under way ends by its
// own context.
func (s *Source) Close() error {
	s.mu.Lock()
	e := s.mu.exporter
	s.mu.exporter, s.mu.closed = nil, true
	s.mu.Unlock()
	if e != nil {
		closeNow(e.conn)
	}
	select {
	case conn := <-s.control:
		if conn != nil {
			closeNow(conn.PgConn())
		}
		s.control <- nil
	default: // the holder closes it
	}
	select {
	case c := <-s.computing:
		if c.conn != nil {
			closeNow(c.conn.PgConn())
			c.conn = nil
		}
		s.computing <- c
	default: // a call that ends with its context, which closes the connection
	}
	return nil
}

// current is the state that Setup settled.
func (s *Source) current() (*state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.state == nil {
		return nil, ErrNotSetUp
	}
	return s.mu.state, nil
}

// takeExporter hands over the snapshot of a slot just made, if there is one.
func (s *Source) takeExporter() *exporter {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.mu.exporter
	s.mu.exporter = nil
	return e
}

// settle keeps what Setup found or made.
func (s *Source) settle(st *state, e *exporter) {
	s.mu.Lock()
	old := s.mu.exporter
	s.mu.state = st
	if e != nil {
		s.mu.exporter = e
	}
	s.mu.Unlock()
	if e != nil && old != nil {
		closeNow(old.conn)
	}
}
