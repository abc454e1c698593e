package catalog

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/catalog/kv"
)

// formatVersion is the catalog's format that this program writes. It reads formatVersion
// and the one before.
const formatVersion = 1

const formatVersionOldest = 1

// checkFormat verifies the version of a store that has one. created
// says that the store was empty.
func checkFormat(store kv.Store) (created bool, err error) {
	key := []byte{prefixFormat}
	row, err := store.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read catalog format: %w", err)
	}
	return false, checkFormatRow(row)
}

func checkFormatRow(row []byte) error {
	if len(row) != 1 {
		return fmt.Errorf("catalog format: %w", ErrCorrupt)
	}
	if row[0] < formatVersionOldest || row[0] > formatVersion {
		return fmt.Errorf("catalog format %d, this program reads %d to %d: %w",
			row[0], formatVersionOldest, formatVersion, ErrFormat)
	}
	return nil
}

func writeFormat(b kv.Batch) error { return b.Set([]byte{prefixFormat}, []byte{formatVersion}) }
