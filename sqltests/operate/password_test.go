package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// TestPasswordFile: the password of postgres comes from --password-file, without the end of its
// line. Who has another one, or none, does not come in, and nobody is shown it.
func TestPasswordFile(t *testing.T) {
	const password = "s3cret pass-ß"
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := harness.New(t, t.TempDir(), "--password-file", write("password", password+"\n"),
		"--hba-file", write("hba", "host all all 127.0.0.1/32 scram-sha-256\n"))
	s.Start()
	dsn := func(password string) string { return s.DSN + " password='" + password + "'" }
	for _, wrong := range []string{"", "s3cret", password + " "} {
		c, err := pgx.Connect(t.Context(), dsn(wrong))
		if err == nil {
			c.Close(t.Context())
			t.Errorf("password %q: came in", wrong)
		} else if !strings.HasPrefix(state(err), "28P01 password authentication failed") {
			t.Errorf("password %q: %s", wrong, state(err))
		}
	}
	c := harness.Connect(t, dsn(password))
	if got := rows(t, c, "SELECT count(*) FROM pg_settings WHERE setting LIKE '%s3' || 'cret%'"); got[0] != "0" {
		t.Error("pg_settings has the password")
	}
	if strings.Contains(s.Log(1000), password) {
		t.Error("the log has the password")
	}
	s.Stop()
}
