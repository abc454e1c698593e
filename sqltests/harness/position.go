package harness

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

var dumpedPosition = regexp.MustCompile(`position "([^"]+)"`)

// LogPosition is the last durable source position in the logs under the data
// directory, "" when there is none. The server need not run.
func (s *Server) LogPosition() (string, error) {
	dirs, err := filepath.Glob(filepath.Join(s.DataDir, "wal", "*"))
	if err != nil {
		return "", err
	}
	last := ""
	for _, dir := range dirs {
		out, err := exec.Command(Binary(s.t), "waldump", dir).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("waldump %s: %w\n%s", dir, err, out)
		}
		for _, m := range dumpedPosition.FindAllSubmatch(out, -1) {
			last = string(m[1])
		}
	}
	return last, nil
}

// ErrUnmarked is about a slot whose beginning the source does not tell: the server died
// between the making of the slot and the mark on its publication, and nothing was streamed.
var ErrUnmarked = errors.New("nothing says where the slot began")

// SlotStart is where a pipeline's slot began, by the mark on its publication: all that
// precedes it is in the copy, and the log of before a RESET ends before it.
func SlotStart(source, pipeline string) (string, error) {
	start, err := Text(source, fmt.Sprintf("SELECT coalesce(max(substring(pg_catalog.obj_description(oid, 'pg_publication') "+
		"from 'slot starts at ([0-9A-F]+/[0-9A-F]+)')), '') FROM pg_publication WHERE pubname = 'skippr_%s'", pipeline))
	if err == nil && start == "" {
		err = fmt.Errorf("pipeline %s: %w", pipeline, ErrUnmarked)
	}
	return start, err
}

// AwaitSlotFree waits until nothing reads a pipeline's slot: the server's process for a reader
// that has stopped, or died, ends a moment later, and until then the slot cannot be changed.
func AwaitSlotFree(t testing.TB, source, pipeline string) {
	t.Helper()
	if !Until(Patience, func() bool {
		n, err := Text(source, fmt.Sprintf("SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'skippr_%s' AND active", pipeline))
		return err == nil && n == "0"
	}) {
		t.Fatalf("the slot of pipeline %s is still read", pipeline)
	}
}

// CheckPosition says whether the confirmed position of a pipeline's slot is ahead of
// where it began and of the log that the dead server left: then what lies between is lost.
func (s *Server) CheckPosition(source, pipeline string) error {
	confirmed, err := Text(source, fmt.Sprintf(
		"SELECT coalesce(max(confirmed_flush_lsn)::text, '') FROM pg_replication_slots WHERE slot_name = 'skippr_%s'", pipeline))
	if err != nil || confirmed == "" { // no slot: nothing is acknowledged
		return err
	}
	start, err := SlotStart(source, pipeline)
	if err != nil {
		return err
	}
	logged, err := s.LogPosition()
	if err != nil {
		return err
	}
	if logged == "" {
		logged = "0/0" // nothing streamed yet
	}
	ahead, err := Text(source, fmt.Sprintf("SELECT '%s'::pg_lsn > greatest('%s'::pg_lsn, '%s'::pg_lsn)", confirmed, start, logged))
	if err == nil && ahead != "f" {
		err = fmt.Errorf("the slot's confirmed position %s is ahead of the log's %s, and it began at %s", confirmed, logged, start)
	}
	return err
}
