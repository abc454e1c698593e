package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/charset"
	"github.com/skipprd/skipprd/ingest/postgres/naming"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/ingest/spill"
	"github.com/skipprd/skipprd/wal/change"
)

// applier turns the messages of one stream into calls of its sink. Owned by the
// streaming goroutine.
type applier struct {
	ctx    context.Context // of the stream: ends a look at the catalog
	source *Source
	sink   ingest.Sink
	// tables by source OID: the first of those that get its changes (streamTable.also).
	tables map[uint32]*streamTable
	again  []describedAgain

	// The open transaction.
	open    bool
	final   LSN // where its commit record begins; its order token
	xid     uint32
	ordinal int32

	// spool keeps the changes of large transactions that have not ended, nil when the
	// server sends none of those; block says that such changes come now.
	spool *spill.Store
	block bool

	// refuser is sink, when it sets changes aside; prior is about the row being applied.
	refuser ingest.Refuser
	prior   prior
	// gone says that the delete of the row's old key was refused: nothing here has it.
	gone bool

	// reached is the newest position that the sink was told.
	reached LSN
	// texts is what texts are converted from, nil for UTF-8; converted are those of the row.
	texts     *charset.Charset
	converted []byte
	// row and truncate are reused by every message.
	row      pgoutput.Row
	rowBytes int // of its message
	truncate pgoutput.Truncate
}

func newApplier(s *Source, tables []ingest.StreamTable, start LSN, sink ingest.Sink) (*applier, error) {
	a := &applier{
		ctx: context.Background(), source: s, sink: sink, reached: start,
		tables: make(map[uint32]*streamTable, len(tables)),
	}
	for _, t := range tables {
		st, err := newStreamTable(t, s.cfg.selection)
		if err != nil {
			return nil, err
		}
		st.rule = s.cfg.rule
		st.also = a.tables[t.Source.OID]
		a.tables[t.Source.OID] = st
	}
	a.refuser, _ = sink.(ingest.Refuser)
	for _, t := range a.tables {
		for ; t != nil && a.refuser != nil; t = t.also {
			t.letters = a.refuser.OpenLetters(t.ID)
		}
	}
	return a, nil
}

// change applies one message of the output plugin.
func (a *applier) change(b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: it is empty", pgoutput.ErrMalformed)
	}
	if a.block {
		return a.inBlock(b)
	}
	switch b[0] {
	case pgoutput.KindInsert, pgoutput.KindUpdate, pgoutput.KindDelete:
		if err := pgoutput.ParseRow(b, &a.row); err != nil {
			return err
		}
		a.rowBytes = len(b)
		if a.texts != nil {
			a.convertRow(b)
		}
		for t := a.tables[a.row.Relation]; t != nil; t = t.also {
			if wants, err := a.wants(t); err != nil {
				return err
			} else if !wants {
				continue
			}
			if err := a.applyRow(b[0], t); err != nil {
				return err
			}
		}
		return nil
	case pgoutput.KindBegin:
		return a.begin(b)
	case pgoutput.KindCommit:
		return a.commit(b)
	case pgoutput.KindRelation:
		return a.relation(b)
	case pgoutput.KindTruncate:
		return a.applyTruncate(b)
	case pgoutput.KindType, pgoutput.KindOrigin, pgoutput.KindMessage:
		return nil // nothing depends on them
	case pgoutput.KindStreamStart, pgoutput.KindStreamAbort, pgoutput.KindStreamCommit:
		if a.spool != nil {
			return a.betweenBlocks(b)
		}
	}
	return fmt.Errorf("%w: unknown kind %q", pgoutput.ErrMalformed, b[0])
}

// convertRow converts the texts of the row that b is. Of one that is too long only the key
// is looked at.
func (a *applier) convertRow(b []byte) {
	most := len(b)
	if a.texts.Longer(b, ingest.RowBytesMax) {
		a.rowBytes, most = ingest.RowBytesMax+1, keyBytesMost
	}
	a.converted = charset.Scratch(a.converted)
	if b[0] != pgoutput.KindDelete {
		a.converted = a.texts.Convert(a.row.New.Values, most, a.converted)
	}
	if a.row.OldForm != pgoutput.OldNone {
		a.converted = a.texts.Convert(a.row.Old.Values, most, a.converted)
	}
}

// keyBytesMost is more than a value of a key has: an index holds it.
const keyBytesMost = 64 << 10

// postgresEpoch is 2000-01-01 UTC in microseconds since 1970.
const postgresEpoch = 946_684_800_000_000

func (a *applier) begin(b []byte) error {
	m, err := pgoutput.ParseBegin(b)
	if err != nil {
		return err
	}
	return a.beginAt(m)
}

func (a *applier) beginAt(m pgoutput.Begin) error {
	if m.FinalLSN > math.MaxInt64 {
		return fmt.Errorf("%w: LSN is too great for an order token", pgoutput.ErrMalformed)
	}
	a.open, a.final, a.xid, a.ordinal = true, LSN(m.FinalLSN), m.XID, 0
	for _, g := range a.again {
		if g.table.described == nil {
			g.table.described = g.relation
		}
	}
	a.again = a.again[:0]
	return a.sink.Begin(int64(m.FinalLSN), time.UnixMicro(m.CommittedAt+postgresEpoch).UTC())
}

func (a *applier) commit(b []byte) error {
	m, err := pgoutput.ParseCommit(b)
	if err != nil {
		return err
	}
	return a.commitAt(m)
}

func (a *applier) commitAt(m pgoutput.Commit) error {
	a.open, a.reached = false, LSN(m.EndLSN)
	return a.sink.Commit(a.reached.Position())
}

// idle passes on that the server has sent all it has, when that is news.
func (a *applier) idle(end LSN) error {
	if a.open || a.block || end <= a.reached {
		return nil
	}
	a.reached = end
	return a.sink.Idle(end.Position())
}

// wants says whether a change of the open transaction is delivered to a table. It stops
// one whose description does not fit.
func (a *applier) wants(t *streamTable) (bool, error) {
	if t.stopped || a.final < t.after {
		return false, nil
	}
	if t.described != nil {
		if err := a.describe(t); err != nil || t.stopped {
			return false, err
		}
	}
	if t.columns == nil {
		return false, fmt.Errorf("%w: change of a table before its description", pgoutput.ErrMalformed)
	}
	return true, nil
}

// follows says whether a change of a table is delivered to any of ours, sooner or later.
func (a *applier) follows(oid uint32) bool {
	for t := a.tables[oid]; t != nil; t = t.also {
		if !t.stopped {
			return true
		}
	}
	return false
}

// stop stops one table at the open transaction.
func (a *applier) stop(t *streamTable, why *ingest.TableError) error {
	t.stopped = true
	return a.sink.StopTable(t.ID, why)
}

func (a *applier) relation(b []byte) error {
	m, err := pgoutput.ParseRelation(b)
	if err != nil {
		return err
	}
	m.Namespace, m.Name = naming.Convert(a.texts, m.Namespace), naming.Convert(a.texts, m.Name)
	for i := range m.Columns {
		m.Columns[i].Name = naming.Convert(a.texts, m.Columns[i].Name)
	}
	for t := a.tables[m.ID]; t != nil; t = t.also {
		t.described = m
	}
	return nil
}

func (a *applier) applyTruncate(b []byte) error {
	if err := pgoutput.ParseTruncate(b, &a.truncate); err != nil {
		return err
	}
	for _, oid := range a.truncate.Relations {
		a.source.truncated.add(oid, a.xid)
		for t := a.tables[oid]; t != nil; t = t.also {
			if wants, err := a.wants(t); err != nil {
				return err
			} else if !wants {
				continue
			}
			if err := a.sink.Truncate(t.ID); err != nil && !t.stoppedBy(err) {
				return err
			}
		}
	}
	return nil
}

// next is the ordinal of the next change of the transaction.
func (a *applier) next() int32 {
	n := a.ordinal
	a.ordinal++
	return n
}

// builder is the table's builder, with its columns at hand; nil when the sink has
// stopped the table.
func (a *applier) builder(t *streamTable) (*change.Builder, error) {
	b, err := a.sink.Builder(t.ID)
	if err != nil {
		if t.stoppedBy(err) {
			return nil, nil
		}
		return nil, err
	}
	if b != t.builder {
		t.builder, t.fields, t.blanks = b, t.fields[:0], t.blanks[:0]
		for i := range t.columns {
			t.fields = append(t.fields, b.Column(t.columns[i].place))
		}
		for _, i := range t.unsent {
			t.blanks = append(t.blanks, b.Column(i))
		}
	}
	return b, nil
}

// stoppedBy says that the sink has stopped the table, and remembers.
func (t *streamTable) stoppedBy(err error) bool {
	if errors.Is(err, ingest.ErrTableStopped) {
		t.stopped = true
	}
	return t.stopped
}
