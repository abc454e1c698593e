package catalog_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
)

// The salt and iterations are those of RFC 7677's example, whose exchange verifies under
// these keys; the form is PostgreSQL's.
func TestSCRAMVerifier(t *testing.T) {
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	want := "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==" +
		"$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	equal(t, "verifier", catalog.SCRAMVerifier("pencil", salt, 4096), want)
}

func TestSCRAMPreparesPassword(t *testing.T) {
	same := func(a, b string) bool {
		return catalog.SCRAMVerifier(a, []byte("salt"), 1) == catalog.SCRAMVerifier(b, []byte("salt"), 1)
	}
	cases := []struct {
		name, a, b string
		same       bool
	}{
		{"soft hyphen goes", "I\u00adX", "IX", true},
		{"case stays", "USER", "user", false},
		{"compatibility form", "\u00aa", "a", true},
		{"roman nine", "\u2168", "IX", true},
		{"no-break space", "a\u00a0b", "a b", true},
		{"composition", "e\u0301", "\u00e9", true},
		{"forbidden is taken as it is", "\u0007\u00ad", "\u0007", false},
		{"mixed direction is taken as it is", "\u0627\u00ad1x", "\u06271x", false},
		{"invalid encoding is taken as it is", "\xffa\u00ad", "\xffa", false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { equal(t, "same", same(tc.a, tc.b), tc.same) })
	}
}

func TestNewSCRAMVerifier(t *testing.T) {
	c := open(t, memkv.New())
	a, b := c.NewSCRAMVerifier("x"), c.NewSCRAMVerifier("x")
	if a == b || !strings.HasPrefix(a, "SCRAM-SHA-256$4096:") {
		t.Errorf("verifiers %q and %q", a, b)
	}
}
