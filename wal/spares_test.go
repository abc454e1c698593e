package wal

import (
	"errors"
	"testing"
)

// spaceFS is a disk with a given amount of free space.
type spaceFS struct {
	FS
	free int64
}

func (s spaceFS) FreeBytes(string) (int64, error) { return s.free, nil }

// TestLogLeavesSpaceForTheLake: the log takes no space without which it could not be
// moved to the lake.
func TestLogLeavesSpaceForTheLake(t *testing.T) {
	const segment = 1 << 20
	for _, c := range []struct {
		name       string
		used, free int64
		full       bool
	}{
		{"empty disk", 0, 100 * segment, false},
		{"half used", 49 * segment, 51 * segment, false},
		{"more than half used", 50 * segment, 51 * segment, true},
		{"no space", 0, 0, true},
		{"long log, room for what moves at once", 1000 * segment, 66 * segment, false},
	} {
		s := &spares{}
		s.init(&disk{cfg: Config{Dir: t.TempDir(), SegmentBytes: segment}, fs: spaceFS{DiskFS(), c.free}})
		s.mu.used = c.used
		if err := s.reserve(segment); errors.Is(err, ErrFull) != c.full || errors.Is(err, ErrQuota) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestQuotaIsTold: a log that is full by its own quota says so.
func TestQuotaIsTold(t *testing.T) {
	const segment = 1 << 20
	s := &spares{}
	s.init(&disk{
		cfg: Config{Dir: t.TempDir(), SegmentBytes: segment, QuotaBytes: 4 * segment}, fs: spaceFS{DiskFS(), 100 * segment},
	})
	s.mu.used = 3 * segment
	if err := s.reserve(segment); err != nil {
		t.Error(err)
	}
	if err := s.reserve(segment); !errors.Is(err, ErrQuota) || !errors.Is(err, ErrFull) {
		t.Errorf("beyond the quota: %v", err)
	}
}
