package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// groupState is what travels in change.Group.State: facts about tables that become
// durable with the rows of the group. Its encoding is durable.
type groupState struct {
	Version int `json:"v"`
	// Chunk is a finished chunk of an initial copy.
	Chunk *chunkDone `json:"chunk,omitempty"`
	// Stops are tables that stopped in this group.
	Stops []tableStop `json:"stops,omitempty"`
	// Schemas are schema versions that begin in this group, in order.
	Schemas []tableSchema `json:"schemas,omitempty"`
	// Part is the transaction that the group is a part of: its slices are pending until
	// a group completes it.
	Part string `json:"part,omitempty"`
	// Completes is the transaction in parts whose commit is in this group.
	Completes *partsDone `json:"completes,omitempty"`
	// Voids says that the transaction in parts before this group was aborted.
	Voids bool `json:"voids,omitempty"`
	// Progress moves the own positions of tables that are behind the pipeline.
	Progress []tableProgress `json:"progress,omitempty"`
	// Letters are dead letters that were added and closed.
	Letters *deadletter.Records `json:"letters,omitempty"`
	// Reached are tables that were behind and no longer are.
	Reached []change.TableID `json:"reached,omitempty"`
}

// Versions of the encoding. The second says what a reader of the first would pass over
// and must not: parts of a transaction and schema versions; the third: dead letters. A
// state has the lowest that can say it.
const (
	groupStateOldest = 1
	groupStateParts  = 2
	groupStateNewest = 3
)

type chunkDone struct {
	Table      change.TableID `json:"table"`
	Generation uint32         `json:"generation"`
	Chunk      int            `json:"chunk"`
	Rows       int64          `json:"rows"`
	Bytes      int64          `json:"bytes"`
	At         time.Time      `json:"at"`
	// Consistent says that the stream had passed the copy's horizon, so that the
	// table is ready when this was its last chunk.
	Consistent bool `json:"consistent,omitempty"`
	// Owed says that rows which the stream has deleted, and which could not be taken in, have
	// not come yet: when this was the last chunk, they are among those that it took in.
	Owed bool `json:"owed,omitempty"`
}

type tableStop struct {
	Table  change.TableID  `json:"table"`
	At     change.Position `json:"at"`
	Reason string          `json:"reason"`
	Hint   string          `json:"hint,omitempty"`
	Resync bool            `json:"resync,omitempty"` // see TableError
	// Voids says that it stopped in a transaction in parts, of which it gets nothing.
	Voids bool `json:"voids,omitempty"`
}

// partsDone names a transaction in parts, how many it has and the segment of the first.
type partsDone struct {
	Txn   string      `json:"txn"`
	Parts int         `json:"parts"`
	First segment.Seq `json:"first"`
}

type tableProgress struct {
	Table change.TableID  `json:"table"`
	At    change.Position `json:"at"`
}

// empty says that there is nothing to make durable.
func (s *groupState) empty() bool {
	return s.Chunk == nil && len(s.Stops) == 0 && len(s.Schemas) == 0 && len(s.Progress) == 0 && len(s.Reached) == 0 &&
		s.Part == "" && s.Completes == nil && !s.Voids && s.Letters.Empty()
}

// encode renders the state, nil when it is empty.
func (s *groupState) encode() ([]byte, error) {
	if s.empty() {
		return nil, nil
	}
	s.Version = groupStateOldest
	if len(s.Schemas) > 0 || s.Part != "" || s.Completes != nil || s.Voids {
		s.Version = groupStateParts
	}
	if !s.Letters.Empty() {
		s.Version = groupStateNewest
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode group state: %w", err)
	}
	return b, nil
}

func decodeGroupState(b []byte) (*groupState, error) {
	var s groupState
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("decode group state: %w", err)
	}
	if s.Version < groupStateOldest || s.Version > groupStateNewest {
		return nil, fmt.Errorf("group state has version %d, not %d to %d", s.Version, groupStateOldest, groupStateNewest)
	}
	return &s, nil
}

// ApplyState is catalog.Deps.ApplyState: it records what a group's State says, in the
// transaction that publishes the group. Tables that are gone, or were begun anew
// since, are passed over.
func ApplyState(txn *catalog.Txn, pipeline change.PipelineID, state []byte) error {
	s, err := decodeGroupState(state)
	if err != nil {
		return fmt.Errorf("pipeline %d: %w", pipeline, err)
	}
	apply := func(id change.TableID, f func(*catalog.Table)) error {
		t, err := txn.TableByID(id)
		if errors.Is(err, catalog.ErrTableNotFound) || err == nil && t.Pipeline != pipeline {
			return nil
		}
		if err != nil {
			return fmt.Errorf("apply group state: %w", err)
		}
		f(t)
		return txn.PutTable(t)
	}
	if err := s.applyParts(txn, pipeline); err != nil {
		return err
	}
	if c := s.Chunk; c != nil {
		if err := apply(c.Table, c.apply); err != nil {
			return err
		}
	}
	for i := range s.Schemas {
		if err := s.Schemas[i].apply(txn, pipeline); err != nil {
			return err
		}
	}
	for _, stop := range s.Stops {
		stop.Hint = exactHint(txn, stop.Hint, stop.Table)
		if err := apply(stop.Table, stop.apply); err != nil {
			return err
		}
		if err := stop.addEvent(txn, pipeline); err != nil {
			return err
		}
	}
	if err := s.Letters.Apply(txn, pipeline); err != nil {
		return err
	}
	for _, p := range s.Progress {
		if err := apply(p.Table, func(t *catalog.Table) { t.StoppedAt = p.At }); err != nil {
			return err
		}
	}
	for _, id := range s.Reached {
		if err := apply(id, reached); err != nil {
			return err
		}
	}
	return nil
}

// applyParts says which slices become pending, live or void.
func (s *groupState) applyParts(txn *catalog.Txn, pipeline change.PipelineID) error {
	if s.Voids {
		if err := txn.VoidPending(pipeline); err != nil {
			return err
		}
	}
	for _, stop := range s.Stops {
		if !stop.Voids {
			continue
		}
		if err := txn.VoidPendingOf(stop.Table); err != nil {
			return err
		}
	}
	if s.Part != "" {
		return txn.PartOf(s.Part)
	}
	if c := s.Completes; c != nil {
		return txn.Complete(c.Txn, c.Parts, c.First)
	}
	return nil
}

// apply marks the chunk done, and the table copied when it was the last, unless rows are owed
// then: such a table is as one whose copy is under way.
func (c *chunkDone) apply(t *catalog.Table) {
	b := &t.Backfill
	if t.Generation != c.Generation || c.Chunk < 0 || c.Chunk >= len(b.Done) || b.Done[c.Chunk] {
		return
	}
	b.Done[c.Chunk] = true
	last := !slices.Contains(b.Done, false)
	if last && c.Owed {
		b.Done[c.Chunk] = false // it begins anew
		return
	}
	b.RowsDone += c.Rows
	b.BytesDone += c.Bytes
	if last {
		finish(t, c.At, c.Consistent)
	}
}

// finish ends the initial copy of a table.
func finish(t *catalog.Table, at time.Time, consistent bool) {
	t.Backfill.FinishedAt = at
	if t.State != catalog.TableBackfill && t.State != catalog.TablePending {
		return // stopped meanwhile; what is copied stays
	}
	t.State = catalog.TableCatchup
	if consistent && t.StoppedAt == "" {
		t.State, t.GaveUp = catalog.TableReady, nil
	}
}

func (s tableStop) apply(t *catalog.Table) {
	t.State, t.Reason, t.Hint, t.StoppedAt, t.Resync = catalog.TableStopped, s.Reason, s.Hint, s.At, s.Resync
	if t.CopyOf != 0 {
		t.StoppedAt = "" // it is given up, and its table goes on
	}
}

func (s tableStop) addEvent(txn *catalog.Txn, pipeline change.PipelineID) error {
	event := catalog.Event{At: txn.Now(), Level: "error", Kind: "table stopped", Detail: s.Reason}
	p, err := txn.PipelineByID(pipeline)
	if err == nil {
		event.Pipeline = p.Name
	}
	if t, err := txn.TableByID(s.Table); err == nil {
		if t.CopyOf != 0 || p != nil && resyncs(p, t) {
			return nil // that it is given up, or copied anew, is told
		}
		event.Table = t.Schema + "." + t.Name
	}
	if s.Hint != "" {
		event.Detail += ". " + s.Hint
	}
	return txn.AddEvent(event)
}

// reached ends the catching up of a table that was resumed.
func reached(t *catalog.Table) { t.StoppedAt = "" }
