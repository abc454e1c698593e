package catalog_test

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal/change"
)

// TestLettersEnd: what ends all letters up to one ends those, too, that become durable later:
// of a piece of a copy that was being made durable just then. Letters after it, and of the
// next copy, are open.
func TestLettersEnd(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	const table = change.TableID(1)
	add := func(generation uint32, tokens ...int64) {
		t.Helper()
		update(t, c, func(txn *catalog.Txn) error {
			for _, token := range tokens {
				l := &catalog.DeadLetter{
					Table: table, DeadLetterRef: catalog.DeadLetterRef{Token: token, ID: uint64(100 + token)}, SchemaVersion: 1,
					Generation: generation, Op: change.Insert, Key: `["1"]`, Row: `{"id":"1"}`, Reason: "r", Code: "22008",
				}
				if err := txn.AddDeadLetter(l); err != nil {
					return err
				}
			}
			return nil
		})
	}
	end := func(token int64) {
		t.Helper()
		update(t, c, func(txn *catalog.Txn) error {
			return txn.CloseDeadLettersTo(table, catalog.DeadLetterRef{Token: token, ID: 1000}, catalog.DeadLetterSuperseded)
		})
	}
	add(0, 5, 9)
	before := snapshot(t, c)
	end(7)
	if tbl := get[*catalog.Table](t)(before.TableByID(table)); tbl.LettersEnd != nil {
		t.Error("a snapshot of before has the end")
	}
	wantLetters(t, c, table, "109 open", "105 superseded")
	c = open(t, store) // which knows it still
	add(0, 6, 8)       // 6 was on its way
	wantLetters(t, c, table, "108 open", "109 open", "105 superseded", "106 superseded")
	end(3) // of an older transaction, sent again
	add(0, 4)
	wantLetters(t, c, table, "108 open", "109 open", "104 superseded", "105 superseded", "106 superseded")
	update(t, c, func(txn *catalog.Txn) error {
		tbl, err := txn.TableByID(table)
		if err != nil {
			return err
		}
		tbl.Generation++
		if err := txn.PutTable(tbl); err != nil {
			return err
		}
		return txn.TrimDeadLetters(table, 0)
	})
	add(1, 2)
	wantLetters(t, c, table, "102 open")
	c = open(t, store)
	wantLetters(t, c, table, "102 open")
}

// TestDeadLetters: a letter is added once, closed once whichever comes first, listed in
// the order of its change, and gone with its table.
func TestDeadLetters(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	const table = change.TableID(1)
	letter := func(token int64, id uint64) *catalog.DeadLetter {
		return &catalog.DeadLetter{
			Table: table, DeadLetterRef: catalog.DeadLetterRef{Token: token, ID: id}, SchemaVersion: 1,
			Op: change.Insert, Key: `["1"]`, Row: `{"id":"1"}`, Reason: "r", Code: "22008",
		}
	}
	update(t, c, func(txn *catalog.Txn) error {
		if err := txn.CloseDeadLetter(table, catalog.DeadLetterRef{Token: 7, ID: 3}, catalog.DeadLetterSuperseded); err != nil {
			return err
		}
		for _, l := range []*catalog.DeadLetter{letter(9, 1), letter(-1, 2), letter(7, 3), letter(9, 1)} {
			if err := txn.AddDeadLetter(l); err != nil {
				return err
			}
		}
		return nil
	})
	wantLetters(t, c, table, "2 open", "1 open") // 3 was closed before it came
	update(t, c, func(txn *catalog.Txn) error {
		if err := txn.CloseDeadLetter(table, letter(9, 1).DeadLetterRef, catalog.DeadLetterRetried); err != nil {
			return err
		}
		if err := txn.CloseDeadLetter(table, letter(9, 1).DeadLetterRef, catalog.DeadLetterSuperseded); err != nil {
			return err
		}
		return txn.AddDeadLetter(letter(9, 1)) // refused again after a crash
	})
	wantLetters(t, c, table, "2 open", "1 retried")
	c = open(t, store)
	wantLetters(t, c, table, "2 open", "1 retried")

	update(t, c, func(txn *catalog.Txn) error {
		tbl, err := txn.TableByID(table)
		if err != nil {
			return err
		}
		tbl.Generation++
		return txn.PutTable(tbl)
	})
	wantLetters(t, c, table, "2 discarded", "1 retried")
	update(t, c, func(txn *catalog.Txn) error { return txn.TrimDeadLetters(table, 10) })
	wantLetters(t, c, table)
	update(t, c, func(txn *catalog.Txn) error {
		l := letter(10, 4)
		l.Generation = 1
		return txn.AddDeadLetter(l)
	})
	wantLetters(t, c, table, "4 open")
	update(t, c, func(txn *catalog.Txn) error { return txn.DeleteTable(table) })
	rows := 0
	err := kv.IteratePrefix(store, []byte{0x26}, func(_, _ []byte) error { rows++; return nil })
	if err != nil || rows != 0 {
		t.Errorf("%d letters of a dropped table, %v", rows, err)
	}
}

func wantLetters(t *testing.T, c *catalog.Catalog, table change.TableID, want ...string) {
	t.Helper()
	snap := c.Snapshot()
	defer snap.Close()
	all, err := snap.DeadLetters(table)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range all {
		got = append(got, fmt.Sprintf("%d %s", l.ID, l.State))
		if (l.Row == "") != (l.State != catalog.DeadLetterOpen) {
			t.Errorf("letter %d is %s and has row %q", l.ID, l.State, l.Row)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("letters %q, want %q", got, want)
	}
}
