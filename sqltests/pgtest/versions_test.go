package pgtest_test

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// Each version starts, and so does a standby of it, which has what its primary has.
func TestVersions(t *testing.T) {
	for _, major := range pgtest.Versions([]int{18}, 16, 17) {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			p := pgtest.StartVersion(t, major)
			if v := p.Version(t); v != major {
				t.Fatalf("version %d", v)
			}
			p.Exec(t, p.DSN, "CREATE TABLE a (id int)", "INSERT INTO a VALUES (1)")
			s := p.Standby(t)
			s.Exec(t, s.DSN, "DO $$ BEGIN ASSERT pg_is_in_recovery() AND EXISTS (SELECT FROM a); END $$")
		})
	}
}
