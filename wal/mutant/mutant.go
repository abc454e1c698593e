// Package mutant switches deliberate bugs of the protocol on, so that a test can prove
// that the simulator finds each of them (docs/simulation.md). Without the build tag
// "mutants" On is constantly false, and the bugs are no part of the program.
package mutant

// Mutant is a deliberate bug. The set is closed.
type Mutant uint8

// The mutants, by the part of the protocol that they break.
const (
	// None breaks nothing.
	None Mutant = iota
	// AckBeforeCommit answers an append before its bytes are durable.
	AckBeforeCommit
	// AckBeforePublish answers an append before the catalog has it.
	AckBeforePublish
	// AckMaximum acknowledges the furthest table's position instead of the least.
	AckMaximum
	// AckIdle acknowledges an idle position before it is durable.
	AckIdle
	// OmitE pins slices as live that the lake has.
	OmitE
	// LakeBeforeSlices pins the lake's snapshot of an earlier moment than the slices.
	LakeBeforeSlices
	// RepinOldSnapshot keeps the lost pin's catalog snapshot at a re-pin.
	RepinOldSnapshot
	// RepinForever takes a new pin however often one was lost.
	RepinForever
	// LostSliceIsEmpty reads a lost slice as one without rows.
	LostSliceIsEmpty
	// ReclaimHeld reclaims in spite of holds.
	ReclaimHeld
	// ReclaimPartly reclaims a segment of which any slice is compacted.
	ReclaimPartly
	// MarkerLast deletes bodies before markers.
	MarkerLast
	// ForgetFirst drops a segment's catalog rows before its files.
	ForgetFirst
	// ReuseSeq gives a new segment the number of one that was reclaimed.
	ReuseSeq
	// NoEpochCheck lets a writer go on that finds another's marker.
	NoEpochCheck
	// NoTakeoverMarker begins to write without closing the old epoch's next seq.
	NoTakeoverMarker
	// NoCheckpointReread begins to write without reading the checkpoint again.
	NoCheckpointReread
	// TakeoverMarkerReclaimed lets reclaim delete take-over markers.
	TakeoverMarkerReclaimed
	// LakeNotFenced lets the old writer's compactor commit after a take-over.
	LakeNotFenced
	// ListBeforeFence lists the log before the old writer is fenced.
	ListBeforeFence
	// NoDigest recovers bodies without checking their digests.
	NoDigest
	// ReaderNoChecksum reads slices without checking their records.
	ReaderNoChecksum
	// PublishBeforeDurable gives the catalog a group before it is durable.
	PublishBeforeDurable
	// MarkBeforeLake marks slices compacted before the lake has them.
	MarkBeforeLake
	// CompactionNotFound commits a compaction again without looking for it in the lake.
	CompactionNotFound
	// RandomCompactionID names a compaction anew at each attempt.
	RandomCompactionID
	// DropTombstones drops deletes whose key may still be read.
	DropTombstones
	// IgnoreToken lets the live change win whatever its order token.
	IgnoreToken
	// StreamBeforeCopy compacts streamed changes before the copied rows.
	StreamBeforeCopy
	// SplitTransaction shows the parts of a transaction before its commit.
	SplitTransaction
	// KeepVoidParts makes parts of an aborted transaction visible.
	KeepVoidParts
	// SchemaAtOnce applies a schema change before the rows that precede it.
	SchemaAtOnce
	// TruncateForgotten leaves the lake's rows at a TRUNCATE.
	TruncateForgotten
	// RetrySync syncs the same handle again after a failed sync.
	RetrySync
	// NoTailCompaction never compacts what no threshold asks for.
	NoTailCompaction
	// FillPastGroup looks past the changes of its own group for what an update left out.
	FillPastGroup
	// FillPastParts looks past the parts of its own transaction.
	FillPastParts
	// FillPastLog looks only in the lake.
	FillPastLog
	// FillByNewKey looks under the key that the update gave the row.
	FillByNewKey
	// ResyncInPlace copies a table anew in its own place, though queries read it.
	ResyncInPlace
	// PlaceTooEarly gives a copy its place before the stream has passed its horizon.
	PlaceTooEarly
	// DeleteAllEqual has the delete of a whole row take all equal rows of the log away.
	DeleteAllEqual
	// LakeCopyKept compacts the delete of a whole row without one of the lake's rows.
	LakeCopyKept
	// CopyAfterDelete takes a copied row for newer than the deletes before it in the log.
	CopyAfterDelete
	// LetterOutlived leaves a dead letter open that a later change of its key supersedes.
	LetterOutlived
	// LetterLate makes a dead letter durable with the group after the position that passes it.
	LetterLate
	// CopyLetterKept keeps the dead letter of a copied row that has changed at the source.
	CopyLetterKept
	// OwedForgotten keeps the dead letter of a copied row that the stream has deleted before,
	// of a table without a key.
	OwedForgotten
	// OwedPaidEarly makes the end of such a letter durable before the transaction that has
	// deleted its row.
	OwedPaidEarly
	// LetterClosedFirst makes the end of retried dead letters durable before their rows.
	LetterClosedFirst
	// LetterRetriedLate retries the dead letters that were open before the pipeline stood still.
	LetterRetriedLate
	// AwaitNothing lets a reader that waits for a position read at once.
	AwaitNothing
	// ComputedNull leaves columns null that the source computes and does not send.
	ComputedNull
	// OwnToldEarly tells a session of its commit before that is durable.
	OwnToldEarly
	// OwnTakenBackKept commits a transaction of which the session was told that it is not.
	OwnTakenBackKept
	// OwnSettledAnew takes what the log was given for durable when the stream begins anew.
	OwnSettledAnew
	// OwnTokensAnew gives sessions' transactions order tokens that were given out before.
	OwnTokensAnew
	// OwnLockEarly lets others change a table while what a session has changed is on its way.
	OwnLockEarly
	// RolledBackKept commits what a session rolls back.
	RolledBackKept
	// SavepointKept keeps what came after the savepoint that a session goes back to.
	SavepointKept
	// CopyFailIsEnd loads what a client sent of a COPY before it gave that up.
	CopyFailIsEnd
	// CopyLostIsEnd loads what a client sent of a COPY before it was gone.
	CopyLostIsEnd
	// DefinedBeforeRows commits what a transaction defines before its rows.
	DefinedBeforeRows
	// HeldWithoutDefinitions commits rows that are held, and not what their transaction defines.
	HeldWithoutDefinitions
	// HeldVoidCompleted commits what a transaction defines, though the rows it holds are void.
	HeldVoidCompleted
	// DefinedToldRefused tells a session that nothing of its definitions takes place when the
	// pipeline does not go on behind them.
	DefinedToldRefused
	// SavepointDefined keeps what was defined after the savepoint that a session goes back to.
	SavepointDefined
	// ValuesNotSetApart gives values of a sequence before they are set apart durably.
	ValuesNotSetApart
	// ValuesNotBackedUp sets values of a sequence apart in a catalog whose backup lacks them.
	ValuesNotBackedUp
	// SetvalForgotten goes on giving the values that were set apart before setval.
	SetvalForgotten
	// UniqueNotLooked adds rows without a look for their unique values.
	UniqueNotLooked
	// UniqueNotRechecked changes rows without a look for their unique values.
	UniqueNotRechecked
	// UniqueNotProved makes a unique index over rows that are not.
	UniqueNotProved
	// DoubtToldCanceled tells a client whose commit was canceled on its way that it was canceled.
	DoubtToldCanceled
	// BackupLeftOpen writes rows while the backup may have a definition that was undone.
	BackupLeftOpen
	// ForeignNotLooked adds rows without a look for what they refer to.
	ForeignNotLooked
	// ForeignParentFree lets others change what new rows of a transaction refer to.
	ForeignParentFree
	// ForeignNotFollowed leaves rows alone whose parent goes.
	ForeignNotFollowed
	// ForeignDeferredForgotten leaves out what is left to be checked at the commit.
	ForeignDeferredForgotten
	// ForeignSettledAtOnce takes what SET CONSTRAINTS has checked for checked for good.
	ForeignSettledAtOnce
	// RowsNotLocked lets others change the rows that a query has locked.
	RowsNotLocked
	// RefreshNotEmptied leaves the rows of before in a materialized view that is filled anew.
	RefreshNotEmptied

	end
)

// All lists every mutant but None.
func All() []Mutant {
	all := make([]Mutant, 0, end-1)
	for m := None + 1; m < end; m++ {
		all = append(all, m)
	}
	return all
}

// String is the mutant's name.
func (m Mutant) String() string {
	if m >= end {
		return "unknown mutant"
	}
	return names[m]
}

var names = [end]string{
	None: "none", AckBeforeCommit: "ack before commit", AckBeforePublish: "ack before publish",
	AckMaximum: "ack the maximum", AckIdle: "ack an idle position", OmitE: "omit E",
	LakeBeforeSlices: "lake before slices", RepinOldSnapshot: "re-pin keeps the snapshot",
	RepinForever: "re-pin forever", LostSliceIsEmpty: "lost slice is empty", ReclaimHeld: "reclaim ignores holds",
	ReclaimPartly: "reclaim partly compacted", MarkerLast: "marker last", ForgetFirst: "forget first",
	ReuseSeq: "reuse seq", NoEpochCheck: "no epoch check", NoTakeoverMarker: "no take-over marker",
	NoCheckpointReread: "no re-read of the checkpoint", TakeoverMarkerReclaimed: "take-over marker reclaimed",
	LakeNotFenced: "lake not fenced", ListBeforeFence: "list before fence", NoDigest: "recovery without digests",
	ReaderNoChecksum: "reader without checksums", PublishBeforeDurable: "publish before durable",
	MarkBeforeLake: "mark before lake", CompactionNotFound: "compaction not looked for",
	RandomCompactionID: "random compaction id", DropTombstones: "tombstones dropped early",
	IgnoreToken: "token ignored", StreamBeforeCopy: "stream before copy", SplitTransaction: "transaction split",
	KeepVoidParts: "void parts kept", SchemaAtOnce: "schema change at once", TruncateForgotten: "truncate forgotten",
	RetrySync: "sync again after a failure", NoTailCompaction: "no tail compaction",
	DeleteAllEqual: "delete of all equal rows", LakeCopyKept: "deleted row kept in the lake",
	CopyAfterDelete: "copied row after its delete",
	FillPastGroup:   "look-up ignores its group", FillPastParts: "look-up ignores its transaction's parts",
	FillPastLog: "look-up ignores the log", FillByNewKey: "look-up by the new key",
	ResyncInPlace: "resync in place",
	PlaceTooEarly: "place too early", LetterOutlived: "dead letter outlived", LetterLate: "dead letter late",
	CopyLetterKept: "dead letter of a changed copy", OwedForgotten: "dead letter of a row deleted before",
	OwedPaidEarly:     "dead letter closed before its row's delete",
	LetterClosedFirst: "dead letter closed before its row", LetterRetriedLate: "dead letter of before retried",
	AwaitNothing: "position not awaited", ComputedNull: "computed column left null",
	OwnToldEarly: "own commit told early", OwnTakenBackKept: "own commit taken back and made", OwnSettledAnew: "own commit settled by a new stream",
	OwnTokensAnew: "own tokens given out again", OwnLockEarly: "own lock let go before its commit", RolledBackKept: "rolled back and made",
	SavepointKept: "savepoint keeps what came after", CopyFailIsEnd: "copy that was given up is loaded",
	CopyLostIsEnd:     "copy of a client that is gone is loaded",
	DefinedBeforeRows: "defined before its rows", HeldWithoutDefinitions: "held rows without their definitions",
	HeldVoidCompleted: "held rows that are void", DefinedToldRefused: "definitions told as refused",
	SavepointDefined:  "savepoint keeps what was defined after",
	ValuesNotSetApart: "values not set apart", ValuesNotBackedUp: "values not backed up", SetvalForgotten: "setval forgotten",
	UniqueNotLooked: "unique values not looked up", UniqueNotRechecked: "changed unique values not looked up",
	UniqueNotProved: "unique index not proved", DoubtToldCanceled: "commit in doubt told as canceled",
	BackupLeftOpen:   "backup left open",
	ForeignNotLooked: "what rows refer to not looked up", ForeignParentFree: "parent not locked", ForeignNotFollowed: "children not followed",
	ForeignDeferredForgotten: "deferred check forgotten", ForeignSettledAtOnce: "deferred check settled for good",
	RowsNotLocked: "rows not locked", RefreshNotEmptied: "materialized view not emptied",
}
