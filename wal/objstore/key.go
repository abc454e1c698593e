package objstore

import (
	"fmt"
	"strings"
)

const (
	// KeyBytesMax is the longest key, in bytes.
	KeyBytesMax = 512
	// elementBytesMax bounds what stands between two slashes, so that a store that
	// keeps objects as files can keep it too.
	elementBytesMax = 200
)

// ValidateKey says what is wrong with a key. A key is elements joined by "/"; an
// element is 1 to 200 of A-Z a-z 0-9 . _ - = and does not begin with a dot. Keys have
// the same order, and mean the same, in every store.
//
// A key must not be a directory of another: with a/b in use, neither a nor a/b/c may
// be. That is a rule of the layout; some stores refuse to break it (ErrKey).
func ValidateKey(key string) error {
	if len(key) > KeyBytesMax {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrKey, len(key), KeyBytesMax)
	}
	for element := range strings.SplitSeq(key, "/") {
		if element == "" || len(element) > elementBytesMax || element[0] == '.' || !plain(element) {
			return fmt.Errorf("%w: element %q of %q", ErrKey, element, key)
		}
	}
	return nil
}

// ValidatePrefix says what is wrong with the prefix of a List: any beginning of a key
// is one, and the empty string.
func ValidatePrefix(prefix string) error {
	if len(prefix) > KeyBytesMax || !plain(strings.ReplaceAll(prefix, "/", "")) {
		return fmt.Errorf("%w: prefix %q", ErrKey, prefix)
	}
	return nil
}

func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.' || c == '_' || c == '-' || c == '=':
		default:
			return false
		}
	}
	return true
}

// ValidatePut says what is wrong with the arguments of a Put.
func ValidatePut(key string, body []byte) error {
	if err := ValidateKey(key); err != nil {
		return err
	}
	if len(body) > ObjectBytesMax {
		return fmt.Errorf("object %s has %d bytes, at most %d", key, len(body), ObjectBytesMax)
	}
	return nil
}

// ValidateDelete says what is wrong with the arguments of a Delete.
func ValidateDelete(keys []string) error {
	if len(keys) > DeleteKeysMax {
		return fmt.Errorf("delete of %d keys, at most %d", len(keys), DeleteKeysMax)
	}
	for _, key := range keys {
		if err := ValidateKey(key); err != nil {
			return err
		}
	}
	return nil
}

// ValidateList says what is wrong with the arguments of a List.
func ValidateList(prefix, after string, limit int) error {
	if limit < 1 || limit > ListLimitMax {
		return fmt.Errorf("list of %d keys, 1 to %d", limit, ListLimitMax)
	}
	if err := ValidatePrefix(after); err != nil {
		return err
	}
	return ValidatePrefix(prefix)
}
