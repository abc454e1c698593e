package catalog

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
	"strings"

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
