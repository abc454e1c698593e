package poolers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// pgpool: pgpool-II asks a server's catalog for what it parses, and goes on as with
// PostgreSQL.
func (r *rig) pgpool(t *testing.T) {
	path := program(t, "pgpool")
	out := map[string]string{}
	for _, before := range r.both() {
		port, control := harness.FreePort(t), harness.FreePort(t)
		dir := filepath.Join(r.dir, "pgpool-"+before.name)
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "conf"), strings.Join([]string{
			"backend_clustering_mode = 'streaming_replication'", "listen_addresses = '127.0.0.1'", fmt.Sprintf("port = %d", port),
			"pcp_listen_addresses = '127.0.0.1'", fmt.Sprintf("pcp_port = %d", control), "socket_dir = '" + dir + "'", "pcp_socket_dir = '" + dir + "'",
			"backend_hostname0 = '127.0.0.1'", fmt.Sprintf("backend_port0 = %d", before.port), "backend_weight0 = 1",
			"pid_file_name = '" + dir + "/pid'", "logdir = '" + dir + "'", "num_init_children = 6", "max_pool = 2", "sr_check_period = 0", "health_check_period = 0",
			"enable_pool_hba = off", "memory_cache_enabled = off",
		}, "\n")+"\n")
		start(t, daemon{
			port: port, log: filepath.Join(dir, "log"), signal: "INT",
			line: []string{path, "-n", "-f", filepath.Join(dir, "conf"), "-F", filepath.Join(dir, "pcp"), "-a", filepath.Join(dir, "hba")},
		})
		for _, name := range []string{"session", "transaction", "statement"} {
			out[before.name] += r.client(t, port, "postgres", database, "psql", "-X", "-f", filepath.Join("testdata", name+".sql"))
		}
		for _, protocol := range []string{"simple", "extended", "prepared"} {
			text := r.client(t, port, "postgres", database, "pgbench", "-n", "-c", "4", "-t", "4", "-M", protocol, "-S")
			for line := range strings.Lines(text) {
				if benchSays.MatchString(line) {
					out[before.name] += protocol + " " + line
				}
			}
		}
	}
	if want, got := out["postgresql"], out["skipprd"]; want != got {
		t.Errorf("through pgpool skipprd says\n%s\npostgresql says\n%s", got, want)
	} else {
		t.Log(got)
	}
}
