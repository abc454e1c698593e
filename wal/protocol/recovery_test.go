package protocol_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// bodyOf is an unsealed body with groups, and what the next one's header repeats of it.
func bodyOf(t *testing.T, h segment.Header, groups int) (body []byte, next segment.Header) {
	t.Helper()
	b, enc := segment.NewBuilder(h), segment.NewEncoder()
	head := h.Encode()
	body = head[:]
	for i := range groups {
		x, err := enc.Encode(&change.Group{Position: change.Position(fmt.Sprint(h.FirstGroup) + fmt.Sprint(i))})
		if err != nil {
			t.Fatal(err)
		}
		body, _ = b.Append(body, x, b.End())
	}
	next = h
	next.Seq, next.FirstGroup, next.Previous = h.Seq+1, h.FirstGroup+uint64(groups), sha256.Sum256(body)
	return body, next
}

// recoverBodies runs a recovery of unsealed bodies. changed says whether it asked for
// anything but reads.
func recoverBodies(bodies map[segment.Seq][]byte) (changed bool, err error) {
	r := protocol.NewRecovery(protocol.RecoveryConfig{Pipeline: 1, Epoch: 1})
	ev := protocol.Event(protocol.Start{})
	for {
		switch e := r.Step(ev).(type) {
		case protocol.List:
			listed := protocol.Listed{}
			for seq := segment.Seq(1); bodies[seq] != nil; seq++ {
				listed.Bodies = append(listed.Bodies, seq)
			}
			ev = listed
		case protocol.ReadBody:
			data := bodies[e.Seq]
			if e.Bytes > 0 {
				data = data[:e.Bytes]
			}
			ev = protocol.BodyRead{Seq: e.Seq, Data: data}
		case protocol.Publish:
			changed, ev = true, protocol.Published{}
		case protocol.Seal:
			changed, ev = true, protocol.Sealed{Seq: e.Seq}
		case protocol.Discard:
			changed, ev = true, protocol.Discarded{Seq: e.Seq}
		case protocol.Recovered:
			return changed, nil
		case protocol.Refused:
			return changed, e.Err
		default:
			return changed, fmt.Errorf("unexpected effect %T", e)
		}
	}
}

// Damage in a body that has no marker yet looks like a torn tail. When another body
// follows, its header says what was there: nothing is cut off, wherever the damage is.
func TestRecoveryCutsNothingThatTheNextHeaderKnows(t *testing.T) {
	for _, groups := range []int{1, 3} {
		h := segment.Header{Epoch: 1, Pipeline: 1, Seq: 1, FirstGroup: 1, Salt: 7}
		first, next := bodyOf(t, h, groups)
		second, _ := bodyOf(t, next, 2)
		if _, err := recoverBodies(map[segment.Seq][]byte{1: first, 2: second}); err != nil {
			t.Fatalf("undamaged: %v", err)
		}
		for at := range first {
			first[at] ^= 0x10
			changed, err := recoverBodies(map[segment.Seq][]byte{1: first, 2: second})
			first[at] ^= 0x10
			var corrupt *segment.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Seq != 1 {
				t.Fatalf("%d groups, byte %d: %v", groups, at, err)
			}
			if changed {
				t.Fatalf("%d groups, byte %d: the log was changed before the damage was seen", groups, at)
			}
		}
		torn := map[segment.Seq][]byte{1: first, 2: second[:len(second)-8]}
		if _, err := recoverBodies(torn); err != nil {
			t.Fatalf("a torn tail of the last body: %v", err)
		}
	}
}
