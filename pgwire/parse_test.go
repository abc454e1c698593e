package pgwire

import (
	"strings"
	"testing"
)

// Command-line options of a client are settings with names, or an error of the protocol.
func FuzzOptions(f *testing.F) {
	f.Add("-c search_path=a,b --statement-timeout=5s")
	f.Add(`-c a=b\ c\\ -cx=y`)
	f.Add("-c")
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := parseOptions(text)
		if err != nil {
			return
		}
		for name := range settings {
			if name == "" || strings.Contains(name, "-") {
				t.Errorf("%q has a setting %q", text, name)
			}
		}
	})
}

// What a role keeps of its password is read or refused.
func FuzzVerifier(f *testing.F) {
	f.Add("SCRAM-SHA-256$4096:AAAA$AAAA:AAAA")
	f.Add("SCRAM-SHA-256$4096:c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	f.Add("md5abc")
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := parseVerifier(text)
		if ok && (v.iterations < 1 || len(v.storedKey) != 32 || len(v.serverKey) != 32) {
			t.Errorf("%q reads as %+v", text, v)
		}
	})
}
