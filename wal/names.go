package wal

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

const (
	bodySuffix      = ".seg"
	markerSuffix    = ".seg.commit"
	temporarySuffix = ".tmp"
	sparePrefix     = "spare-"
	lockName        = "LOCK"
)

// PipelineDir is the directory of a pipeline's log below the data directory.
func PipelineDir(dataDir string, p change.PipelineID) string {
	return filepath.Join(dataDir, "wal", fmt.Sprintf("%08x", uint32(p)))
}

func bodyName(dir string, seq segment.Seq) string {
	return filepath.Join(dir, seq.ID()+bodySuffix)
}

func markerName(dir string, seq segment.Seq) string {
	return filepath.Join(dir, seq.ID()+markerSuffix)
}

// parseSeq reads the seq of a file's name with the given suffix.
func parseSeq(name, suffix string) (segment.Seq, bool) {
	id, ok := strings.CutSuffix(name, suffix)
	if !ok || len(id) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(id, 16, 64)
	return segment.Seq(n), err == nil && n != 0 && segment.Seq(n).ID() == id
}

func parseSpare(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, sparePrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0
}
