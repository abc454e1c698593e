package merge

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// Keys renders the row keys of a record as bytes: two keys are equal as bytes exactly
// when the rule takes them as equal, before and after a column of them was widened. Safe
// for concurrent use while the columns live.
type Keys struct{ parts []func([]byte, int) []byte }

// NewKeys reads the columns of a key, in key order. It wraps ErrNullKey when one has a
// null, ErrKeyType when one has a type that cannot be compared.
func NewKeys(columns []arrow.Array) (*Keys, error) {
	k := &Keys{parts: make([]func([]byte, int) []byte, len(columns))}
	for i, c := range columns {
		if c.NullN() > 0 {
			return nil, fmt.Errorf("key column %d: %w", i, ErrNullKey)
		}
		if k.parts[i] = encoder(c); k.parts[i] == nil {
			return nil, fmt.Errorf("key column %d of type %s: %w", i, c.DataType(), ErrKeyType)
		}
	}
	return k, nil
}

// Append appends the key of a row to dst.
func (k *Keys) Append(dst []byte, row int) []byte {
	for _, part := range k.parts {
		dst = part(dst, row)
	}
	return dst
}
