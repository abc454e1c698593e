package naming

import "testing"

func TestSQL(t *testing.T) {
	const query = "SELECT a, {{n.nspname}}, ARRAY(SELECT {{x(y, 'z')\n || 'b'}})"
	for encoding, want := range map[string]string{
		"UTF8":      "SELECT a, (n.nspname)::text, ARRAY(SELECT (x(y, 'z')\n || 'b')::text)",
		"SQL_ASCII": "SELECT a, (n.nspname)::text, ARRAY(SELECT (x(y, 'z')\n || 'b')::text)",
		"WIN1252": "SELECT a, pg_catalog.encode(pg_catalog.convert_to((n.nspname)::text, 'WIN1252'), 'hex'), " +
			"ARRAY(SELECT pg_catalog.encode(pg_catalog.convert_to((x(y, 'z')\n || 'b')::text, 'WIN1252'), 'hex'))",
	} {
		if got := of(encoding).SQL(query); got != want {
			t.Errorf("%s: %s", encoding, got)
		}
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		encoding, came, want string
		said                 bool
	}{
		{"UTF8", "größe", "größe", true},
		{"UTF8", "6162", "6162", true},
		{"SQL_ASCII", "a\x81b", "a\uFFFDb", false},
		{"WIN1252", "6162", "ab", true},
		{"WIN1252", "", "", true},
		{"WIN1252", "80f6", "€ö", true},
		{"WIN1252", "c281", "Â\uFFFD", false}, // as bytes it is UTF-8
		{"WIN1252", "f68162", "ö\uFFFDb", false},
		{"EUC_JP", "c6fc", "日", true},
		{"EUC_JP", "c6fca9a1", "日\uFFFD", false},
		{"WIN1252", "no digits", "no digits", false},
	} {
		r := of(c.encoding)
		for range 2 { // the second time the encoding is known
			got := r.Text(c.came)
			if Said("x", got) != c.said || Show(got) != c.want || c.said && got != c.want {
				t.Errorf("%s %q: %q, said %v", c.encoding, c.came, got, Said(got))
			}
		}
	}
}
