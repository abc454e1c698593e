package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// errDisorder means that the log handed over groups or slices that cannot follow each
// other: a broken invariant.
var errDisorder = errors.New("group out of order")

// hotRows are the rows that each Publish of a pipeline changes, as stored.
type hotRows struct {
	offset  Offset
	segment Segment // of offset.Seq, zero if there is none
}

// publication is one Publish under way.
type publication struct {
	c        *Catalog
	pipeline change.PipelineID
	rows     hotRows
	batch    kv.Batch
	txn      *Txn // of the groups' states; nil if there are none
	facts    *facts
	slice    Slice
	key, row []byte // scratch
	count    int    // groups that were new

	// Of the group being added.
	group           *wal.CommittedGroup
	part, completed bool
}

// Published implements wal.Publisher.
func (c *Catalog) Published(_ context.Context, pipeline change.PipelineID) (segment.Seq, uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.mayPublishLocked(pipeline); err != nil {
		return 0, 0, err
	}
	h, err := c.hotLocked(pipeline)
	if err != nil {
		return 0, 0, err
	}
	return h.offset.Seq, h.offset.End, nil
}

// Publish implements wal.Publisher: one atomic batch, not synced. Slices of tables that
// do not exist any more are counted and not kept. Slices get the present generation of
// their table.
func (c *Catalog) Publish(_ context.Context, pipeline change.PipelineID, groups []wal.CommittedGroup) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return c.mu.err
	}
	h, err := c.hotLocked(pipeline)
	if err != nil {
		return err
	}
	p := c.newPublicationLocked(pipeline, *h, groups)
	defer func() { _ = p.batch.Close() }() // nothing is lost: committed or undone
	if _, ok := p.facts.pipelines[pipeline]; !ok {
		return fmt.Errorf("publish: %w", &NotFoundError{KindPipeline, idName(uint32(pipeline))})
	}
	for i := range groups {
		if err := p.add(&groups[i]); err != nil {
			return fmt.Errorf("publish group %d:%d: %w", groups[i].Seq, groups[i].End, err)
		}
	}
	if p.count == 0 {
		return nil
	}
	if err := p.finish(); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := p.commitLocked(); err != nil {
		c.mu.err = fmt.Errorf("%w: %w", ErrBroken, err)
		return fmt.Errorf("publish: %w", err)
	}
	*h = p.rows
	return nil
}

// hotLocked returns the pipeline's hot rows, read if need be; mu is locked.
func (c *Catalog) hotLocked(pipeline change.PipelineID) (*hotRows, error) {
	if h, ok := c.mu.hot[pipeline]; ok {
		return h, nil
	}
	r := reader{kv: c.store}
	o, err := r.Offset(pipeline)
	if err != nil {
		return nil, err
	}
	h := &hotRows{offset: o}
	row, err := c.store.Get(segmentKey(nil, pipeline, o.Seq))
	switch {
	case errors.Is(err, kv.ErrNotFound): // none yet, or reclaimed
	case err != nil:
		return nil, fmt.Errorf("read segment %d: %w", o.Seq, err)
	default:
		h.segment = Segment{Pipeline: pipeline, Seq: o.Seq}
		if err := decodeSegmentRow(row, &h.segment); err != nil {
			return nil, fmt.Errorf("segment %d: %w", o.Seq, err)
		}
	}
	c.mu.hot[pipeline] = h
	return h, nil
}

func (c *Catalog) newPublicationLocked(
	pipeline change.PipelineID, rows hotRows, groups []wal.CommittedGroup,
) *publication {
	p := &publication{c: c, pipeline: pipeline, rows: rows}
	c.view.Lock()
	p.facts = c.view.facts
	c.view.Unlock()
	_, inParts := p.facts.pending[pipeline]
	if inParts || slices.ContainsFunc(groups, func(g wal.CommittedGroup) bool { return len(g.State) > 0 }) {
		p.txn = c.newTxnLocked()
		p.txn.publication = p
		p.batch, p.facts = p.txn.batch, p.txn.facts
		p.slice.PublishedAt = p.txn.now
		return p
	}
	p.batch = c.store.NewBatch()
	p.slice.PublishedAt = c.deps.Clock.Now().UTC()
	return p
}

// add adds a group to the batch, unless it is at or below the watermark.
func (p *publication) add(g *wal.CommittedGroup) error {
	o := &p.rows.offset
	if g.Seq < o.Seq || g.Seq == o.Seq && g.End <= o.End {
		return nil
	}
	if len(g.Position) > positionBytesMax {
		return fmt.Errorf("position of %d bytes exceeds %d", len(g.Position), positionBytesMax)
	}
	if g.Seq != p.rows.segment.Seq {
		if err := p.putSegment(); err != nil {
			return err
		}
		p.rows.segment = Segment{Pipeline: p.pipeline, Seq: g.Seq}
	}
	if err := p.applyState(g); err != nil {
		return err
	}
	for i := range g.Slices {
		if err := p.addSlice(g, &g.Slices[i]); err != nil {
			return err
		}
	}
	if err := p.countPending(g); err != nil {
		return err
	}
	p.rows.segment.End = g.End
	o.Pipeline, o.Seq, o.End, o.PublishedAt = p.pipeline, g.Seq, g.End, p.slice.PublishedAt
	if g.Position != "" {
		o.Position = g.Position
	}
	if !g.CommittedAt.IsZero() {
		o.CommittedAt = g.CommittedAt
	}
	p.count++
	return nil
}

func (p *publication) addSlice(g *wal.CommittedGroup, s *wal.Slice) error {
	before := p.rows.offset // the group's own end comes later
	if s.Ref.Seq != g.Seq || s.Ref.Start >= g.End || s.Ref.Seq == before.Seq && s.Ref.Start < before.End {
		return fmt.Errorf("slice %s: %w", s.Ref, errDisorder)
	}
	p.rows.segment.Slices++
	tbl, ok := p.facts.tables[s.Table]
	if !ok || tbl.Pipeline != p.pipeline {
		return nil
	}
	p.rows.segment.Live++
	v := &p.slice
	v.Slice, v.Pipeline, v.Generation, v.CommittedAt = *s, p.pipeline, tbl.Generation, g.CommittedAt
	p.key = liveKey(p.key[:0], s.Table, s.Ref)
	if p.part && !mutant.On(mutant.SplitTransaction) {
		p.key = pendingKey(p.key[:0], p.pipeline, s.Ref)
	}
	p.row = appendSliceRow(p.row[:0], v)
	return p.batch.Set(p.key, p.row)
}

// applyState applies what the group says beside its slices, before they are added.
func (p *publication) applyState(g *wal.CommittedGroup) error {
	p.group, p.part, p.completed = g, false, false
	if len(g.State) == 0 {
		return p.giveUp(g)
	}
	if p.c.deps.ApplyState == nil {
		return errors.New("group has state and nothing applies it")
	}
	if err := p.c.deps.ApplyState(p.txn, p.pipeline, g.State); err != nil {
		return fmt.Errorf("apply state: %w", err)
	}
	return p.giveUp(g)
}

// giveUp makes the pending slices void when the group is of a stream that is past their
// transaction and has not completed it.
func (p *publication) giveUp(g *wal.CommittedGroup) error {
	if g.Position == "" || p.part || p.completed || p.txn == nil {
		return nil
	}
	return p.txn.VoidPending(p.pipeline)
}

// countPending adds the slices of a part to what is known of their transaction.
func (p *publication) countPending(g *wal.CommittedGroup) error {
	if !p.part {
		return nil
	}
	t := p.facts.pending[p.pipeline]
	for i := range g.Slices {
		if tbl, ok := p.facts.tables[g.Slices[i].Table]; ok && tbl.Pipeline == p.pipeline {
			t.Slices++
			t.Rows += int64(g.Slices[i].Rows)
			t.Bytes += int64(g.Slices[i].Length)
		}
	}
	return p.txn.putPending(p.pipeline, &t)
}

// finish adds the rows that were collected over all groups.
func (p *publication) finish() error {
	if err := p.putSegment(); err != nil {
		return err
	}
	p.row = appendOffsetRow(p.row[:0], &p.rows.offset)
	if err := p.batch.Set(pipelineKey(prefixOffset, p.pipeline), p.row); err != nil {
		return fmt.Errorf("put offset: %w", err)
	}
	if p.txn != nil {
		return p.txn.finish()
	}
	return nil
}

func (p *publication) putSegment() error {
	s := &p.rows.segment
	if s.Seq == 0 {
		return nil
	}
	p.key, p.row = segmentKey(p.key[:0], p.pipeline, s.Seq), appendSegmentRow(p.row[:0], s)
	if err := p.batch.Set(p.key, p.row); err != nil {
		return fmt.Errorf("put segment %d: %w", s.Seq, err)
	}
	return nil
}

// commitLocked commits the batch and shows it; mu is locked. Facts and rows change
// together for snapshots: with states the view is locked meanwhile.
func (p *publication) commitLocked() error {
	c := p.c
	if p.txn == nil {
		if err := p.batch.Commit(false); err != nil {
			return err
		}
		c.view.Lock()
		defer c.view.Unlock()
		c.notifyLocked()
		return nil
	}
	c.view.Lock()
	defer c.view.Unlock()
	if err := p.batch.Commit(false); err != nil {
		return err
	}
	c.view.facts = p.txn.seal()
	c.notifyLocked()
	return nil
}
