package ddl

import (
	"strings"
	"testing"
	"time"
)

// What PAUSE says of the source's pace: nothing that is not known, and no forecast
// without a limit.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		status PipelineStatus
		want   string
	}{
		{PipelineStatus{}, ""},
		{PipelineStatus{WrittenBytesPerSecond: 1 << 20}, ", and it writes 60.0 MB a minute"},
		{
			PipelineStatus{WrittenBytesPerSecond: 1 << 20, Limited: true, SafeBytes: 600 << 20},
			", and it writes 60.0 MB a minute: in about 10m0s it may drop what the pipeline needs (max_slot_wal_keep_size)",
		},
		{
			PipelineStatus{WrittenBytesPerSecond: 1 << 20, Limited: true, SafeBytes: -5},
			", and it writes 60.0 MB a minute: in about 0s it may drop what the pipeline needs (max_slot_wal_keep_size)",
		},
		{
			PipelineStatus{WrittenBytesPerSecond: 2, Limited: true, SafeBytes: 1 << 62},
			", and it writes 0.0 MB a minute: in about " + (1_000_000_000 * time.Second).String() + " it may drop what the pipeline needs (max_slot_wal_keep_size)",
		},
	} {
		if got := pace(c.status); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.status, got, c.want)
		}
	}
}

// A pipeline whose source waits for others is created: it starts by itself.
func TestCreateWaits(t *testing.T) {
	x, f := newExecutor(t)
	f.fail["start"] = &Waiting{Reason: "somebody else"}
	const sql = "CREATE PIPELINE w FROM POSTGRES 'host=h dbname=d' FOR ALL TABLES"
	const want = `NOTICE pipeline "w" starts later by itself: somebody else`
	if got := run(t, x, f, sql); !strings.Contains(got, want) || strings.Contains(got, "drop") {
		t.Fatalf("got %s", got)
	}
	delete(f.fail, "start")
	if got := run(t, x, f, "ALTER PIPELINE w ENABLE"); strings.Contains(got, "NOTICE") {
		t.Fatalf("got %s", got)
	}
}
