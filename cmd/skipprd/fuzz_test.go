package main

import (
	"strings"
	"testing"
)

// A settings file is read or its problems are told, whatever is in it; what passes the checks can
// be used.
func FuzzConfigFile(f *testing.F) {
	f.Add("# a comment\nmax-connections = 10\nlog_level='debug'\n")
	f.Add("wal-segment-bytes = 64MiB\nshutdown-timeout=1min")
	f.Add("config = /x\nnonsense")
	f.Fuzz(func(t *testing.T, text string) {
		c := newConfig()
		_ = c.read(strings.NewReader(text), "skipprd.conf") // an error is an answer
		for _, s := range c.settings {
			if s.check == nil || s.value == "" || s.check(s.value) != nil {
				continue
			}
			if c.int(s.name) < 0 || c.bytes(s.name) < 0 || c.duration(s.name) < 0 {
				t.Errorf("%s = %q passes the check and is negative", s.name, s.value)
			}
		}
	})
}
