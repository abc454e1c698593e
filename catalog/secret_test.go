package catalog_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
)

func TestSeal(t *testing.T) {
	c := open(t, memkv.New())
	for _, plain := range []string{"", "x", strings.Repeat("long", 1000)} {
		a, b := c.Seal([]byte(plain)), c.Seal([]byte(plain))
		if bytes.Equal(a, b) {
			t.Error("the same sealed twice is equal")
		}
		got := get[[]byte](t)(c.Unseal(a))
		equal(t, "unsealed", string(got), plain)
		for i := range a[:min(len(a), 40)] {
			bad := bytes.Clone(a)
			bad[i] ^= 1
			_, err := c.Unseal(bad)
			is(t, fmt.Sprintf("byte %d changed", i), err, catalog.ErrKey)
		}
		_, err := c.Unseal(a[:len(a)-1])
		is(t, "cut", err, catalog.ErrKey)
	}
	_, err := c.Unseal(nil)
	is(t, "nothing", err, catalog.ErrKey)
}

func TestResolveSecret(t *testing.T) {
	deps := testDeps()
	deps.Getenv = func(name string) string { return map[string]string{"PW": "from env"}[name] }
	deps.ReadFile = func(path string) ([]byte, error) {
		switch path {
		case "/pw":
			return []byte("from file\r\n"), nil
		case "/big":
			return make([]byte, 1<<20), nil
		}
		return nil, errors.New("no such file")
	}
	c := get[*catalog.Catalog](t)(catalog.Open(t.Context(), memkv.New(), deps))
	cases := []struct {
		source, want string
		err          error
	}{
		{"literal", "from catalog", nil},
		{"env:PW", "from env", nil},
		{"env:OTHER", "", catalog.ErrSecretUnavailable},
		{"file:/pw", "from file", nil},
		{"file:/other", "", catalog.ErrSecretUnavailable},
		{"file:/big", "", catalog.ErrSecretUnavailable},
		{"vault:x", "", catalog.ErrSecretUnavailable},
	}
	for _, tc := range cases {
		t.Run(tc.source, func(t *testing.T) {
			update(t, c, func(txn *catalog.Txn) error {
				return txn.CreateSecret(&catalog.Secret{
					Name: tc.source, Source: tc.source, Sealed: c.Seal([]byte("from catalog")),
				})
			})
			got, err := c.ResolveSecret(t.Context(), tc.source)
			is(t, "resolve", err, tc.err)
			equal(t, "value", got, tc.want)
		})
	}
	_, err := c.ResolveSecret(t.Context(), "none")
	is(t, "resolve", err, catalog.ErrSecretNotFound)
}

func TestValidSecretSource(t *testing.T) {
	for source, want := range map[string]bool{
		"literal": true, "env:X": true, "file:/x": true, "env:": false, "file:": false, "": false, "x": false,
	} {
		equal(t, source, catalog.ValidSecretSource(source), want)
	}
}

// No way of printing shows a secret.
func TestSecretsAreRedacted(t *testing.T) {
	s := catalog.Secret{Name: "pw", Source: "literal", Sealed: []byte("sealed")}
	v := catalog.SecretValue("sealed")
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", s, "value", v, "both", []any{v})
	fmt.Fprintf(&out, "%v %+v %#v %s %v %+v %#v %s", s, s, s, s, v, v, v, v)
	if strings.Contains(out.String(), "sealed") || strings.Contains(out.String(), fmt.Sprint([]byte("sealed"))) {
		t.Errorf("shown: %s", out.String())
	}
	equal(t, "revealed", v.Reveal(), "sealed")
}
