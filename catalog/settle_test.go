package catalog_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
)

// deafBackup is a memBackup whose answers are lost: what it is given is there.
type deafBackup struct {
	memBackup
	lost int // answers that are lost from now on
}

func (d *deafBackup) Write(image []byte) error {
	if err := d.memBackup.Write(image); err != nil {
		return err
	}
	if d.lost > 0 {
		d.lost--
		return errLost
	}
	return nil
}

var errLost = errors.New("test: no answer")

// schemaIn says whether the next host would find a schema.
func schemaIn(t *testing.T, d *deafBackup, name string) bool {
	t.Helper()
	next := &memBackup{image: slices.Clone(d.image)}
	c := openBackedUp(t, next)
	defer func() { _ = c.Close() }()
	snap := c.Snapshot()
	defer snap.Close()
	return hasSchema(snap, name)
}

func hasSchema(snap *catalog.Snapshot, name string) bool {
	return slices.ContainsFunc(snap.Schemas(), func(s *catalog.Schema) bool { return s.Name == name })
}

func define(c *catalog.Catalog, name string) error {
	return c.Update(context.Background(), func(txn *catalog.Txn) error { return txn.CreateSchema(&catalog.Schema{Name: name}) })
}

// A definition whose backup got no answer is undone here and may be there for the next host,
// until another image has taken its place: by SettleBackup, by the next definition, by Backup.
func TestSettleBackup(t *testing.T) {
	for name, settle := range map[string]func(*catalog.Catalog) error{
		"settle":     func(c *catalog.Catalog) error { return c.SettleBackup(t.Context()) },
		"definition": func(c *catalog.Catalog) error { return define(c, "later") },
		"backup":     func(c *catalog.Catalog) error { return c.Backup(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			d := &deafBackup{}
			c := openBackedUp(t, d)
			defer func() { _ = c.Close() }()
			if err := define(c, "first"); err != nil {
				t.Fatal(err)
			}
			writes := d.writes
			if err := c.SettleBackup(t.Context()); err != nil || d.writes != writes {
				t.Errorf("nothing to settle: %v, %d writes", err, d.writes-writes)
			}
			d.lost = 2
			if err := define(c, "undone"); !errors.Is(err, errLost) {
				t.Fatalf("told %v", err)
			}
			snap := c.Snapshot()
			here := hasSchema(snap, "undone")
			snap.Close()
			if here || !schemaIn(t, d, "undone") {
				t.Fatalf("here: %t", here)
			}
			if err := c.SettleBackup(t.Context()); !errors.Is(err, errLost) {
				t.Errorf("settled though the store does not answer: %v", err)
			}
			if err := settle(c); err != nil {
				t.Fatal(err)
			}
			writes = d.writes
			if err := c.SettleBackup(t.Context()); err != nil || d.writes != writes {
				t.Errorf("settled again: %v, %d writes", err, d.writes-writes)
			}
			if !schemaIn(t, d, "first") || schemaIn(t, d, "undone") {
				t.Error("the next host does not find what is here")
			}
		})
	}
}

// Who has no backup has nothing to settle.
func TestSettleWithoutBackup(t *testing.T) {
	c, err := catalog.Open(t.Context(), memkv.New(), testDeps())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SettleBackup(t.Context()); err != nil {
		t.Error(err)
	}
}
