package catalog

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// SCRAMIterations is Postgres's default.
const SCRAMIterations = 4096

// SCRAMVerifier is the verifier of a password in PostgreSQL's form (pg_authid.rolpassword):
// SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey. iterations ≥ 1.
func SCRAMVerifier(password string, salt []byte, iterations int) string {
	salted, err := pbkdf2.Key(sha256.New, saslPrep(password), salt, iterations, sha256.Size)
	if err != nil {
		// Only for a key length or hash that is not allowed, which ours are not.
		panic(fmt.Sprintf("catalog: derive key: %v", err))
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s",
		iterations, b64(salt), b64(stored[:]), b64(sign(salted, "Server Key")))
}

func sign(key []byte, message string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(message)) // never fails
	return h.Sum(nil)
}

// NewSCRAMVerifier is SCRAMVerifier with a new salt and the usual iterations.
func (c *Catalog) NewSCRAMVerifier(password string) string {
	salt := make([]byte, 16)
	c.deps.IDs.Read(salt)
	return SCRAMVerifier(password, salt, SCRAMIterations)
}

// saslPrep prepares a password as RFC 4013 says. As in Postgres, one that the RFC forbids
// is taken as it is.
func saslPrep(s string) string {
	if !utf8.ValidString(s) {
		return s
	}
	ascii := strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	if ascii {
		return s // nothing to map; what is forbidden stays as it is
	}
	mapped := strings.Map(func(r rune) rune {
		switch {
		case r >= utf8.RuneSelf && (unicode.Is(unicode.Zs, r) || r == 0x200b):
			return ' '
		case mappedToNothing(r):
			return -1
		}
		return r
	}, s)
	out := norm.NFKC.String(mapped)
	if out == "" || strings.ContainsFunc(out, forbidden) || !bidiValid(out) {
		return s
	}
	return out
}

// mappedToNothing is RFC 3454 table B.1.
func mappedToNothing(r rune) bool {
	switch {
	case r == 0x00ad, r == 0x034f, r == 0x1806, r >= 0x180b && r <= 0x180d,
		r == 0x200c, r == 0x200d, r == 0x2060, r >= 0xfe00 && r <= 0xfe0f, r == 0xfeff:
		return true
	}
	return false
}

// forbidden are the tables of RFC 4013 section 2.3, by category where Unicode's agree.
func forbidden(r rune) bool {
	switch {
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Cs, r):
		return true
	case r == 0x06dd, r == 0x070f, r == 0x180e, r >= 0x200c && r <= 0x200f,
		r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x2063, r >= 0x206a && r <= 0x206f,
		r >= 0x2ff0 && r <= 0x2ffb, r == 0x0340, r == 0x0341,
		r == 0xfeff, r >= 0xfff9 && r <= 0xfffd, r >= 0x1d173 && r <= 0x1d17a,
		r == 0xe0001, r >= 0xe0020 && r <= 0xe007f:
		return true
	case r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe: // no characters
		return true
	}
	return false
}

// bidiValid is RFC 3454 section 6.
func bidiValid(s string) bool {
	var right, left, first, last bool
	for i, r := range s {
		p, _ := bidi.LookupRune(r)
		c := p.Class()
		isRight := c == bidi.R || c == bidi.AL
		right = right || isRight
		left = left || c == bidi.L
		if i == 0 {
			first = isRight
		}
		last = isRight
	}
	return !right || !left && first && last
}
