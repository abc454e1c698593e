package planner_test

import (
	"os"
	"strings"
	"testing"
)

// The statements that clients send on connect and to look around all run.
func TestClientStatements(t *testing.T) {
	w := newSystemWorld(t)
	w.put("1 ada 10.50")
	text, err := os.ReadFile("testdata/clients.sql")
	if err != nil {
		t.Fatal(err)
	}
	c := w.connect()
	for sql := range strings.Lines(string(text)) {
		sql = strings.TrimSpace(sql)
		if sql == "" || strings.HasPrefix(sql, "--") {
			continue
		}
		if got := simple(t, c, sql); strings.Contains(got, "ERROR") {
			t.Errorf("%.300s\n%s", sql, got)
		}
	}
}
