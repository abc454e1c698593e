package own

import (
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// What a writer is given when a newer one has read the log is not taken for a transaction of the log:
// the next one under that token is another.
func TestLateDeliveryIsNone(t *testing.T) {
	failed := ""
	l := NewLedger(source.NewDB(func() time.Time { return time.Time{} }), func(label, detail string) { failed = label + ": " + detail })
	mine, late := &Txn{}, &Txn{}
	l.deliver(1, 1, mine)
	l.begin(2, 0)
	l.deliver(1, 1, late)
	if _, there := l.attempts[1]; there {
		t.Error("a writer that was passed has given the log a transaction")
	}
	l.deliver(2, 1, mine)
	l.Durable(1)
	if mine.lsn != 1 || late.lsn != 0 || failed != "" {
		t.Errorf("transactions are durable as %d and %d, %s", mine.lsn, late.lsn, failed)
	}
}
