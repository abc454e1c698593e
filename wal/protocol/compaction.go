package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// CompactionSlice is a live slice as the choice of a compaction sees it.
type CompactionSlice struct {
	Ref                segment.SliceRef
	Rows, Bytes        int64
	Truncate, Backfill bool
	// Due says that the slice has waited for the commit interval.
	Due bool
}

// CompactionState is what a choice depends on besides the slices.
type CompactionState struct {
	// Ready says that the table is consistent: its copy is complete and the stream has
	// passed the copy's horizon.
	Ready bool
	// BackfillOpen says that rows of the copy may still come.
	BackfillOpen bool
	// Forced wants a compaction though no threshold is reached.
	Forced bool
}

// CompactionLimits are the thresholds that make a compaction worth while, and the most
// that one takes.
type CompactionLimits struct {
	WantBytes, WantRows          int64
	MostBytes, MostRows          int64
	MostBackfillBytes, MostSlice int64
}

// CompactionPick is a set of slices and what becomes of them.
type CompactionPick struct {
	// Refs in log order: all leave the log's live side with this compaction.
	Refs []segment.SliceRef
	CompactionShape
}

// CompactionShape is how the slices of one compaction apply. It is a function of the
// slices alone, so a compaction that is tried again after a crash has the same.
type CompactionShape struct {
	// From is the index of the first slice that applies; those before it were
	// truncated away within the same compaction.
	From int
	// ReplaceAll takes out every row that the lake has.
	ReplaceAll bool
	// AppendOnly: rows of the copy, whose keys no lake row can have.
	AppendOnly bool
}

// PickCompaction chooses which live slices, given in log order, go into the lake next.
//
// Rows of the copy go first, in whatever place of the log they stand: they are older
// than any streamed change (their token is lower), so a streamed change that were in
// the lake before them would be overtaken, and a delete would be undone (C4, M1).
// Therefore streamed slices wait until no slice of the copy is live and the table is
// ready; a forced compaction takes them as soon as the copy is complete. Streamed
// slices go in as a prefix of the log.
func PickCompaction(live []CompactionSlice, st CompactionState, lim CompactionLimits) (CompactionPick, bool) {
	var backfill []CompactionSlice
	for _, s := range live {
		if s.Backfill && !mutant.On(mutant.StreamBeforeCopy) {
			backfill = append(backfill, s)
		}
	}
	from, candidates, most := 0, backfill, lim.MostBackfillBytes
	if len(backfill) == 0 {
		if (st.BackfillOpen || !st.Ready && !st.Forced) && !mutant.On(mutant.StreamBeforeCopy) {
			return CompactionPick{}, false
		}
		candidates, most = live, lim.MostBytes
		if mutant.On(mutant.DropTombstones) && len(live) > 1 {
			candidates = live[1:]
		}
		from = ShapeCompaction(candidates).From
	}
	if len(candidates) == 0 || !st.Forced && !worthWhile(candidates, lim) {
		return CompactionPick{}, false
	}
	end := takeUpTo(candidates, from, most, lim)
	pick := CompactionPick{CompactionShape: ShapeCompaction(candidates[:end])}
	for _, s := range candidates[:end] {
		pick.Refs = append(pick.Refs, s.Ref)
	}
	return pick, true
}

// ShapeCompaction says how the slices of one compaction apply. A truncate takes away
// everything before it, in the lake too.
func ShapeCompaction(slices []CompactionSlice) CompactionShape {
	shape := CompactionShape{AppendOnly: len(slices) > 0}
	for i, s := range slices {
		if s.Truncate {
			shape.From, shape.ReplaceAll = i, !mutant.On(mutant.TruncateForgotten)
		}
		shape.AppendOnly = shape.AppendOnly && s.Backfill && !s.Truncate
	}
	return shape
}

func worthWhile(slices []CompactionSlice, lim CompactionLimits) bool {
	var bytes, rows int64
	for _, s := range slices {
		bytes, rows = bytes+s.Bytes, rows+s.Rows
		if s.Due && !mutant.On(mutant.NoTailCompaction) || bytes >= lim.WantBytes || rows >= lim.WantRows {
			return true
		}
	}
	return false
}

// takeUpTo is the end of a prefix that has at least one slice from from on, and no more
// than the limits allow beyond that one.
func takeUpTo(slices []CompactionSlice, from int, mostBytes int64, lim CompactionLimits) int {
	var bytes, rows, count int64
	for i := from; i < len(slices); i++ {
		bytes, rows, count = bytes+slices[i].Bytes, rows+slices[i].Rows, count+1
		if i > from && (bytes > mostBytes || rows > lim.MostRows || count > lim.MostSlice) {
			return i
		}
	}
	return len(slices)
}

// CompactionID names a compaction: a function of the table, its generation and the set
// of slices (C1). refs are in log order.
func CompactionID(table change.TableID, generation uint32, refs []segment.SliceRef) string {
	h := sha256.New()
	var b [12]byte
	binary.LittleEndian.PutUint32(b[0:], uint32(table))
	binary.LittleEndian.PutUint32(b[4:], generation)
	h.Write(b[:8])
	for _, r := range refs {
		binary.LittleEndian.PutUint64(b[0:], uint64(r.Seq))
		binary.LittleEndian.PutUint32(b[8:], r.Start)
		h.Write(b[:])
	}
	const idBytes = 16 // 128 bits: no two compactions of a table ever meet
	return hex.EncodeToString(h.Sum(nil)[:idBytes])
}
