package planner

import (
	"github.com/skipprd/skipprd/catalog"
)

// holds are the lake snapshots that a statement, a cursor or a transaction keeps. Used
// by one goroutine.
type holds []func()

// release lets go of all; it may be called again.
func (h *holds) release() {
	for _, release := range *h {
		release()
	}
	*h = nil
}

// hold keeps a table's snapshot.
func (e *Engine) hold(h *holds, state catalog.LakeState) {
	if e.deps.Pins != nil && state.Snapshot != 0 {
		*h = append(*h, e.deps.Pins.Hold(state.Metadata, state.Snapshot))
	}
}

// holdAll keeps what any statement at the pin may read.
func (e *Engine) holdAll(snap *catalog.Snapshot) holds {
	var h holds
	for _, t := range snap.AllTables() {
		e.hold(&h, snap.LakeState(t.ID))
	}
	return h
}

// heldRows are rows whose plan's snapshots are kept until they are closed.
type heldRows struct {
	Rows
	holds holds
}

// Close implements Rows.
func (r *heldRows) Close() {
	r.Rows.Close()
	r.holds.release()
}
