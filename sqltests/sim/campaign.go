package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/wal/mutant"
)

// Campaign is many generated schedules.
type Campaign struct {
	// From is the first seed, Count how many follow it, at most.
	From, Count uint64
	// Records of each schedule; 0: the seed decides.
	Records int
	// Store runs hosts over an object store, instead of one over its disk.
	Store bool
	// Parallel is how many run at once; 0: one.
	Parallel int
	// RepeatEvery runs every n-th seed twice and compares the traces; 0: none.
	RepeatEvery uint64
}

// Report is what came of a campaign.
type Report struct {
	Schedules, Repeated uint64
	// CPU is what the process used meanwhile.
	CPU time.Duration
	// Marks counts the schedules that hit a mark, by its name.
	Marks map[string]uint64
	// Failed is the seed of the first schedule that broke an invariant, or did not repeat
	// itself, as Err says; nil: none did.
	Failed uint64
	Err    error
}

// PerSecond is schedules per CPU-second.
func (r *Report) PerSecond() float64 {
	if r.CPU <= 0 {
		return 0
	}
	return float64(r.Schedules+r.Repeated) / r.CPU.Seconds()
}

// campaignGC is the garbage collector's target of a campaign, in percent. What a world keeps
// is small and dies with it: at 100, a third of the processor's time would go into looking
// for it; at this, the heap stays below 200 MiB.
const campaignGC = 1600

// Run runs the campaign until it is done, ctx ends, or a schedule fails. A report of what has
// been done so far goes to progress now and then, if that is not nil. Meanwhile the garbage
// collector of the process spares the processor, not the memory.
func (c Campaign) Run(ctx context.Context, progress func(Report)) Report {
	defer debug.SetGCPercent(debug.SetGCPercent(campaignGC))
	began := cpuTime()
	var next atomic.Uint64
	next.Store(c.From)
	var mu sync.Mutex
	out := Report{Marks: map[string]uint64{}}
	var group sync.WaitGroup
	for range max(1, c.Parallel) {
		group.Go(func() {
			for ctx.Err() == nil {
				seed := next.Add(1) - 1
				if seed-c.From >= c.Count {
					return
				}
				r, repeated, err := c.one(seed)
				mu.Lock()
				stop := out.Err != nil
				out.add(seed, r, repeated, err)
				out.CPU = cpuTime() - began
				stop = stop || out.Err != nil
				if progress != nil && out.Schedules%progressEvery == 0 && !stop {
					progress(out)
				}
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	group.Wait()
	out.CPU = cpuTime() - began
	return out
}

// progressEvery is how many schedules lie between two looks at a campaign.
const progressEvery = 1000

// one runs a seed, twice if it is its turn.
func (c Campaign) one(seed uint64) (r Result, repeated bool, err error) {
	cfg := Config{Schedule: script.Generate(seed, c.Records), Store: c.Store}
	if c.Store {
		cfg.Schedule = script.GenerateStore(seed, c.Records)
	}
	if r, err = Run(cfg); err != nil {
		return r, false, err
	}
	if r.Violation != nil {
		return r, false, r.Violation
	}
	if c.RepeatEvery == 0 || seed%c.RepeatEvery != 0 {
		return r, false, nil
	}
	again, err := Run(cfg)
	if err == nil && again.TraceHash != r.TraceHash {
		err = fmt.Errorf("the same seed gave two traces: %016x after %d exchanges, %016x after %d",
			r.TraceHash, r.Points, again.TraceHash, again.Points)
	}
	return r, true, err
}

func (r *Report) add(seed uint64, one Result, repeated bool, err error) {
	r.Schedules++
	if repeated {
		r.Repeated++
	}
	for name, n := range one.Marks {
		if n > 0 {
			r.Marks[name]++
		}
	}
	if err != nil && (r.Err == nil || seed < r.Failed) {
		r.Failed, r.Err = seed, err
	}
}

// Zero are the marks that no schedule has hit.
func (r *Report) Zero(store bool) []string {
	var out []string
	for _, name := range Marks(store) {
		if r.Marks[name] == 0 {
			out = append(out, name)
		}
	}
	return out
}

// cpuTime is what the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Marks are the names of what campaigns must cover, sorted.
func Marks(store bool) []string {
	out := slices.Concat(marksAlways, marksOfOperations(store), marksOfFaults(store))
	if store {
		out = append(out, marksOfStores...)
	} else {
		out = append(out, marksOfDisks...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hunt is how a deliberate bug is looked for: by a script that was written for it, or else by
// the schedules of seeds from 0 on.
type hunt struct {
	// script is a file below the directory of scripts, "" for none.
	script string
	// store: hosts over an object store.
	store bool
	// most is how many schedules may be needed: three times the mean, at least huntLeast.
	most uint64
}

const huntLeast = 50

// hunts are those that are not an ordinary search on a disk within huntLeast schedules.
var hunts = map[mutant.Mutant]hunt{
	mutant.AckMaximum:               {script: "offsets/stopped_table.sim"},
	mutant.AckIdle:                  {most: 6000},
	mutant.OmitE:                    {most: 150},
	mutant.RepinOldSnapshot:         {most: 1000},
	mutant.RepinForever:             {script: "pins/lost_again_and_again.sim"},
	mutant.LostSliceIsEmpty:         {most: 1000},
	mutant.ReclaimHeld:              {most: 150},
	mutant.ReclaimPartly:            {most: 150},
	mutant.ReuseSeq:                 {most: 150},
	mutant.LakeBeforeSlices:         {most: 150},
	mutant.SplitTransaction:         {most: 500},
	mutant.MarkerLast:               {store: true},
	mutant.NoEpochCheck:             {store: true},
	mutant.NoTakeoverMarker:         {store: true, most: 3000},
	mutant.NoCheckpointReread:       {store: true},
	mutant.TakeoverMarkerReclaimed:  {store: true, most: 500},
	mutant.LakeNotFenced:            {store: true},
	mutant.ListBeforeFence:          {store: true},
	mutant.NoDigest:                 {script: "recovery/flipped_bit_in_each_read.sim"},
	mutant.ReaderNoChecksum:         {script: "pins/flipped_bits_in_every_read.sim"},
	mutant.IgnoreToken:              {most: 600},
	mutant.SchemaAtOnce:             {script: "alter/within_a_transaction.sim"},
	mutant.RetrySync:                {script: "append/sync_fails_and_pages_are_gone.sim"},
	mutant.StreamBeforeCopy:         {script: "copy/stream_overtakes_the_copy.sim"},
	mutant.TruncateForgotten:        {most: 150},
	mutant.KeepVoidParts:            {script: "payload/parts_are_cut.sim"},
	mutant.FillPastGroup:            {most: 150},
	mutant.FillPastParts:            {most: 150},
	mutant.FillPastLog:              {most: 150},
	mutant.FillByNewKey:             {most: 150},
	mutant.AwaitNothing:             {most: 300},
	mutant.ComputedNull:             {script: "unchanged/computed_from_what_was_left_out.sim"},
	mutant.ResyncInPlace:            {script: "copy/answers_while_it_is_copied_anew.sim"},
	mutant.PlaceTooEarly:            {script: "copy/copy_is_ahead_of_the_stream.sim"},
	mutant.DeleteAllEqual:           {most: 300},
	mutant.LakeCopyKept:             {most: 300},
	mutant.LetterOutlived:           {script: "letters/superseded_then_reclaimed.sim"},
	mutant.LetterLate:               {script: "letters/truncate_and_die.sim"},
	mutant.CopyLetterKept:           {script: "letters/copied_row_was_changed.sim"},
	mutant.LetterClosedFirst:        {script: "letters/died_while_they_are_retried.sim"},
	mutant.LetterRetriedLate:        {script: "letters/superseded_when_they_are_retried.sim"},
	mutant.OwedForgotten:            {script: "letters/keyless_row_is_deleted_before_it_is_copied.sim"},
	mutant.OwedPaidEarly:            {script: "letters/closed_as_it_was_copied.sim"},
	mutant.CopyAfterDelete:          {script: "rows/deleted_while_copied.sim"},
	mutant.OwnTakenBackKept:         {script: "copy_frames/commit_is_cancelled_in_the_queue.sim"},
	mutant.OwnSettledAnew:           {script: "copy_frames/sync_fails.sim"},
	mutant.OwnLockEarly:             {script: "copy_frames/same_key_while_it_is_made_durable.sim"},
	mutant.OwnTokensAnew:            {most: 150},
	mutant.RolledBackKept:           {script: "copy_frames/rolled_back.sim"},
	mutant.SavepointKept:            {script: "copy_frames/in_a_transaction.sim"},
	mutant.CopyFailIsEnd:            {script: "copy_frames/client_gives_up.sim"},
	mutant.CopyLostIsEnd:            {script: "copy_frames/client_vanishes.sim"},
	mutant.DefinedBeforeRows:        {script: "held/killed_behind_the_commit_point.sim"},
	mutant.HeldWithoutDefinitions:   {script: "held/killed_behind_the_commit_point.sim"},
	mutant.HeldVoidCompleted:        {script: "held/held_anew.sim"},
	mutant.DefinedToldRefused:       {script: "held/lake_fails_behind_a_drop.sim"},
	mutant.SavepointDefined:         {script: "held/back_to_a_savepoint.sim"},
	mutant.ValuesNotSetApart:        {script: "sequences/values_over_deaths.sim"},
	mutant.ValuesNotBackedUp:        {script: "sequences/store_host_dies.sim"},
	mutant.SetvalForgotten:          {script: "sequences/setval_and_two_sessions.sim"},
	mutant.UniqueNotLooked:          {script: "unique/over_deaths_and_compactions.sim"},
	mutant.UniqueNotRechecked:       {script: "unique/changed_to_the_same.sim"},
	mutant.UniqueNotProved:          {script: "unique/index_over_equal_values.sim"},
	mutant.DoubtToldCanceled:        {script: "copy_frames/commit_is_cancelled_on_its_way.sim"},
	mutant.BackupLeftOpen:           {script: "held/store_backup_without_an_answer.sim"},
	mutant.ForeignNotLooked:         {script: "foreign/child_comes_while_its_parent_goes.sim"},
	mutant.ForeignParentFree:        {script: "foreign/child_comes_while_its_parent_goes.sim"},
	mutant.ForeignNotFollowed:       {script: "foreign/cascades.sim"},
	mutant.ForeignDeferredForgotten: {script: "foreign/checked_at_once_and_taken_back.sim"},
	mutant.ForeignSettledAtOnce:     {script: "foreign/checked_at_once_and_taken_back.sim"},
	mutant.RowsNotLocked:            {script: "locks/two_lock_the_same_row.sim"},
	mutant.RefreshNotEmptied:        {script: "refresh/whole_or_not.sim"},
	mutant.CompactionNotFound:       {script: "merge/killed_between_lake_and_mark.sim"},
}

// Found says what found a deliberate bug.
type Found struct {
	// Script is the one that did, "" when seeds did: then it took Schedules of them.
	Script    string
	Schedules uint64
	Store     bool
	// Label is the invariant that broke.
	Label string
}

// String says how it was found.
func (f Found) String() string {
	switch {
	case f.Script != "":
		return f.Script
	case f.Store:
		return fmt.Sprintf("%d of store", f.Schedules)
	}
	return fmt.Sprintf("%d of disk", f.Schedules)
}

// Hunt runs schedules with a deliberate bug until one finds it, and fails when none does of
// as many as it may take. scripts is the directory of the named ones. The bug is process-wide
// meanwhile: nothing else may run. A build without the tag "mutants" finds none.
func Hunt(ctx context.Context, m mutant.Mutant, scripts string) (Found, error) {
	h := hunts[m]
	mutant.Set(m)
	defer mutant.Set(mutant.None)
	if h.script != "" {
		label, err := h.play(filepath.Join(scripts, h.script))
		if err != nil || label != "" {
			return Found{Script: h.script, Label: label}, err
		}
	}
	c := Campaign{Count: max(h.most, huntLeast), Store: h.store, Parallel: runtime.GOMAXPROCS(0)}
	r := c.Run(ctx, nil)
	if r.Err == nil {
		return Found{}, fmt.Errorf("mutant %q is not found within %d schedules (store %v)", m, r.Schedules, h.store)
	}
	label, _, _ := strings.Cut(r.Err.Error(), ":")
	return Found{Schedules: r.Failed + 1, Store: h.store, Label: label}, nil
}

// play runs the script; label is empty when all invariants hold.
func (h hunt) play(path string) (label string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	s, err := ReadSchedule(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	r, err := Run(Config{Schedule: s})
	if err != nil || r.Violation == nil {
		return "", err
	}
	return r.Violation.Label, nil
}
