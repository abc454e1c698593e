package e2e

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestStreamedTransaction takes in one large transaction with a rolled-back savepoint,
// with the settings that the server is shipped with: sent by the source before it ends,
// and after. What it holds is the same, memory is bounded, and of the files in between
// none stays. SKIPPRD_STREAMED_ROWS says how many rows it inserts; 5000000 is the size
// that docs/postgres-source.md speaks of.
func TestStreamedTransaction(t *testing.T) {
	t.Parallel()
	rows := number("SKIPPRD_STREAMED_ROWS", 60_000)
	for _, streaming := range []string{"true", "false"} {
		t.Run("streaming="+streaming, func(t *testing.T) { streamedTransaction(t, rows, streaming) })
	}
}

func streamedTransaction(t *testing.T, rows int, streaming string) {
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE wide (id bigint PRIMARY KEY, n int NOT NULL, note text, at timestamptz DEFAULT now())",
		"CREATE TABLE small (id int PRIMARY KEY)", "INSERT INTO wide SELECT i, 0, 'before' FROM generate_series(1, 100) i")
	dir := dataDir(t)
	s := harness.New(t, dir)
	s.Start()
	from := source
	if rows < 1_000_000 { // or the source would keep all of it in its memory
		from += " options='-c logical_decoding_work_mem=1MB'"
	}
	harness.Exec(t, s.DSN, "CREATE PIPELINE big FROM POSTGRES "+quoted(from)+" FOR ALL TABLES WITH (streaming "+streaming+")")
	drain(t, s.DSN, "big")
	idle := harness.OwnPeakBytes(s.PID())

	spilled := watchFiles(t, filepath.Join(dir, "spill"))
	insert := func(from, to int) string {
		return fmt.Sprintf("INSERT INTO wide SELECT i, 1, repeat(md5(i::text), 2) FROM generate_series(%d, %d) i; ", from, to)
	}
	began := time.Now()
	open := harness.Connect(t, source)
	do(t, open, "BEGIN; "+insert(1001, 1000+rows/2)+
		"SAVEPOINT s; "+insert(100_000_001, 100_000_000+rows/10)+"UPDATE wide SET n = 9 WHERE id <= 50; ROLLBACK TO s; "+
		insert(1001+rows/2, 1000+rows)+"UPDATE wide SET n = 2 WHERE id <= 10; DELETE FROM wide WHERE id % 100 = 7; "+
		"INSERT INTO small VALUES (1)")
	if streaming == "true" && !harness.Until(harness.Patience, func() bool { return spilled.most() > 0 }) {
		t.Error("nothing of the open transaction is on disk")
	}
	do(t, open, "COMMIT")
	committed := time.Now()
	if !harness.Until(20*time.Minute, func() bool {
		n, err := harness.Text(s.DSN, "SELECT count(*) FROM big.small")
		return err == nil && n == "1"
	}) {
		t.Fatal("the transaction has not arrived")
	}
	visible := time.Since(committed)
	disk := spilled.end()
	own, all := harness.OwnPeakBytes(s.PID()), harness.PeakBytes(s.PID())
	t.Logf("%d rows: the source took %v; visible %v after its commit; peak %d MiB (%d MiB before), with the engine %d MiB; %d MiB on disk meanwhile",
		rows, committed.Sub(began).Round(time.Millisecond), visible.Round(time.Millisecond), own>>20, idle>>20, all>>20, disk>>20)
	if own > serverBytesMax {
		t.Errorf("the server had %d MiB in memory", own>>20)
	}
	if disk > 0 && streaming != "true" {
		t.Errorf("%d bytes were spilled", disk)
	}
	drain(t, s.DSN, "big")
	harness.CompareTables(t, source, s.DSN, "big", map[string]string{"wide": "id", "small": "id"})
	if left, _ := filepath.Glob(filepath.Join(dir, "spill", "*")); len(left) > 0 {
		t.Errorf("files stay: %v", left)
	}
	harness.Exec(t, s.DSN, "DROP PIPELINE big")
	s.Stop()
}

// filesWatch looks at a directory until it is ended.
type filesWatch struct {
	stop, done chan struct{}
	bytes      atomic.Int64
}

// most is the most that the files had together so far.
func (w *filesWatch) most() int64 { return w.bytes.Load() }

// end stops looking.
func (w *filesWatch) end() int64 {
	select {
	case <-w.done:
	default:
		close(w.stop)
		<-w.done
	}
	return w.most()
}

func watchFiles(t *testing.T, dir string) *filesWatch {
	w := &filesWatch{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var total int64
			_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					if info, err := d.Info(); err == nil {
						total += info.Size()
					}
				}
				return nil // a file may go meanwhile
			})
			w.bytes.Store(max(w.bytes.Load(), total))
			select {
			case <-tick.C:
			case <-w.stop:
				return
			}
		}
	}()
	t.Cleanup(func() { w.end() })
	return w
}
