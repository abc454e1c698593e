package planner_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/planner/syscat"
)

// psqlPath finds a psql, or skips the test.
func psqlPath(t *testing.T) string {
	t.Helper()
	if p, err := exec.LookPath("psql"); err == nil {
		return p
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/psql")
	if len(found) == 0 {
		t.Skip("SKIPPED, NO PSQL")
	}
	return found[len(found)-1]
}

func newSystemWorld(t *testing.T) *world {
	t.Helper()
	system, err := syscat.New(syscat.Deps{Status: func(string) (ddl.PipelineStatus, bool) {
		return ddl.PipelineStatus{},
			false
	}})
	if err != nil {
		t.Fatal(err)
	}
	return newWorldWith(t, system)
}

// The catalog commands of psql run and show what is there.
func TestPsql(t *testing.T) {
	psql := psqlPath(t)
	w := newSystemWorld(t)
	w.put("1 ada 10.50")
	host, port, _ := net.SplitHostPort(w.addr)
	for _, c := range []struct {
		command string
		want    []string
	}{
		{`\d`, nil},
		{`\dt shop.*`, []string{"shop", "orders", "table"}},
		{`\dn`, []string{"shop", "public"}},
		{`\dn+`, []string{"shop"}},
		{`\l`, []string{"lake", "UTF8"}},
		{`\l+`, []string{"lake"}},
		{`\du`, []string{"postgres", "Superuser"}},
		{`\d shop.orders`, []string{"id", "bigint", "not null", "character varying(20)", "numeric(10,2)", "orders_pkey"}},
		{`\d+ shop.orders`, []string{"bigint", "orders_pkey"}},
		{`\dv`, nil},
		{`\di shop.*`, []string{"orders_pkey"}},
		{`\ds`, nil},
		{`\dm`, nil},
		{`\dE`, nil},
		{`\df`, nil},
		{`\dT`, nil},
		{`\dx`, nil},
		{`\dp shop.*`, []string{"orders"}},
		{`\dd`, nil},
		{
			`\db`,
			[]string{"pg_default"},
		},
		{`\dc`, nil},
		{`\dD`, nil},
		{`\des`, nil},
		{`\dy`, nil},
		{`\dRp`, nil},
		{`\dRs`, nil},
		{`\dX`, nil},
		{
			`\dL`,
			nil,
		},
		{`\dC`, nil},
		{`\dg`, []string{"postgres"}},
		{`\drds`, nil},
		{`\dA`, []string{"heap"}},
		{`\do`, nil},
		{`\da`, nil},
		{
			`\dF`,
			nil,
		},
		{`\ddp`, nil},
		{`\sf now`, nil},
		{
			`SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = 'shop' ORDER BY 1, 2`,
			[]string{"orders", "pending"},
		},
		{
			`SELECT column_name, data_type, character_maximum_length, numeric_precision, numeric_scale, is_nullable FROM information_schema.columns WHERE table_name = 'orders' ORDER BY ordinal_position`,
			[]string{"character varying", "20", "10", "2", "NO"},
		},
		{
			`SELECT 'shop.orders'::regclass, 'shop.orders'::regclass::oid > 16384, 23::regtype, 'int4'::regtype::oid`,
			[]string{"orders", "integer", "23"},
		},
		{`SELECT relname::text, relkind FROM pg_class WHERE oid = 'shop.orders'::regclass`, []string{"orders"}},
		{`SELECT * FROM skippr.pipelines`, []string{"shop"}},
		{`SELECT count(*) > 40 FROM pg_settings`, []string{"t"}},
	} {
		t.Run(c.command, func(t *testing.T) {
			cmd := exec.Command(psql, "-X", "-h", host, "-p", port, "-U", "postgres", "-d", "lake", "-v", "ON_ERROR_STOP=1",
				"-c", c.command)
			cmd.Env = append(os.Environ(), "PGSSLMODE=disable", "LC_ALL=C")
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "ERROR") {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
		})
	}
}
