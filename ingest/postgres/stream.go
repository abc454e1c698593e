package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/ingest/postgres/rewrite"
	"github.com/skipprd/skipprd/ingest/spill"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// The walls of replication messages inside CopyData.
const (
	kindXLogData  = 'w'
	kindKeepalive = 'k'
	xlogHeader    = 1 + 8 + 8 + 8
	keepaliveSize = 1 + 8 + 8 + 1
)

// How often, and how long, a slot that a process before us still holds is asked for: soon
// at first, since a process whose reader has just gone needs an instant.
const (
	slotRetryFirst    = 20 * time.Millisecond
	slotRetryInterval = 500 * time.Millisecond
	slotRetryMost     = time.Minute
)

// Stream implements ingest.Source.
func (s *Source) Stream(ctx context.Context, from change.Position, tables []ingest.StreamTable,
	sink ingest.Sink,
) error {
	err := s.stream(ctx, from, tables, sink)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("stream: %w", err)
}

func (s *Source) stream(ctx context.Context, from change.Position, tables []ingest.StreamTable,
	sink ingest.Sink,
) error {
	st, err := s.current()
	if err != nil {
		return err
	}
	if from == "" {
		from = pos(st.Start)
	}
	start, err := parseLSN(from)
	if err != nil {
		return err
	}
	a, err := newApplier(s, tables, start, sink)
	if err != nil {
		return err
	}
	a.ctx = ctx
	if err = s.checkSlot(ctx, st, start, tables); err != nil {
		return err
	}
	if a.texts, err = s.charset(ctx); err != nil {
		return err
	}
	if a.spool, err = s.openSpool(); err != nil {
		return err
	}
	err = s.connectAndFollow(ctx, st, a)
	if a.spool == nil || !errors.Is(err, spill.ErrFull) || ctx.Err() != nil {
		return errors.Join(err, a.closeSpool())
	}
	// Nothing of what was kept has been applied, and the server has all of it.
	s.log.Warn("large transactions are left at the source until they end", env.KeySlot, st.Slot, env.KeyError, err)
	s.whole.Store(true)
	if err := a.closeSpool(); err != nil {
		return err
	}
	return s.connectAndFollow(ctx, st, a)
}

// connectAndFollow streams from where the applier is, until an error or the end of ctx.
func (s *Source) connectAndFollow(ctx context.Context, st *state, a *applier) error {
	conn, err := s.startReplication(ctx, st, a)
	if err != nil {
		return err
	}
	s.log.Info("stream started", env.KeySlot, st.Slot, env.KeyLSN, a.reached.String())
	return s.follow(ctx, conn, a)
}

// openSpool makes the store of large transactions that the server sends before they
// end; nil where it is not to, or cannot.
func (s *Source) openSpool() (*spill.Store, error) {
	if !s.cfg.streaming || s.version.Load() < versionStreaming || s.scratch.FS == nil || s.whole.Load() {
		return nil, nil
	}
	return spill.Open(s.scratch.FS, spill.Config{
		Dir: s.scratch.Dir, Prefix: s.scratch.Prefix, BytesMax: s.cfg.spillBytes,
	})
}

func (a *applier) closeSpool() error {
	if a.spool == nil {
		return nil
	}
	spool := a.spool
	a.spool, a.block = nil, false
	return spool.Close()
}

// checkSlot makes sure that the slot still has everything after start, and looks at the
// tables' files.
func (s *Source) checkSlot(ctx context.Context, st *state, start LSN, tables []ingest.StreamTable) error {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.Source.Schema + "." + t.Source.Name
	}
	return s.withControlUnlocked(ctx, func(conn *pgx.Conn) error {
		v, err := readSettings(ctx, conn)
		if err != nil {
			return err
		}
		s.version.Store(int64(v.version))
		sl, err := readSlot(ctx, conn, st.Slot, v.version)
		if err != nil {
			return err
		}
		if err := sl.usable(st.Database, s.copyAnew(names)); err != nil {
			return err
		}
		if sl.confirmed > start {
			return fmt.Errorf("%w: slot %s was acknowledged up to %s, and only what precedes %s is durable here; %s",
				ErrSlotLost, st.Slot, sl.confirmed, start, s.copyAnew(names))
		}
		if start > sl.newest {
			return sl.behind(start)
		}
		oids := make([]uint32, len(tables))
		for i, t := range tables {
			oids[i] = t.Source.OID
		}
		looks, err := rewrite.Read(ctx, conn, oids)
		if err != nil {
			return unavailable("look at files", err)
		}
		for _, t := range tables {
			if now, ok := looks[t.Source.OID]; ok {
				if err := s.files.Complete(ctx, conn, t.Source.OID, t.Source.Files, &now, s.streamedNames(), s.truncated.have); err != nil {
					return unavailable("look at files", err)
				}
				s.files.Add(t.Source.OID, t.Source.Files, now)
			}
		}
		return nil
	})
}

// startReplication begins to stream. A server notices late that a reader is gone, so
// a slot in use is asked for again for a while.
// With a spool it sends large transactions before they end.
func (s *Source) startReplication(ctx context.Context, st *state, a *applier) (*pgconn.PgConn, error) {
	names := make([]string, len(st.Publications))
	for i, p := range st.Publications {
		names[i] = quoteIdent(p)
	}
	publications := quoteReplication(strings.Join(names, ","))
	waited := time.Duration(0)
	for pause := slotRetryFirst; ; pause = min(2*pause, slotRetryInterval) {
		conn, err := s.dialReplication(ctx)
		if err != nil {
			return nil, err
		}
		options := pglogrepl.StartReplicationOptions{Mode: pglogrepl.LogicalReplication}
		if options.PluginArgs, err = pluginArgs(ctx, conn, publications, a); err == nil {
			err = pglogrepl.StartReplication(ctx, conn, quoteIdent(st.Slot), pglogrepl.LSN(a.reached), options)
		}
		if err == nil {
			return conn, nil
		}
		closeNow(conn)
		if code(err) != codeObjectInUse || waited >= slotRetryMost {
			return nil, slotError("start to stream", err)
		}
		if err := s.clock.Sleep(ctx, pause); err != nil {
			return nil, err
		}
		waited += pause
	}
}

// pluginArgs are the options of the output plugin. Where we convert texts the session sends
// and takes them as they are from here on.
func pluginArgs(ctx context.Context, conn *pgconn.PgConn, publications string, a *applier) ([]string, error) {
	if a.texts != nil {
		raw, err := asBytes(ctx, conn, publications)
		if err != nil {
			return nil, fmt.Errorf("write names in encoding %s: %w", a.texts.Name(), err)
		}
		if err := run(ctx, conn, "SET client_encoding = "+quoteLiteral(a.texts.Name())); err != nil {
			return nil, fmt.Errorf("set client_encoding: %w", err)
		}
		publications = raw
	}
	if a.spool != nil {
		return []string{"publication_names " + publications, "proto_version '2'", "streaming 'on'"}, nil
	}
	return []string{"proto_version '1'", "publication_names " + publications}, nil
}

// quoteReplication writes a string for the replication grammar, which knows no
// escapes but the doubled quote.
func quoteReplication(text string) string { return quote.Text(text) }

// follow reads messages until an error or the end of ctx. It owns conn.
func (s *Source) follow(ctx context.Context, conn *pgconn.PgConn, a *applier) error {
	f := s.startFeedback(ctx, conn)
	err := receive(conn, a, f)
	f.stop()
	closeNow(conn)
	if f.failed() != nil {
		return f.failed()
	}
	return err
}

// receive hands each message to the applier. It reads from the frontend itself:
// pgconn's ReceiveMessage would watch a context for every message, which costs more
// than decoding one. The end of ctx arrives as a read error (see feedback).
func receive(conn *pgconn.PgConn, a *applier, f *feedback) error {
	frontend := conn.Frontend()
	for {
		f.reading()
		msg, err := frontend.Receive()
		f.read()
		if err != nil {
			return unavailable("receive changes", err)
		}
		switch msg := msg.(type) {
		case *pgproto3.CopyData:
			if err := a.message(msg.Data, f); err != nil {
				return err
			}
		case *pgproto3.ErrorResponse:
			return serverError(inUTF8(pgconn.ErrorResponseToPgError(msg), a.texts))
		case *pgproto3.CopyDone, *pgproto3.CommandComplete, *pgproto3.ReadyForQuery:
			return unavailable("receive changes", errors.New("the server ended the stream"))
		case *pgproto3.NoticeResponse, *pgproto3.ParameterStatus:
		default:
			return fmt.Errorf("unexpected message %T in the stream", msg)
		}
	}
}

// serverError finds the errors that mean a lost slot.
func serverError(err error) error {
	var pg *pgconn.PgError
	switch code(err) {
	case codeNotInPrerequisite, codeUndefinedObject:
		return fmt.Errorf("%w: %w", ErrSlotLost, err)
	case deadletter.CodeNoUTF8: // from a server that converts in another way than we
		_ = errors.As(err, &pg)
		where, _, _ := strings.Cut(pg.Where, "\n")
		return &ingest.SourceError{
			Message: "the source cannot send a changed row as UTF-8: " + pg.Message + " (" + where +
				"); correct the value at the source, then ALTER PIPELINE … RESET;",
			Cause: err,
		}
	}
	return unavailable("receive changes", err)
}

// message dispatches the content of a CopyData.
func (a *applier) message(b []byte, f *feedback) error {
	switch {
	case len(b) >= xlogHeader && b[0] == kindXLogData:
		return a.change(b[xlogHeader:])
	case len(b) == keepaliveSize && b[0] == kindKeepalive:
		if b[keepaliveSize-1] != 0 {
			f.reply()
		}
		return a.idle(LSN(binary.BigEndian.Uint64(b[1:])))
	}
	return fmt.Errorf("%w: replication message of %d bytes", pgoutput.ErrMalformed, len(b))
}

// inBlock keeps a message of a block of a transaction that has not ended. What is of
// no table of ours is left out; descriptions are kept like rows, since they hold from
// that place of the transaction on.
func (a *applier) inBlock(b []byte) error {
	switch b[0] {
	case pgoutput.KindStreamStop:
		if err := pgoutput.ParseStreamStop(b); err != nil {
			return err
		}
		a.block = false
		return a.spool.Stop()
	case pgoutput.KindType, pgoutput.KindOrigin, pgoutput.KindMessage:
		return nil
	case pgoutput.KindInsert, pgoutput.KindUpdate, pgoutput.KindDelete, pgoutput.KindRelation, pgoutput.KindTruncate:
	default:
		return fmt.Errorf("%w: unknown kind %q in a block", pgoutput.ErrMalformed, b[0])
	}
	kind, sub, rest, err := pgoutput.Streamed(b)
	if err != nil {
		return err
	}
	if kind != pgoutput.KindTruncate {
		oid, err := pgoutput.RelationOf(rest)
		if err != nil {
			return err
		}
		if !a.follows(oid) {
			return nil
		}
	}
	return a.spool.Add(sub, kind, rest)
}

// betweenBlocks begins a block, or ends a transaction of which there were blocks.
func (a *applier) betweenBlocks(b []byte) error {
	if a.open {
		return fmt.Errorf("%w: a block inside of a transaction", pgoutput.ErrMalformed)
	}
	switch b[0] {
	case pgoutput.KindStreamStart:
		m, err := pgoutput.ParseStreamStart(b)
		if err != nil {
			return err
		}
		a.block = true
		return a.spool.Start(m.XID)
	case pgoutput.KindStreamAbort:
		m, err := pgoutput.ParseStreamAbort(b)
		if err != nil {
			return err
		}
		return a.spool.Abort(m.XID, m.SubXID)
	}
	m, err := pgoutput.ParseStreamCommit(b)
	if err != nil {
		return err
	}
	if err := a.beginAt(pgoutput.Begin{FinalLSN: m.CommitLSN, CommittedAt: m.CommittedAt, XID: m.XID}); err != nil {
		return err
	}
	if err := a.spool.Replay(a.ctx, m.XID, a.change); err != nil {
		return err
	}
	return a.commitAt(m.Commit)
}
