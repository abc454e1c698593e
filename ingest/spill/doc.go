// Package spill keeps the changes of source transactions that have not ended yet on
// disk, so that a source which sends large transactions while they run needs bounded
// memory for them.
//
// A Store has one file per transaction. Its changes arrive in blocks, those of several
// transactions in turn; a change carries the subtransaction that made it. When the
// transaction commits, Replay gives back in order what was not rolled back; when it
// aborts, its file goes.
//
// Nothing here is ever durable, and nothing is acknowledged because of it: after a
// crash the source sends all of it again. So files are not synced, and Open and Empty
// remove what an earlier process left.
//
// A file is a sequence of frames:
//
//	frame  = length u32 | CRC-32C of payload u32 | payload
//	payload = { length u32 | subtransaction u32 | message }
//
// all little endian. A frame that does not read as it was written is ErrDamaged.
package spill
