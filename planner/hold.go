package planner

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
