package operate

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestCopyProgress looks at COPYs that are under way, and at what others see of them.
func TestCopyProgress(t *testing.T) {
	both(t, nil, func(t *testing.T, dsn string) {
		watch, guest := connect(t, dsn, "watch"), connect(t, dsn, "guest")
		exec(t, watch, "CREATE TABLE fill (id int PRIMARY KEY, v text)")
		exec(t, watch, "DROP ROLE IF EXISTS operate_guest")
		exec(t, watch, "CREATE ROLE operate_guest")
		exec(t, guest, "SET ROLE operate_guest")
		const see = `SELECT relid::regclass, command, type, bytes_processed > 0, bytes_total, tuples_processed > 0, tuples_excluded > 0, datname = current_database()
			FROM pg_stat_progress_copy`

		from := connect(t, dsn, "from")
		in, feed := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, err := from.PgConn().CopyFrom(t.Context(), in, "COPY fill FROM STDIN WHERE id % 2 = 0")
			done <- err
		}()
		var text strings.Builder
		for i := range 100_000 { // more than is taken at once
			fmt.Fprintf(&text, "%d\tvalue %d\n", i, i)
		}
		if _, err := io.WriteString(feed, text.String()); err != nil {
			t.Fatal(err)
		}
		becomes(t, watch, see, "fill|COPY FROM|PIPE|t|0|t|t|t")
		becomes(t, guest, "SELECT relid, command, type, bytes_processed, tuples_processed, datname = current_database() FROM pg_stat_progress_copy",
			"∅|∅|∅|∅|∅|t")
		if err := feed.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatalf("copy: %v", err)
		}
		becomes(t, watch, "SELECT count(*) FROM pg_stat_progress_copy", "0")

		to := connect(t, dsn, "to")
		out, sent := io.Pipe() // nobody reads what it has to send
		go func() {
			_, err := to.PgConn().CopyTo(t.Context(), sent, "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 100000)) TO STDOUT")
			done <- err
		}()
		becomes(t, watch, "SELECT relid, command, type, bytes_processed > 0, bytes_total, tuples_processed > 0, tuples_excluded FROM pg_stat_progress_copy",
			"0|COPY TO|PIPE|t|0|t|0")
		becomes(t, watch, "SELECT wait_event_type, wait_event, state FROM pg_stat_activity WHERE application_name = 'to'", "Client|ClientWrite|active")
		if n, err := io.Copy(io.Discard, io.LimitReader(out, 100_100_000)); err != nil || n != 100_100_000 {
			t.Errorf("read %d bytes: %v", n, err)
		}
		if err := <-done; err != nil {
			t.Errorf("copy: %v", err)
		}
		exec(t, guest, "RESET ROLE; DROP ROLE operate_guest")
	})
}
