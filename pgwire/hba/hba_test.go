package hba

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const sample = `
# comment
local   all             all                                     trust
host    all             postgres        127.0.0.1/32            trust
hostssl "all", shop     +analysts,bob   10.0.0.0 255.0.0.0      scram-sha-256 clientcert=verify-ca
hostssl all             all             ::/0                    cert map=people
hostnossl all           all             192.168.0.0/16          reject   # all of them
host    sameuser        all             \
        172.16.0.0/12   scram-sha-256
host    samerole        all             all                     scram-sha-256
`

func rules(t *testing.T) *Rules {
	t.Helper()
	maps, err := ParseMaps("ident", "people ana@example.org ana\npeople \"/^(.*)@staff$\" \\1\n")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Parse("hba", sample, maps)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFind: the first rule that is for a client decides.
func TestFind(t *testing.T) {
	r := rules(t)
	for name, c := range map[string]struct {
		client Client
		line   int // 0: none
	}{
		"socket":                 {Client{Local: true, Database: "x", User: "y"}, 3},
		"loopback":               {Client{Address: netip.MustParseAddr("127.0.0.1"), User: "postgres"}, 4},
		"loopback, mapped":       {Client{Address: netip.MustParseAddr("::ffff:127.0.0.1"), User: "postgres"}, 4},
		"loopback, other user":   {Client{Address: netip.MustParseAddr("127.0.0.1"), User: "eve"}, 0},
		"member":                 {Client{Address: netip.MustParseAddr("10.1.2.3"), TLS: true, Database: "shop", User: "ana", MemberOf: []string{"ana", "analysts"}}, 5},
		"user":                   {Client{Address: netip.MustParseAddr("10.1.2.3"), TLS: true, Database: "shop", User: "bob", MemberOf: []string{"bob"}}, 5},
		"quoted all is a name":   {Client{Address: netip.MustParseAddr("10.1.2.3"), TLS: true, Database: "lake", User: "bob"}, 0},
		"no member":              {Client{Address: netip.MustParseAddr("10.1.2.3"), TLS: true, Database: "shop", User: "eve"}, 0},
		"TLS asked for":          {Client{Address: netip.MustParseAddr("10.1.2.3"), Database: "shop", User: "bob"}, 0},
		"IPv6":                   {Client{Address: netip.MustParseAddr("2001:db8::1"), TLS: true, User: "ana"}, 6},
		"IPv6 with a zone":       {Client{Address: netip.MustParseAddr("fe80::1%eth0"), TLS: true, User: "ana"}, 6},
		"plaintext":              {Client{Address: netip.MustParseAddr("192.168.3.4"), User: "ana"}, 7},
		"database like the user": {Client{Address: netip.MustParseAddr("172.16.0.1"), Database: "ana", User: "ana"}, 8},
		"database like a role":   {Client{Address: netip.MustParseAddr("8.8.8.8"), Database: "team", User: "ana", MemberOf: []string{"ana", "team"}}, 10},
		"nobody's":               {Client{Address: netip.MustParseAddr("8.8.8.8"), Database: "lake", User: "ana"}, 0},
	} {
		got := 0
		if f := r.Find(c.client); f != nil {
			got = f.Line
		}
		if got != c.line {
			t.Errorf("%s: line %d, want %d", name, got, c.line)
		}
	}
}

// TestMaps: a certificate's name is a role's by its map alone.
func TestMaps(t *testing.T) {
	m := rules(t).Maps
	for _, c := range []struct {
		name, system, role string
		want               bool
	}{
		{"", "ana", "ana", true},
		{"", "ana", "bob", false},
		{"people", "ana@example.org", "ana", true},
		{"people", "ana@example.org", "bob", false},
		{"people", "eve@staff", "eve", true},
		{"people", "eve@staff", "ana", false},
		{"people", "ana", "ana", false},
		{"none", "ana", "ana", false},
	} {
		if got := m.Admits(c.name, c.system, c.role); got != c.want {
			t.Errorf("Admits(%q, %q, %q) = %v", c.name, c.system, c.role, got)
		}
	}
	if (*Maps)(nil).Admits("people", "ana", "ana") {
		t.Error("no maps admit by one")
	}
}

// TestParseErrors: a bad line is told with its number, and gives no rules.
func TestParseErrors(t *testing.T) {
	for line, want := range map[string]string{
		"hots all all all trust":                                          `line 2 of hba: invalid connection type "hots"`,
		"host all all":                                                    "end-of-line before IP address",
		"host all":                                                        "end-of-line before role",
		"local":                                                           "end-of-line before database",
		"host all all 10.0.0.0/33 trust":                                  `invalid IP address "10.0.0.0/33"`,
		"host all all example.org trust":                                  "names of hosts are not supported",
		"host all all 10.0.0.0 trust":                                     `invalid IP mask "trust"`,
		"host all all 10.0.0.0 255.0.255.0 trust":                         `invalid IP mask "255.0.255.0"`,
		"host all all all":                                                "end-of-line before authentication method",
		"host all all all md5":                                            `authentication method "md5" is not supported`,
		"host all all all trusted":                                        `invalid authentication method "trusted"`,
		"host all all all cert":                                           "cert authentication is only supported on hostssl",
		"host all all all password":                                       "hostssl connections only",
		"hostssl all all all cert map=nobody":                             `there is no map "nobody"`,
		"hostssl all all all cert clientcert=verify-ca":                   "verify-full",
		"hostssl all all all trust map=people":                            "only valid with method cert",
		"host all all all trust clientcert=verify-ca":                     "hostssl",
		"host all all all trust what":                                     "name=value",
		"host all all all trust a=b":                                      "unrecognized authentication option",
		`host "all all all trust`:                                         "does not end",
		"host @file all all trust":                                        "not supported",
		"host all all 10.0.0.0/8,11.0.0.0/8 trust":                        "multiple values",
		"host ,all all all trust":                                         "missing before a comma",
		"host all all all " + strings.Repeat("x", lineBytesMax):           "too long",
		"host all all all trust\nlocal all all peer\nhost all all all me": "line 3 of hba",
	} {
		r, err := Parse("hba", "local all all trust\n"+line+"\n", nil)
		if err == nil || r != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", line, err, want)
		}
	}
	if _, err := Parse("hba", "# nothing\n", nil); err == nil {
		t.Error("a file without rules is taken")
	}
	for _, text := range []string{"a b", "a b c d", `a "/(" c`, `a /b \1`} {
		if _, err := ParseMaps("ident", text); err == nil {
			t.Errorf("map %q is taken", text)
		}
	}
}

// TestEntries: a file is shown line by line, with what is wrong where something is.
func TestEntries(t *testing.T) {
	var got []string
	for _, e := range Entries("# rules\nlocal all all trust\nhost all all bad trust\n\nhostssl a \\\n +b samenet cert\n") {
		line := fmt.Sprintf("%d %s", e.Line, e.Reason)
		if e.Rule != nil {
			line += fmt.Sprintf("%s %s %v %s", e.Rule.Connection, e.Rule.Method, e.Rule.Users, e.Rule.Keyword)
		}
		got = append(got, line)
	}
	want := []string{
		"2 local trust [{all false}] ", `3 invalid IP address "bad": names of hosts are not supported`, "5 hostssl cert [{+b false}] samenet",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	maps := MapEntries("people ana@x ana\npeople /( x\n")
	if len(maps) != 2 || *maps[0].Map != [3]string{"people", "ana@x", "ana"} || maps[1].Reason != `invalid regular expression "("` || maps[1].Map != nil {
		t.Errorf("%+v", maps)
	}
}

// FuzzParse: any text is rules or an error; rules decide about any client.
func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("host all all 10.0.0.0 255.0.0.0 trust\n")
	f.Add("local \"a\"\"b\",c +d reject\\\n")
	f.Fuzz(func(t *testing.T, text string) {
		maps, _ := ParseMaps("ident", text)
		r, err := Parse("hba", text, maps)
		if (err == nil) != (r != nil) {
			t.Fatalf("rules %v with error %v", r, err)
		}
		if err != nil {
			return
		}
		for _, c := range []Client{{Local: true}, {Address: netip.MustParseAddr("10.0.0.1"), TLS: true, User: "a"}} {
			if found := r.Find(c); found != nil && found.Method == "" {
				t.Fatalf("a rule without a method: %+v", found)
			}
		}
	})
}
