package pgwire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
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
