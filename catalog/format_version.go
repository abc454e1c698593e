package catalog

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/catalog/kv"
)

// formatVersion is the catalog's format that this program writes. It reads those from
// formatVersionOldest on. Version 2 added transactions in parts (pending slices, void schema
// versions) and initial values of columns, which a program that reads 1 would pass over;
// version 3 rows that are told apart by all their columns, copies that are to take their
// table's place, and dead letters; version 4 foreign keys, enumerated types, materialized
// views and tables that get another key; version 5 types of pipelines' sources; version 6 unique
// indexes of some rows, of expressions and with equal nulls, and generated columns.
const formatVersion = 6

const formatVersionOldest = 2

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

// raiseFormat makes the store say that this program writes it, durably, before it does.
// Rows of the version before are valid in this one.
func raiseFormat(store kv.Store) error {
	row, err := store.Get([]byte{prefixFormat})
	if err != nil {
		return fmt.Errorf("read catalog format: %w", err)
	}
	if len(row) == 1 && row[0] == formatVersion {
		return nil
	}
	b := store.NewBatch()
	defer func() { _ = b.Close() }() // nothing is lost: committed or given up
	if err := errors.Join(writeFormat(b), b.Commit(true)); err != nil {
		return fmt.Errorf("raise catalog format: %w", err)
	}
	return nil
}

func checkFormatRow(row []byte) error {
	if len(row) != 1 {
		return fmt.Errorf("catalog format: %w", ErrCorrupt)
	}
	if row[0] < formatVersionOldest || row[0] > formatVersion {
		return fmt.Errorf("%w %d: this program reads %d to %d; a newer one has written it if it is greater",
			ErrFormat, row[0], formatVersionOldest, formatVersion)
	}
	return nil
}

func writeFormat(b kv.Batch) error { return b.Set([]byte{prefixFormat}, []byte{formatVersion}) }
