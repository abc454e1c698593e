package protocol

import (
	"crypto/sha256"
	"fmt"

	"github.com/skipprd/skipprd/wal/segment"
)

// sealing is the segment whose marker is owed. There is at most one, so markers
// become durable in order of seq; and the poisoned segment, if any, waits for it.
type sealing struct {
	phase  sealPhase
	seq    segment.Seq
	end    uint32 // of its groups
	groups int
	err    error

	cut    cutPhase
	digest [sha256.Size]byte // of the poisoned segment up to the cut
}

type sealPhase uint8

const (
	sealNone sealPhase = iota
	// sealRunning: Seal is under way.
	sealRunning
	// sealFailed: waits for Retry.
	sealFailed
	// sealInspecting: the segment is read anew, for a second Seal without footer.
	sealInspecting
)

type cutPhase uint8

const (
	cutNone cutPhase = iota
	cutInspecting
	// cutUninspected: waits for Retry.
	cutUninspected
	// cutFailed: inspected; the marker or the discard waits for Retry. They can be
	// repeated; the file is not inspected again, since a discard may have happened.
	cutFailed
	// cutWaiting: inspected; the seal before it is not done.
	cutWaiting
	cutRunning
)

func (w *Writer) inspected(ev Inspected) {
	if w.sealing.phase == sealInspecting && ev.Seq == w.sealing.seq {
		if ev.Err != nil {
			w.sealing.phase, w.sealing.err = sealFailed, ev.Err
			return
		}
		w.sealing.phase = sealRunning
		w.emit(Seal{Seq: ev.Seq, Marker: w.cutMarker(ev.Seq, w.sealing.end, w.sealing.groups, ev.Digest)})
		return
	}
	if ev.Err != nil {
		w.sealing.cut = cutUninspected
		w.cause = fmt.Errorf("inspect segment %s: %w", ev.Seq.ID(), ev.Err)
		return
	}
	w.state = cutting
	w.sealing.cut, w.sealing.digest = cutWaiting, ev.Digest
}

// cutMarker ends a segment at its last durable group, without a footer.
func (w *Writer) cutMarker(
	seq segment.Seq, end uint32, groups int, digest [sha256.Size]byte,
) segment.Marker {
	return segment.Marker{
		Flags: segment.SealedByRecovery, Groups: uint16(groups), Epoch: w.cfg.Epoch,
		Length: end, Seq: seq, Digest: digest,
	}
}

// cut decides what became of the failed write: it never was.
func (w *Writer) cut() {
	if w.sealing.cut != cutWaiting || w.sealing.phase != sealNone {
		return
	}
	w.sealing.cut = cutRunning
	if w.active.groups == 0 {
		w.emit(Discard{Seq: w.tail.Seq})
		return
	}
	w.emit(Seal{
		Seq:    w.tail.Seq,
		Marker: w.cutMarker(w.tail.Seq, w.active.durable, w.active.groups, w.sealing.digest),
	})
}

func (w *Writer) sealed(ev Sealed) {
	if w.state == cutting && ev.Seq == w.tail.Seq {
		if ev.Err != nil {
			w.cutFailed(ev.Seq, ev.Err)
			return
		}
		w.next(w.sealing.digest)
		w.healed()
		return
	}
	if ev.Err != nil {
		w.sealing.phase, w.sealing.err = sealFailed, ev.Err
		w.answer(w.waiting, fmt.Errorf("seal segment %s: %w", ev.Seq.ID(), ev.Err))
		w.waiting = w.waiting[:0]
		return
	}
	w.sealing.phase, w.sealing.err = sealNone, nil
	w.answer(w.waiting, nil)
	w.waiting = w.waiting[:0]
}

func (w *Writer) discarded(ev Discarded) {
	if ev.Err != nil {
		w.cutFailed(ev.Seq, ev.Err)
		return
	}
	w.active.builder = nil
	w.healed()
}

func (w *Writer) cutFailed(seq segment.Seq, err error) {
	w.sealing.cut = cutFailed
	w.cause = fmt.Errorf("cut segment %s: %w", seq.ID(), err)
}

func (w *Writer) healed() {
	w.sealing.cut, w.cause = cutNone, nil
	w.state = closed
}

// answerSeals answers the wishes to seal that have nothing to wait for.
func (w *Writer) answerSeals() {
	if len(w.wanted) == 0 || w.sealing.phase == sealRunning || w.sealing.phase == sealInspecting {
		return
	}
	switch {
	case w.sealing.phase == sealFailed:
		w.answer(w.wanted, fmt.Errorf("seal segment %s: %w", w.sealing.seq.ID(), w.sealing.err))
	case w.state == poisoned || w.state == cutting:
		w.answer(w.wanted, w.Refuses())
	case w.state == ready && w.active.groups == 0, w.state == closed:
		w.answer(w.wanted, nil)
	default:
		return
	}
	w.wanted = w.wanted[:0]
}
