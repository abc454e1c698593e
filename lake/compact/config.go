package compact

import (
	"errors"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/wal/protocol"
)

// Config tunes compaction. The zero value is the default.
type Config struct {
	// Parallel is how many tables are compacted at once; default 2.
	Parallel int
	// Interval is how often the tables are looked at; default 1 s.
	Interval time.Duration
	// Patience is how long the work on one table may keep others waiting; default 2 min.
	// What takes longer goes on beside theirs, of as many tables as Parallel.
	Patience time.Duration
	// CommitInterval is how long a change stays out of the lake at most, unless the
	// pipeline says otherwise; default 60 s.
	CommitInterval time.Duration
	// WantBytes and WantRows start a compaction before CommitInterval; defaults 64 MiB
	// of log, but not more than MostBytes, and 1,000,000 rows.
	WantBytes, WantRows int64
	// MostBytes and MostRows bound what one compaction of changes holds in memory, about
	// four times as much, in each of Parallel; what waits for more than that goes in
	// several. Defaults 48 MiB of log and 2,000,000 rows. MostBackfillBytes bounds one of copied
	// rows, which pass slice by slice; default 1 GiB.
	MostBytes, MostRows, MostBackfillBytes int64
	// MostSlices bounds the slices named by one snapshot; default 16,384.
	MostSlices int64
	// Snapshots are kept per lake table; default 20. MaintainEvery is after how many
	// commits they are expired; default 20.
	Snapshots, MaintainEvery int
	// FileGrace is how long a file stays that no snapshot names; default 10 min.
	FileGrace time.Duration
	// ReclaimDelay is how long a segment stays after its last slice was compacted, so
	// that running queries need not start over; default 10 s.
	ReclaimDelay time.Duration
	// HoldMost is how long a reader's hold keeps the log from being reclaimed; default
	// 10 min.
	HoldMost time.Duration
}

func (c Config) withDefaults() Config {
	setInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	setDuration := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	setInt(&c.Parallel, 2)
	setInt(&c.Snapshots, 20)
	setInt(&c.MaintainEvery, 20)
	set(&c.WantBytes, 64<<20)
	set(&c.WantRows, 1_000_000)
	set(&c.MostBytes, 48<<20)
	set(&c.MostRows, 2_000_000)
	set(&c.MostBackfillBytes, 1<<30)
	set(&c.MostSlices, 16_384)
	setDuration(&c.Interval, time.Second)
	setDuration(&c.Patience, 2*time.Minute)
	setDuration(&c.CommitInterval, time.Minute)
	setDuration(&c.FileGrace, 10*time.Minute)
	setDuration(&c.ReclaimDelay, 10*time.Second)
	setDuration(&c.HoldMost, 10*time.Minute)
	return c
}

// Validate reports all that is wrong.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	for _, v := range []struct {
		name string
		n    int64
	}{
		{"compaction parallel", int64(c.Parallel)},
		{"compaction snapshots", int64(c.Snapshots)},
		{"compaction maintain every", int64(c.MaintainEvery)},
		{"compaction want bytes", c.WantBytes},
		{"compaction want rows", c.WantRows},
		{"compaction most bytes", c.MostBytes},
		{"compaction most rows", c.MostRows},
		{"compaction most backfill bytes", c.MostBackfillBytes},
		{"compaction most slices", c.MostSlices},
		{"compaction interval", int64(c.Interval)},
		{"compaction patience", int64(c.Patience)},
		{"commit interval", int64(c.CommitInterval)},
		{"lake file grace", int64(c.FileGrace)},
		{"reclaim delay", int64(c.ReclaimDelay)},
		{"longest hold", int64(c.HoldMost)},
	} {
		if v.n <= 0 {
			errs = append(errs, fmt.Errorf("%s must be positive: %d", v.name, v.n))
		}
	}
	return errors.Join(errs...)
}

func (c Config) limits() protocol.CompactionLimits {
	return protocol.CompactionLimits{
		WantBytes: c.WantBytes, WantRows: c.WantRows, MostBytes: c.MostBytes, MostRows: c.MostRows,
		MostBackfillBytes: c.MostBackfillBytes, MostSlice: c.MostSlices,
	}
}
