package s3test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What .ci/setup builds is what Start looks for.
func TestVersion(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join("..", "..", ".ci", "tools", "versitygw.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimPrefix(binaryName, "versitygw-")
	if !strings.Contains(string(mod), "github.com/versity/versitygw "+version+" ") {
		t.Errorf("versitygw.mod does not have %s", version)
	}
}

func TestKillAndRestart(t *testing.T) {
	s := Start(t)
	answers := func() bool {
		answer, err := http.Get(s.Endpoint)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return true
	}
	if a, b := s.CreateBucket(t), s.CreateBucket(t); a == b {
		t.Errorf("two buckets are called %s", a)
	}
	endpoint := s.Endpoint
	for range 2 {
		if !answers() {
			t.Error("it does not answer")
		}
		s.Kill()
		s.Kill() // is already dead
		if answers() {
			t.Error("it answers after its death")
		}
		s.Restart(t)
	}
	if s.Endpoint != endpoint {
		t.Errorf("moved from %s to %s", endpoint, s.Endpoint)
	}
}
