package protocol

import "github.com/skipprd/skipprd/wal/mutant"

// PinAction is what a query does next about its pin.
type PinAction uint8

// The actions.
const (
	// PinTake takes a new pin and runs the query on it.
	PinTake PinAction = iota + 1
	// PinRun runs the query on the pin its transaction holds.
	PinRun
	// PinGiveUp ends the query: the rows it must see are gone (40001).
	PinGiveUp
)

// PinRepeats is how often a query may take a new pin after losing one.
const PinRepeats = 3

// Pin decides when a query may take a new pin. A pin that lost a slice can be
// replaced only while nobody has seen a row of it (P3), and never inside a
// transaction that holds one for all its queries (P2).
//
// The states: fresh (nothing sent), sent (rows have left), lost for good. Start is
// called once; then Sent and Lost in the order in which they happen. The zero value
// is a query outside of such a transaction.
type Pin struct {
	// Held says that the transaction holds the pin.
	Held    bool
	sent    bool
	repeats int
}

// Start is the query's first action.
func (p *Pin) Start() PinAction {
	if p.Held {
		return PinRun
	}
	return PinTake
}

// Sent says that rows have left, so that the query cannot begin again.
func (p *Pin) Sent() { p.sent = true }

// Lost says that a slice of the pin was reclaimed.
func (p *Pin) Lost() PinAction {
	if p.Held || p.sent || p.repeats >= PinRepeats && !mutant.On(mutant.RepinForever) {
		return PinGiveUp
	}
	p.repeats++
	return PinTake
}
