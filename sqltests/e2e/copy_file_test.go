package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestCopyFiles: COPY with files and programs of the server does what PostgreSQL's does, errors
// and rights too.
func TestCopyFiles(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir(), "--server-files", "programs")
	s.Start()
	ours, theirs := rawConn(t, s.DSN), rawConn(t, pgtest.Start(t).CreateDatabase(t))
	dir := t.TempDir()
	for _, name := range []string{dir, filepath.Dir(dir), filepath.Join(dir, "ours"), filepath.Join(dir, "pgsq")} {
		if err := os.MkdirAll(name, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, 0o777); err != nil { // PostgreSQL runs as another user
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "in.csv"), []byte("n,v\n1,a\n2,\"b,é\"\n3,\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	both := func(sql string) {
		t.Helper()
		got := told(t.Context(), ours, fmt.Sprintf(sql, dir, "ours"))
		want := told(t.Context(), theirs, fmt.Sprintf(sql, dir, "pgsq"))
		got, want = strings.ReplaceAll(got, "/ours", "/x"), strings.ReplaceAll(want, "/pgsq", "/x")
		if got != want {
			t.Errorf("%s:\n%q\nPostgreSQL:\n%q", sql, got, want)
		}
	}
	for _, sql := range []string{
		" /* %s %s */ CREATE TABLE cf (n int PRIMARY KEY, v text)",
		" COPY cf FROM '%[1]s/in.csv' (FORMAT csv, HEADER) /* %[2]s */",
		" COPY (SELECT * FROM cf ORDER BY n) TO '%[1]s/%[2]s/out.txt'",
		" COPY (SELECT * FROM cf ORDER BY n DESC) TO '%[1]s/%[2]s/out.csv' (FORMAT csv, HEADER, ENCODING 'latin1')",
		" COPY (SELECT * FROM cf WHERE n = 1) TO '%[1]s/%[2]s/out.csv' (FORMAT csv, HEADER, ENCODING 'latin1')",
		" COPY (SELECT * FROM cf ORDER BY n) TO '%[1]s/%[2]s/out.bin' (FORMAT binary)",
		" TRUNCATE cf; COPY cf FROM '%[1]s/%[2]s/out.bin' (FORMAT binary); COPY (SELECT * FROM cf) TO '%[1]s/%[2]s/again'",
		" COPY cf FROM PROGRAM 'printf ''10\\tx\\n11\\ty\\n'' # %[1]s /%[2]s'",
		" COPY cf TO PROGRAM 'sort > %[1]s/%[2]s/sorted'",
		" COPY cf FROM PROGRAM 'printf ''20\\tx\\n''; exit 3 # %[1]s /%[2]s'",
		" COPY cf FROM PROGRAM 'yes # %[1]s /%[2]s'",
		" COPY cf TO PROGRAM 'cat > /dev/null; exit 5 # %[1]s /%[2]s'",
		" COPY cf FROM '%[1]s/%[2]s/none'",
		" COPY cf FROM '%[1]s/%[2]s'",
		" COPY cf TO '%[1]s/%[2]s'",
		" COPY cf TO '%[1]s/%[2]s/none/out'",
		" COPY cf TO '%[1]s/in.csv/out' /* %[2]s */",
		" COPY cf FROM '%[1]s/in.csv/out' /* %[2]s */",
		" COPY cf FROM '%[1]s/in.csv' (FORMAT csv) /* %[2]s */",
		" COPY cf TO PROGRAM 'nosuchprogram # %[1]s /%[2]s'",
		" COPY cf FROM PROGRAM 'kill -9 $$ # %[1]s /%[2]s'",
		" COPY cf FROM PROGRAM 'printf ''70\tx\n\\\\.\n''; yes # %[1]s /%[2]s'",
		" COPY (INSERT INTO cf VALUES (80, 'written') RETURNING *) TO '%[1]s/%[2]s/written'",
		" COPY (SELECT 1 / (n - 80) FROM cf WHERE n = 80) TO '%[1]s/%[2]s/failed'",
		" COPY nosuchtable TO '%[1]s/%[2]s/nosuch'",
		" COPY cf TO '%[1]s/%[2]s/nosuch' (FORMAT nosuch)",
		" COPY cf TO 'relative' /* %[1]s %[2]s */",
		" COPY cf TO '/dev/null' /* %[1]s %[2]s */",
		" COPY cf FROM '%[1]s/in.csv' /* %[2]s */",
		" SELECT n, v FROM cf ORDER BY n /* %[1]s %[2]s */",
		" CREATE ROLE copyist; SET ROLE copyist /* %[1]s %[2]s */",
		" COPY cf FROM '%[1]s/in.csv' /* %[2]s */",
		" COPY cf TO '%[1]s/%[2]s/refused'",
		" COPY cf TO PROGRAM 'true # %[1]s /%[2]s'",
		" RESET ROLE; GRANT pg_write_server_files TO copyist; GRANT SELECT ON cf TO copyist; SET ROLE copyist /* %[1]s %[2]s */",
		" COPY cf TO '%[1]s/%[2]s/granted'",
		" COPY cf FROM '%[1]s/%[2]s/granted'",
		" RESET ROLE; REVOKE ALL ON cf FROM copyist; DROP ROLE copyist /* %[1]s %[2]s */",
	} {
		both(sql)
	}
	for _, name := range []string{"out.txt", "out.csv", "out.bin", "again", "sorted", "written", "failed", "nosuch", "refused", "granted"} {
		mine, err := os.ReadFile(filepath.Join(dir, "ours", name))
		his, err2 := os.ReadFile(filepath.Join(dir, "pgsq", name))
		if string(mine) != string(his) || (err == nil) != (err2 == nil) {
			t.Errorf("%s: %q, %v; PostgreSQL: %q, %v", name, mine, err, his, err2)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "ours", "out.txt")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
}

// told is what comes of statements, or all that their error says.
func told(ctx context.Context, c *pgconn.PgConn, sql string) string {
	results, err := c.Exec(ctx, sql).ReadAll()
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return fmt.Sprintln(e.Code, e.Message, e.Detail, e.Hint, e.Where, e.Position)
	} else if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, r := range results {
		fmt.Fprintln(&out, r.CommandTag, r.Rows)
	}
	return out.String()
}

// TestCopyProgramCancelled: a cancel ends a COPY whose program neither writes nor ends, and
// nothing of it is loaded. Progress is told until then.
func TestCopyProgramCancelled(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir(), "--server-files", "programs")
	s.Start()
	c := rawConn(t, s.DSN)
	harness.Exec(t, s.DSN, "CREATE TABLE cp (n int PRIMARY KEY)")
	for _, command := range []string{"echo 1; exec sleep 1000", "echo 1; setsid sleep 1000 2> /dev/null"} {
		ended := make(chan string, 1)
		pid := c.PID()
		t.Run(command, func(t *testing.T) {
			go func() { ended <- told(context.Background(), c, "COPY cp FROM PROGRAM '"+command+"'") }()
			if !harness.Until(harness.Patience, func() bool {
				text, err := harness.Text(s.DSN, "SELECT concat_ws(' ', command, type, bytes_processed, bytes_total) FROM pg_stat_progress_copy")
				return err == nil && text == "COPY FROM PROGRAM 2 0"
			}) {
				t.Error("no progress")
			}
			harness.Exec(t, s.DSN, fmt.Sprintf("SELECT pg_cancel_backend(%d)", pid))
			select {
			case got := <-ended:
				if !strings.HasPrefix(got, "57014 canceling statement due to user request") {
					t.Error(got)
				}
			case <-time.After(harness.Patience):
				t.Fatal("not cancelled")
			}
		})
	}
	if text, err := harness.Text(s.DSN, "SELECT count(*) FROM cp"); err != nil || strings.TrimSpace(text) != "0" {
		t.Error(text, err)
	}
}
