package protocol_test

import (
	"testing"

	"github.com/skipprd/skipprd/wal/protocol"
)

// A lost pin is taken anew three times at most, and only while no row has left.
func TestPin(t *testing.T) {
	const take, run, giveUp = protocol.PinTake, protocol.PinRun, protocol.PinGiveUp
	for _, c := range []struct {
		name   string
		held   bool
		events string // l: lost, s: rows sent
		want   []protocol.PinAction
	}{
		{"finishes", false, "s", []protocol.PinAction{take}},
		{"lost once", false, "ls", []protocol.PinAction{take, take}},
		{"lost too often", false, "llll", []protocol.PinAction{take, take, take, take, giveUp}},
		{"lost after rows", false, "sl", []protocol.PinAction{take, giveUp}},
		{"lost, then after rows", false, "lsl", []protocol.PinAction{take, take, giveUp}},
		{"held by the transaction", true, "l", []protocol.PinAction{run, giveUp}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := protocol.Pin{Held: c.held}
			got := []protocol.PinAction{p.Start()}
			for _, e := range c.events {
				if e == 's' {
					p.Sent()
					continue
				}
				got = append(got, p.Lost())
			}
			if len(got) != len(c.want) {
				t.Fatalf("actions %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Fatalf("actions %v, want %v", got, c.want)
				}
			}
		})
	}
}
