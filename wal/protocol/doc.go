// Package protocol is the commit protocol of the log on a disk, as state machines:
// an event in, effects out. There is no goroutine, clock, lock, context or I/O
// here; whoever runs a machine executes its effects and hands their outcomes back
// as events. The log does it with goroutines, a simulator in seeded order.
//
// Writer commits groups:
//
//	          Opened            Append: Write
//	closed ───────────▶ ready ─────────────────▶ writing
//	  ▲ ▲                 ▲ ▲                       │ │
//	  │ │ full: Seal,Open │ └── Written: Publish ───┘ │ Written with an error:
//	  │ └─────────────────┘                           │ all appends fail
//	  │      Sealed                Inspected          ▼
//	  └─────────────── cutting ◀────────────────── poisoned
//
// The commit point is the completion of Write: the group end is durable (W1). A
// write that failed may or may not be on disk. The writer never syncs that handle
// again: it has the file read anew and cuts it, by a marker, at the last byte known
// durable; what the marker does not cover does not exist (W2). Then it goes on in a
// new segment.
//
// Recovery reads what a dead writer left, Reclaim deletes. The writer on an object
// store will stand beside Writer, with the same events towards producers (Append,
// Done, Failed, Publish).
package protocol
