package protocol

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// TakeoverConfig is what a takeover knows beforehand.
type TakeoverConfig struct {
	Pipeline change.PipelineID
	Writer   [16]byte
	Host     string
	// Published and PublishedEnd are the catalog's watermark.
	Published    segment.Seq
	PublishedEnd uint32
	// Window is how many bodies may be read at a time.
	Window int
}

// Takeover makes this writer the only one of a log on an object store, and reads what
// is in it:
//
//  1. The epoch, one higher than any before, goes into the fence, by compare-and-swap.
//  2. It goes into the checkpoint likewise: the old writer can reclaim no more. The lake
//     is told: nor can its compactor commit.
//  3. The log is listed. It must be dense from the checkpoint's low seq (W3).
//  4. A takeover marker takes the next seq, if that is still absent. Where the old writer
//     had been about to commit, there is no room any more. If it was faster, again from 2.
//  5. The checkpoint is read again: a still newer writer may have reclaimed, takeover
//     markers excepted, what step 3 saw. Then again from 2, or this writer is fenced.
//  6. Markers and bodies are read, their digests and chain verified (W4), and what the
//     catalog has not is published.
//  7. Leftovers of reclaims and of fenced writers are deleted.
//
// It may be given up at any point, and run again by anyone.
type Takeover struct {
	cfg   TakeoverConfig
	out   []Effect
	phase takeoverPhase
	again Effect // what is repeated after Wait
	tries int

	fence        segment.Fence
	fenceVersion Version
	checkpoint   segment.Checkpoint
	version      Version // of the checkpoint
	marker       segment.Marker

	bodies  []BodyKey
	markers map[segment.Seq]bool
	next    segment.Seq // of the takeover marker
	tail    StoreTail

	read    reading
	suspect error
	// unlisted is how many listings had a hole.
	unlisted int

	// Of the sweep: markers to look at, how many are not yet, and those to delete.
	doubtful []segment.Seq
	looking  int
	leftover []segment.Seq
}

type takeoverPhase uint8

const (
	takingFence takeoverPhase = iota
	takingCheckpoint
	fencingLake
	listing
	puttingMarker
	rechecking
	// suspecting: something is missing; a newer writer may have reclaimed it.
	suspecting
	readingLog
	sweeping
	ended
)

// triesMax bounds how often a takeover begins anew or repeats a write: whoever loses
// that often leaves the log to the others.
const triesMax = 16

// NewTakeover makes a takeover.
func NewTakeover(cfg TakeoverConfig) *Takeover {
	cfg.Window = max(cfg.Window, 1)
	return &Takeover{cfg: cfg}
}

// Step takes an event and returns the next effects, which may be executed side by side.
// Recovered or Refused is the last; Result is valid after Recovered.
func (t *Takeover) Step(ev Event) []Effect {
	t.out = nil
	if t.phase == ended {
		return nil
	}
	if _, ok := ev.(CheckpointRead); t.phase == suspecting && !ok {
		return nil // of what was being read
	}
	if err := t.step(ev); err != nil {
		t.phase = ended
		return []Effect{Refused{Err: err}}
	}
	return t.out
}

// Result is where the log goes on.
func (t *Takeover) Result() StoreTail { return t.tail }

func (t *Takeover) emit(e Effect) { t.out = append(t.out, e) }

func (t *Takeover) step(ev Event) error {
	switch ev := ev.(type) {
	case Start:
		t.begin()
		return nil
	case Retry:
		t.emit(t.again)
		return nil
	case FenceRead:
		return t.fenceRead(ev)
	case FenceWritten:
		return t.fenceWritten(ev)
	case CheckpointRead:
		return t.checkpointRead(ev)
	case CheckpointWritten:
		return t.checkpointWritten(ev)
	case LakeFenced:
		if ev.Err != nil {
			return fmt.Errorf("fence lake: %w", ev.Err)
		}
		t.list()
		return nil
	case PageListed:
		return t.pageListed(ev)
	case MarkerPut:
		return t.markerPut(ev)
	case MarkerRead:
		switch t.phase {
		case puttingMarker:
			return t.markerFound(ev)
		case sweeping:
			t.sweepFound(ev)
			return nil
		}
		return t.markerRead(ev)
	case BodyFetched:
		return t.bodyFetched(ev)
	case Published:
		return t.published(ev)
	case Deleted:
		t.swept(ev.Err)
		return nil
	}
	return fmt.Errorf("takeover: unexpected event %T", ev)
}

func (t *Takeover) begin() {
	if mutant.On(mutant.ListBeforeFence) {
		t.checkpoint.Low = 1
		t.list()
		return
	}
	t.phase = takingFence
	t.emit(ReadFence{})
}

// repeat asks for a pause before e.
func (t *Takeover) repeat(e Effect, cause error) error {
	t.tries++
	if t.tries > triesMax {
		return fmt.Errorf("take over: given up after %d attempts: %w", t.tries, cause)
	}
	t.again = e
	t.emit(Wait{Attempt: t.tries})
	return nil
}

func (t *Takeover) fenceRead(ev FenceRead) error {
	if ev.Err != nil {
		return fmt.Errorf("read fence: %w", ev.Err)
	}
	mine := t.fence
	next := segment.Fence{
		Epoch: 1, Pipeline: t.cfg.Pipeline, Beat: 1, Writer: t.cfg.Writer, Host: t.cfg.Host,
	}
	if ev.Data != nil {
		f, err := segment.ParseFence(ev.Data)
		if err != nil {
			return err
		}
		switch {
		case f.Pipeline != t.cfg.Pipeline:
			return fmt.Errorf("fence of pipeline %d: %w", f.Pipeline, segment.ErrIdentity)
		case mine.Epoch != 0 && f.Epoch == mine.Epoch && f.Writer == mine.Writer:
			t.fenceVersion = ev.Version
			t.takeCheckpoint()
			return nil
		case mine.Epoch != 0 && f.Epoch >= mine.Epoch:
			return fencedBy(f)
		}
		next.Epoch, next.Beat = f.Epoch+1, f.Beat+1
	}
	t.fence = next
	t.emit(WriteFence{Fence: next, Version: ev.Version})
	return nil
}

func (t *Takeover) fenceWritten(ev FenceWritten) error {
	switch ev.Outcome {
	case PutDone:
		t.fenceVersion = ev.Version
		t.takeCheckpoint()
		return nil
	case PutNot:
		return t.repeat(ReadFence{}, fmt.Errorf("write fence: %w", ev.Err))
	}
	return t.repeat(ReadFence{}, errors.New("fence changed"))
}

func (t *Takeover) takeCheckpoint() {
	t.phase = takingCheckpoint
	t.emit(ReadCheckpoint{})
}

func (t *Takeover) checkpointRead(ev CheckpointRead) error {
	if ev.Err != nil {
		return fmt.Errorf("read checkpoint: %w", ev.Err)
	}
	next := segment.Checkpoint{Pipeline: t.cfg.Pipeline, Low: 1, Group: 1}
	if ev.Data != nil {
		c, err := segment.ParseCheckpoint(ev.Data)
		if err != nil {
			return err
		}
		switch {
		case c.Pipeline != t.cfg.Pipeline:
			return fmt.Errorf("checkpoint of pipeline %d: %w", c.Pipeline, segment.ErrIdentity)
		case c.Epoch > t.fence.Epoch:
			return fmt.Errorf("%w: the checkpoint is of epoch %d", ErrFenced, c.Epoch)
		}
		next = c
	}
	switch t.phase {
	case rechecking:
		return t.recheck(next)
	case suspecting:
		return t.confirm()
	}
	if next.Epoch == t.fence.Epoch {
		t.checkpoint, t.version = next, ev.Version
		t.fenceLake()
		return nil
	}
	next.Epoch = t.fence.Epoch
	next.Serial++
	t.checkpoint = next
	t.emit(WriteCheckpoint{Checkpoint: next, Version: ev.Version})
	return nil
}

func (t *Takeover) checkpointWritten(ev CheckpointWritten) error {
	if ev.Outcome == PutDone {
		t.version = ev.Version
		t.fenceLake()
		return nil
	}
	return t.repeat(ReadCheckpoint{}, fmt.Errorf("write checkpoint: %w", errors.Join(ev.Err, errors.New("outcome unknown"))))
}

func (t *Takeover) fenceLake() {
	if mutant.On(mutant.LakeNotFenced) || mutant.On(mutant.ListBeforeFence) {
		t.list()
		return
	}
	t.phase = fencingLake
	t.emit(FenceLake{Epoch: t.fence.Epoch})
}

func (t *Takeover) list() {
	if mutant.On(mutant.ListBeforeFence) && t.fence.Epoch != 0 {
		t.putMarker()
		return
	}
	t.phase = listing
	t.bodies, t.markers, t.next = nil, map[segment.Seq]bool{}, t.checkpoint.Low
	t.emit(ListPage{})
}

func (t *Takeover) pageListed(ev PageListed) error {
	if ev.Err != nil {
		return fmt.Errorf("list log: %w", ev.Err)
	}
	t.bodies = append(t.bodies, ev.Bodies...)
	for _, seq := range ev.Markers {
		t.markers[seq] = true
		t.next = max(t.next, seq+1)
	}
	if ev.Next != "" {
		t.emit(ListPage{Token: ev.Next})
		return nil
	}
	if mutant.On(mutant.ListBeforeFence) && t.fence.Epoch == 0 {
		t.phase = takingFence
		t.emit(ReadFence{})
		return nil
	}
	for seq := t.checkpoint.Low; seq < t.next; seq++ {
		if !t.markers[seq] {
			// Pages are of different moments: the old writer may have put it, and the
			// next one, while they were read.
			t.unlisted++
			t.missing(seq, "marker")
			return nil
		}
	}
	t.putMarker()
	return nil
}

// confirm: something is missing, the log is ours, and nobody else may reclaim.
func (t *Takeover) confirm() error {
	if t.unlisted > 0 && t.unlisted < listingsMax {
		t.list()
		return nil
	}
	return t.suspect
}

// listingsMax is how often a hole must be seen in a listing before it is believed.
const listingsMax = 3

// missing: the log has a hole, unless it is another's by now.
func (t *Takeover) missing(seq segment.Seq, what string) {
	t.suspect = &segment.CorruptError{Seq: seq, Cause: errors.New(what + " is missing")}
	t.phase = suspecting
	t.out = []Effect{ReadCheckpoint{}}
}

func (t *Takeover) putMarker() {
	t.marker = segment.Marker{
		Flags: segment.Takeover, Epoch: t.fence.Epoch, Seq: t.next, Digest: sha256.Sum256(nil),
	}
	if mutant.On(mutant.NoTakeoverMarker) {
		t.next--
		t.readLog()
		return
	}
	t.phase = puttingMarker
	t.emit(PutMarker{Marker: t.marker})
}

func (t *Takeover) markerPut(ev MarkerPut) error {
	switch ev.Outcome {
	case PutDone:
		t.lookAgain()
	case PutNot:
		return t.repeat(PutMarker{Marker: t.marker}, fmt.Errorf("put takeover marker: %w", ev.Err))
	default:
		t.emit(ReadMarker{Seq: ev.Seq})
	}
	return nil
}

// markerFound says what is under the takeover marker's name.
func (t *Takeover) markerFound(ev MarkerRead) error {
	if ev.Err != nil {
		return fmt.Errorf("read takeover marker: %w", ev.Err)
	}
	if ev.Data == nil {
		return t.repeat(PutMarker{Marker: t.marker}, errors.New("put takeover marker: outcome unknown"))
	}
	mine := t.marker.Encode()
	if string(ev.Data) == string(mine[:]) {
		t.lookAgain()
		return nil
	}
	m, err := segment.ParseMarker(ev.Data, ev.Seq)
	if err != nil {
		return &segment.CorruptError{Seq: ev.Seq, Cause: err}
	}
	if m.Epoch >= t.fence.Epoch {
		return fmt.Errorf("%w: segment %s is of epoch %d", ErrFenced, ev.Seq.ID(), m.Epoch)
	}
	return t.relist(fmt.Errorf("segment %s was committed by epoch %d", ev.Seq.ID(), m.Epoch))
}

// relist goes back to the checkpoint.
func (t *Takeover) relist(cause error) error {
	t.tries++
	if t.tries > triesMax {
		return fmt.Errorf("take over: given up after %d attempts: %w", t.tries, cause)
	}
	t.takeCheckpoint()
	return nil
}

func (t *Takeover) lookAgain() {
	if mutant.On(mutant.NoCheckpointReread) {
		t.readLog()
		return
	}
	t.phase = rechecking
	t.emit(ReadCheckpoint{})
}

// recheck: c is the checkpoint after the takeover marker was put; one of a larger epoch
// has been refused already.
func (t *Takeover) recheck(c segment.Checkpoint) error {
	if c.Epoch != t.fence.Epoch || c.Low > t.next {
		return t.relist(errors.New("checkpoint went on"))
	}
	t.readLog()
	return nil
}
