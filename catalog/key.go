package catalog

import (
	"encoding/binary"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// Keys begin with one of these bytes, then have big-endian numbers, so that they sort as
// their numbers. Prefixes from 0x40 on belong to others (the lake's own catalog).
const (
	prefixFormat     = 0x01
	prefixCounter    = 0x02 // name → u64
	prefixKeyCheck   = 0x03
	prefixRebuild    = 0x04 // nothing, or pipeline id: a rebuild that is not finished
	prefixSync       = 0x05 // written by Sync
	prefixPipeline   = 0x10 // pipeline id
	prefixTable      = 0x11 // table id
	prefixPlan       = 0x12 // table id: backfill plan
	prefixProgress   = 0x13 // table id: backfill progress
	prefixConnection = 0x14 // name
	prefixSecret     = 0x15 // name
	prefixRole       = 0x16 // name
	prefixSetting    = 0x17 // name
	prefixSchema     = 0x18 // name
	prefixLake       = 0x19 // table id
	prefixCompaction = 0x1a // table id, compaction id
	prefixEvent      = 0x1b // ^event number: newest first
	prefixAcked      = 0x1c // compaction id → table id
	prefixLeftLake   = 0x1d // table id: its lake side is still to be removed
	prefixLeftLog    = 0x1e // pipeline id: its log is still to be removed
	prefixRight      = 0x1f // right.Object.Key: owner and privileges of an object
	prefixOffset     = 0x20 // pipeline id
	prefixSegment    = 0x21 // pipeline id, seq
	prefixLive       = 0x22 // table id, seq, start: slices not compacted
	prefixDone       = 0x23 // pipeline id, seq, start: slices compacted, segment still there
	prefixPending    = 0x24 // pipeline id, seq, start: slices of a transaction that has not ended
	prefixPendingTxn = 0x25 // pipeline id: that transaction
	prefixDeadLetter = 0x26 // table id, closed, token, ordinal, number
	prefixView       = 0x2a // schema, 0, name
	prefixSequence   = 0x2b // schema, 0, name
	prefixType       = 0x2c // schema, 0, name
)

func nameKey(prefix byte, name string) []byte { return append([]byte{prefix}, name...) }

func id32Key(prefix byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{prefix}, id)
}

func pipelineKey(prefix byte, id change.PipelineID) []byte { return id32Key(prefix, uint32(id)) }

func tableKey(prefix byte, id change.TableID) []byte { return id32Key(prefix, uint32(id)) }

func compactionKey(table change.TableID, id string) []byte {
	return append(tableKey(prefixCompaction, table), id...)
}

func ackedKey(id string) []byte { return nameKey(prefixAcked, id) }

func eventKey(n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{prefixEvent}, ^n)
}

func segmentKey(dst []byte, pipeline change.PipelineID, seq segment.Seq) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, prefixSegment), uint32(pipeline))
	return binary.BigEndian.AppendUint64(dst, uint64(seq))
}

func liveKey(dst []byte, table change.TableID, ref segment.SliceRef) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, prefixLive), uint32(table))
	return appendRef(dst, ref)
}

func doneKey(dst []byte, pipeline change.PipelineID, ref segment.SliceRef) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, prefixDone), uint32(pipeline))
	return appendRef(dst, ref)
}

func pendingKey(dst []byte, pipeline change.PipelineID, ref segment.SliceRef) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, prefixPending), uint32(pipeline))
	return appendRef(dst, ref)
}

func appendRef(dst []byte, ref segment.SliceRef) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(ref.Seq))
	return binary.BigEndian.AppendUint32(dst, ref.Start)
}

// sliceKeyBytes is the length of a live, done or pending key.
const sliceKeyBytes = 1 + 4 + 8 + 4

// splitSliceKey takes a live, done or pending key apart.
func splitSliceKey(key []byte) (id uint32, ref segment.SliceRef, ok bool) {
	if len(key) != sliceKeyBytes {
		return 0, ref, false
	}
	ref.Seq = segment.Seq(binary.BigEndian.Uint64(key[5:]))
	ref.Start = binary.BigEndian.Uint32(key[13:])
	return binary.BigEndian.Uint32(key[1:]), ref, true
}

// liveRange bounds the live slices of a table from a ref on.
func liveRange(table change.TableID, from segment.SliceRef) (lower, upper []byte) {
	return liveKey(nil, table, from), kv.PrefixEnd(tableKey(prefixLive, table))
}

// doneRange bounds the compacted slices of one segment.
func doneRange(pipeline change.PipelineID, seq segment.Seq) (lower, upper []byte) {
	lower = doneKey(nil, pipeline, segment.SliceRef{Seq: seq})
	return lower, kv.PrefixEnd(lower[:1+4+8])
}
