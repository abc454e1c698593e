package catalog

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/pgwire/quote"
)

const (
	// keyBytes is the length of the secret key: AES-256.
	keyBytes = 32
	// sealVersion is the first byte of sealed data; then nonce, ciphertext and tag.
	sealVersion = 1
	// secretBytesMax bounds a secret read from outside.
	secretBytesMax = 64 << 10
	// keyCheck is kept sealed, to tell a wrong key at open.
	keyCheck = "skipprd catalog key"

	redacted = "[redacted]"
)

// Where a secret's value is.
const (
	SourceLiteral = "literal"
	sourceEnv     = "env:"
	sourceFile    = "file:"
)

func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != keyBytes {
		return nil, fmt.Errorf("secret key has %d bytes, not %d: %w", len(key), keyBytes, ErrKey)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("secret key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("secret key: %w", err)
	}
	return aead, nil
}

// Seal encrypts plain with the catalog's key, with a new nonce each time.
func (c *Catalog) Seal(plain []byte) []byte {
	n := c.aead.NonceSize()
	out := make([]byte, 1+n, 1+n+len(plain)+c.aead.Overhead())
	out[0] = sealVersion
	c.deps.IDs.Read(out[1:])
	return c.aead.Seal(out, out[1:1+n], plain, out[:1])
}

// Unseal decrypts what Seal made, or wraps ErrKey.
func (c *Catalog) Unseal(sealed []byte) ([]byte, error) {
	n := c.aead.NonceSize()
	if len(sealed) < 1+n+c.aead.Overhead() || sealed[0] != sealVersion {
		return nil, fmt.Errorf("unseal: no sealed data: %w", ErrKey)
	}
	plain, err := c.aead.Open(nil, sealed[1:1+n], sealed[1+n:], sealed[:1])
	if err != nil {
		return nil, fmt.Errorf("unseal: %w", ErrKey)
	}
	return plain, nil
}

func (c *Catalog) verifyKey() error {
	row, err := c.store.Get([]byte{prefixKeyCheck})
	if errors.Is(err, kv.ErrNotFound) {
		return fmt.Errorf("key check: %w", ErrCorrupt)
	}
	if err != nil {
		return fmt.Errorf("key check: %w", err)
	}
	return c.checkKeyRow(row)
}

// checkKeyRow says whether the catalog's key is the one that sealed row.
func (c *Catalog) checkKeyRow(row []byte) error {
	plain, err := c.Unseal(row)
	if err != nil || string(plain) != keyCheck {
		return fmt.Errorf("the catalog was made with another secret key: %w", ErrKey)
	}
	return nil
}

// ResolveSecret returns the value of a secret as it is now: unsealed, or read from its
// environment variable or file, whose last line end is dropped. It wraps
// ErrSecretNotFound, ErrSecretUnavailable or ErrKey. Never log the value.
func (c *Catalog) ResolveSecret(_ context.Context, name string) (string, error) {
	snap := c.Snapshot()
	defer snap.Close()
	s, err := snap.Secret(name)
	if err != nil {
		return "", err
	}
	v, err := c.secretValue(s)
	if e := (*SecretError)(nil); errors.As(err, &e) {
		e.Name = name
		return "", e
	}
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", quote.Name(name), err)
	}
	return v, nil
}

func (c *Catalog) secretValue(s *Secret) (string, error) {
	if s.Source == SourceLiteral {
		plain, err := c.Unseal(s.Sealed)
		return string(plain), err
	}
	if name, ok := strings.CutPrefix(s.Source, sourceEnv); ok {
		if c.deps.Getenv == nil {
			return "", &SecretError{Reason: "environment variables are not looked at"}
		}
		v := c.deps.Getenv(name)
		if v == "" {
			return "", &SecretError{Reason: "environment variable " + name + " is not set"}
		}
		return v, nil
	}
	path, ok := strings.CutPrefix(s.Source, sourceFile)
	if !ok || c.deps.ReadFile == nil {
		return "", &SecretError{Reason: "its source is unknown: " + s.Source}
	}
	b, err := c.deps.ReadFile(path)
	if err != nil {
		return "", &SecretError{Reason: err.Error(), Cause: err}
	}
	if len(b) > secretBytesMax {
		return "", &SecretError{Reason: fmt.Sprintf("file %s exceeds %d bytes", path, secretBytesMax)}
	}
	v := strings.TrimSuffix(string(b), "\n")
	return strings.TrimSuffix(v, "\r"), nil
}

// ValidSecretSource says whether source is one that ResolveSecret understands.
func ValidSecretSource(source string) bool {
	if source == SourceLiteral {
		return true
	}
	for _, prefix := range []string{sourceEnv, sourceFile} {
		if rest, ok := strings.CutPrefix(source, prefix); ok {
			return rest != ""
		}
	}
	return false
}

// String names the secret and hides its value.
func (s Secret) String() string { return fmt.Sprintf("secret %s (%s) %s", s.Name, s.Source, redacted) }

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// SecretValue is a secret in the clear that does not show itself when printed, logged or
// encoded.
type SecretValue string

// Reveal is the value.
func (v SecretValue) Reveal() string { return string(v) }

// String hides the value.
func (v SecretValue) String() string { return redacted }

// GoString hides the value.
func (v SecretValue) GoString() string { return redacted }

// LogValue hides the value.
func (v SecretValue) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the value.
func (v SecretValue) MarshalText() ([]byte, error) { return []byte(redacted), nil }

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
