package pgwire

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

const (
	scramIterations = 4096
	scramSaltBytes  = 16
	verifierPrefix  = "SCRAM-SHA-256$"
)

// verifier is what is kept of a password: neither it nor a key that would do instead.
type verifier struct {
	iterations                 int
	salt, storedKey, serverKey []byte
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text)) // never fails
	return h.Sum(nil)
}

// ScramVerifier makes the verifier of a password in rolpassword's form. salt should
// be 16 random bytes.
func ScramVerifier(password string, salt []byte) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, saslPrep(password), salt, scramIterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("derive password key: %w", err)
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s%d:%s$%s:%s", verifierPrefix, scramIterations, b64(salt), b64(stored[:]),
		b64(mac(salted, "Server Key"))), nil
}

// saslPrep normalises a password as RFC 4013 does, without its prohibitions:
// PostgreSQL too takes passwords as they are where it cannot normalise them.
func saslPrep(password string) string {
	for i := range len(password) {
		if password[i] >= 0x80 {
			mapped := strings.Map(func(r rune) rune {
				switch {
				case r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200b, r == 0x202f, r == 0x205f, r == 0x3000:
					return ' '
				case r == 0xad, r == 0x34f, r >= 0x180b && r <= 0x180d, r == 0x200c, r == 0x200d, r == 0x2060,
					r >= 0xfe00 && r <= 0xfe0f, r == 0xfeff:
					return -1
				}
				return r
			}, password)
			return norm.NFKC.String(mapped)
		}
	}
	return password
}

// parseVerifier reads rolpassword's form.
func parseVerifier(text string) (verifier, bool) {
	rest, ok := strings.CutPrefix(text, verifierPrefix)
	parts := strings.Split(rest, "$")
	if !ok || len(parts) != 2 {
		return verifier{}, false
	}
	iterations, salt, ok1 := strings.Cut(parts[0], ":")
	stored, server, ok2 := strings.Cut(parts[1], ":")
	n, err := strconv.Atoi(iterations)
	v := verifier{iterations: n}
	var err1, err2, err3 error
	v.salt, err1 = base64.StdEncoding.DecodeString(salt)
	v.storedKey, err2 = base64.StdEncoding.DecodeString(stored)
	v.serverKey, err3 = base64.StdEncoding.DecodeString(server)
	if !ok1 || !ok2 || err != nil || err1 != nil || err2 != nil || err3 != nil || n < 1 ||
		len(v.storedKey) != sha256.Size || len(v.serverKey) != sha256.Size {
		return verifier{}, false
	}
	return v, true
}

// mockVerifier makes up verifiers for users that do not exist: stable per user, so
// that an attacker cannot tell.
type mockVerifier struct{ key [32]byte }

func (m *mockVerifier) verifier(user string) verifier {
	return verifier{
		iterations: scramIterations, salt: mac(m.key[:], "salt "+user)[:scramSaltBytes],
		storedKey: mac(m.key[:], "stored "+user), serverKey: mac(m.key[:], "server "+user),
	}
}
