package wal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/segment"
)

// Config is the settings of a log.
type Config struct {
	// Dir is the log's own directory; made when it does not exist.
	Dir      string
	Pipeline change.PipelineID
	// SegmentBytes is the length of a segment file (default 64 MiB, at least 64 KiB,
	// at most 1 GiB). A larger group gets a segment of its own size.
	SegmentBytes int64
	// Spares is how many pre-written files wait to become segments (default 2).
	// They are made once the log has its first segment.
	Spares int
	// GroupBytes is about how much one commit makes durable (default 8 MiB). Producers
	// wait when four times as much is queued.
	GroupBytes int64
	// QuotaBytes bounds the files of the log, spares included; zero does not.
	QuotaBytes int64

	// The rest is for a log on an object store (Deps.Store). There Dir is a mirror of
	// what is committed, SegmentBytes and Spares are not used, and each commit is a
	// segment.

	// Prefix is where the log's objects are; they share it with nothing else.
	Prefix string
	// Owner names this host to people who look at the log.
	Owner string
	// Linger is how long a commit waits for more groups (default 250 ms; negative: not
	// at all), unless GroupBytes are there before.
	Linger time.Duration
	// LeaseTTL is after how long without a sign of life another host may take the log
	// over (default 15 s). Longer bears longer outages of the store, shorter fails over
	// sooner; neither is less safe.
	LeaseTTL time.Duration
}

// Deps are a log's collaborators.
type Deps struct {
	Publisher  Publisher
	Clock      env.Clock
	IDs        env.IDs
	Log        *slog.Logger
	Failpoints env.Failpoints // nil: none
	FS         FS             // nil: the machine's file system
	// SegmentBytesMin is the least Config.SegmentBytes; zero means 64 KiB. Simulations
	// lower it, so that segments are sealed often.
	SegmentBytesMin int64

	// Store holds the log. Nil: Config.Dir does.
	Store objstore.Store
	// FenceLake makes the lake's tables refuse whoever compacts for an older epoch. It
	// is called by a takeover before it reads the log. Nil: nothing does.
	FenceLake func(ctx context.Context, epoch segment.Epoch) error
}

const (
	defaultSegmentBytes = 64 << 20
	defaultGroupBytes   = 8 << 20
	defaultSpares       = 2
	segmentBytesMin     = 64 << 10
	defaultLinger       = 250 * time.Millisecond
	defaultLeaseTTL     = 15 * time.Second
	// queuedCommits is how many commits' worth of groups may wait in memory.
	queuedCommits = 4
)

func (c Config) withDefaults() Config {
	if c.SegmentBytes == 0 {
		c.SegmentBytes = defaultSegmentBytes
	}
	if c.GroupBytes == 0 {
		c.GroupBytes = defaultGroupBytes
	}
	if c.Spares == 0 {
		c.Spares = defaultSpares
	}
	if c.Linger == 0 {
		c.Linger = defaultLinger
	}
	if c.LeaseTTL == 0 {
		c.LeaseTTL = defaultLeaseTTL
	}
	return c
}

// Validate reports all that is wrong with the settings.
func (c Config) Validate() error { return c.validate(segmentBytesMin) }

func (c Config) validate(segmentBytesMin int64) error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("wal: Dir is required"))
	}
	if c.Pipeline == 0 {
		errs = append(errs, errors.New("wal: Pipeline is required"))
	}
	if c.SegmentBytes < segmentBytesMin || c.SegmentBytes > segment.BodyBytesMax {
		errs = append(errs, fmt.Errorf("wal: SegmentBytes %d is not within %d and %d",
			c.SegmentBytes, segmentBytesMin, segment.BodyBytesMax))
	}
	if c.LeaseTTL < 0 {
		errs = append(errs, errors.New("wal: LeaseTTL must not be negative"))
	}
	if c.GroupBytes < 1 || c.Spares < 0 || c.QuotaBytes < 0 {
		errs = append(errs, errors.New("wal: GroupBytes, Spares and QuotaBytes must not be negative"))
	}
	if c.QuotaBytes > 0 && c.QuotaBytes < c.SegmentBytes {
		errs = append(errs, errors.New("wal: QuotaBytes is less than one segment"))
	}
	return errors.Join(errs...)
}

func (d Deps) withDefaults() Deps {
	if d.Failpoints == nil {
		d.Failpoints = env.NoFailpoints
	}
	if d.FS == nil {
		d.FS = DiskFS()
	}
	if d.SegmentBytesMin == 0 {
		d.SegmentBytesMin = segmentBytesMin
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	return d
}

func (d Deps) validate() error {
	if d.Publisher == nil || d.Clock == nil || d.IDs == nil {
		return errors.New("wal: Publisher, Clock and IDs are required")
	}
	return nil
}
