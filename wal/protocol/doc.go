// Package protocol is the commit protocol of the log, as state machines: an event in, effects out. There is no goroutine, clock, lock, context or I/O
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
// Recovery reads what a dead writer left, Reclaim deletes.
//
// On an object store the same events come from and go to producers (Append, Done,
// Failed, Publish), and other machines do the work: StoreWriter commits, by a marker
// for each body; Takeover makes a host the only writer and reads the log; StoreReclaim
// deletes its beginning; Lease and Watch let hosts know when to take over. Who is
// alive decides nothing there about what is safe: a writer that was taken over cannot
// commit, for its next marker's name is taken (F1).
package protocol
