package mirror

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/skipprd/skipprd/ingest/verify"
)

// message is a DataRow of cells, "-" for null.
func message(cells ...string) []byte {
	body := binary.BigEndian.AppendUint16(nil, uint16(len(cells)))
	for _, c := range cells {
		if c == "-" {
			body = binary.BigEndian.AppendUint32(body, 1<<32-1)
			continue
		}
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(c))), c...)
	}
	return append(binary.BigEndian.AppendUint32([]byte{'D'}, uint32(4+len(body))), body...)
}

// TestEach: rows come cell by cell, null apart from empty; what is cut short, or has
// another number of cells, is an error and never another row.
func TestEach(t *testing.T) {
	two := append(message("a", "-"), message("", "bc")...)
	var got []string
	err := each(two, make(verify.Cells, 2), func(row verify.Cells) error {
		got = append(got, string(verify.AppendRecord(nil, row)))
		return nil
	})
	if err != nil || len(got) != 2 || got[0] != "(a,)" || got[1] != `("",bc)` {
		t.Fatalf("%q, %v", got, err)
	}
	ignore := func(verify.Cells) error { return nil }
	first := len(message("a", "-"))
	for n := range two {
		if err := each(two[:n], make(verify.Cells, 2), ignore); n != 0 && n != first && !errors.Is(err, errMessage) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	for name, data := range map[string][]byte{
		"three cells": message("a", "b", "c"), "another message": append([]byte{'C'}, message("a", "b")[1:]...),
		"a cell too long": append([]byte{'D', 0, 0, 0, 14, 0, 2, 0, 0, 0, 99}, 0, 0, 0, 0),
	} {
		if err := each(data, make(verify.Cells, 2), ignore); !errors.Is(err, errMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
