package encode_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// dsnVariable names a PostgreSQL to compare with; without it one is started if its
// programs are installed.
const dsnVariable = "SKIPPRD_TEST_PG_DSN"

var cluster struct {
	once sync.Once
	dir  string
	dsn  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if cluster.dir != "" {
		_ = asPostgres(cluster.dir, "pg_ctl", "-D", filepath.Join(cluster.dir, "data"), "-m", "immediate", "stop").Run()
		_ = os.RemoveAll(cluster.dir)
	}
	os.Exit(code)
}

// postgres connects to a real PostgreSQL, or skips the test.
func postgres(t testing.TB) *pgconn.PgConn {
	t.Helper()
	cluster.once.Do(startCluster)
	if cluster.err != nil {
		t.Skipf("NO POSTGRESQL TO COMPARE WITH (%s is not set): %v", dsnVariable, cluster.err)
	}
	c, err := pgconn.Connect(context.Background(), cluster.dsn)
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// asPostgres runs a server program, as user postgres when we are root.
func asPostgres(dir, program string, args ...string) *exec.Cmd {
	path := program
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program); len(found) > 0 {
		path = found[len(found)-1]
	}
	c := exec.Command(path, args...)
	if os.Getuid() == 0 {
		c = exec.Command("runuser", append([]string{"-u", "postgres", "--", path}, args...)...)
	}
	c.Dir = dir
	return c
}

func startCluster() {
	if cluster.dsn = os.Getenv(dsnVariable); cluster.dsn != "" {
		return
	}
	dir, err := os.MkdirTemp("", "encode-pg")
	if err != nil {
		cluster.err = err
		return
	}
	cluster.dir = dir
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			cluster.err = err
			return
		}
		var uid, gid int
		fmt.Sscan(u.Uid, &uid)
		fmt.Sscan(u.Gid, &gid)
		if cluster.err = os.Chown(dir, uid, gid); cluster.err != nil {
			return
		}
	}
	data := filepath.Join(dir, "data")
	for _, c := range []*exec.Cmd{
		asPostgres(dir, "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-N"),
		asPostgres(dir, "pg_ctl", "-D", data, "-w", "-l", filepath.Join(dir, "log"), "-o",
			"-c listen_addresses='' -c fsync=off -c unix_socket_directories="+dir, "start"),
	} {
		if out, err := c.CombinedOutput(); err != nil {
			cluster.err = fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, out)
			return
		}
	}
	cluster.dsn = "host=" + dir + " user=postgres dbname=postgres"
}

// ask runs a query with one parameter, or none, and returns the first value.
func ask(t testing.TB, c *pgconn.PgConn, sql string, param []byte, paramFormat, resultFormat int16) []byte {
	t.Helper()
	var values [][]byte
	var formats []int16
	if param != nil {
		values, formats = [][]byte{param}, []int16{paramFormat}
	}
	r := c.ExecParams(context.Background(), sql, values, nil, formats, []int16{resultFormat}).Read()
	if r.Err != nil {
		t.Fatalf("%s: %v", sql, r.Err)
	}
	return r.Rows[0][0]
}

func set(t testing.TB, c *pgconn.PgConn, name, value string) {
	t.Helper()
	if _, err := c.Exec(context.Background(), fmt.Sprintf("SET %s TO '%s'", name, value)).ReadAll(); err != nil {
		t.Fatal(err)
	}
}
