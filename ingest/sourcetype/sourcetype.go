// Package sourcetype keeps the types that a pipeline's source has as the source has them now: under
// which names they are known here, and which have gone.
package sourcetype

import (
	"fmt"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/wal/change"
)

// nameBytesMax is PostgreSQL's limit of names.
const nameBytesMax = 63

// Follow puts what a source has into the catalog. schemaOf is where things of a schema of the
// source are here. With all, found are all types that columns of the pipeline's tables are of, and
// others go, unless something here has them.
func Follow(txn *catalog.Txn, p *catalog.Pipeline, found []usertype.Found, schemaOf func(string) string, all bool) error {
	known := map[uint32]*usertype.Type{}
	for _, t := range txn.Types() {
		if t.Source != nil && t.Source.Pipeline == p.ID {
			known[t.Source.OID] = t
		}
	}
	seen := map[uint32]bool{}
	for i := range found {
		f := found[i]
		if seen[f.OID] {
			continue
		}
		seen[f.OID] = true
		f.Pipeline = p.ID
		if err := one(txn, p, known[f.OID], &f, schemaOf(f.Schema)); err != nil {
			return fmt.Errorf("type %s.%s of the source: %w", f.Schema, f.Name, err)
		}
	}
	for oid, t := range known {
		if !all || seen[oid] || hasColumn(txn, p.ID, t) || len(txn.TypeUsers(t)) > 0 {
			continue
		}
		if err := txn.DropType(t); err != nil {
			return err
		}
	}
	return nil
}

// hasColumn says whether a column of a pipeline's tables is of a type.
func hasColumn(txn *catalog.Txn, pipeline change.PipelineID, t *usertype.Type) bool {
	for _, table := range txn.EveryTableOf(pipeline) {
		for _, f := range table.Current.Fields {
			if f.OID == t.Source.OID || f.OID == t.Source.ArrayOID && f.OID != 0 {
				return true
			}
		}
	}
	return false
}

// one puts one type. One that has been renamed at the source, or moved, is so here, unless
// something names it.
func one(txn *catalog.Txn, p *catalog.Pipeline, t *usertype.Type, f *usertype.Found, schemaName string) error {
	if t == nil {
		if t = left(txn, f, schemaName); t == nil {
			t = &usertype.Type{ID: txn.ReserveTable(), Schema: schemaName, Name: free(txn, p, schemaName, f.Name), Owner: ownerOf(txn, p)}
		}
		next, _ := t.Follow(f)
		return txn.PutType(next)
	}
	next, changed := t.Follow(f)
	if !changed {
		return nil
	}
	moved := t.Source.Schema != f.Schema || t.Source.Name != f.Name
	if moved && len(txn.TypeUsers(t)) == 0 {
		if err := txn.DeleteType(t.Schema, t.Name); err != nil { // its rights go with its number
			return err
		}
		next.Schema, next.Name = schemaName, free(txn, p, schemaName, f.Name)
	}
	return txn.PutType(next)
}

// left is a type that a pipeline had which is gone, and something here has still: the same, as far
// as names and how it compares tell.
func left(txn *catalog.Txn, f *usertype.Found, schemaName string) *usertype.Type {
	t, err := txn.TypeByName(schemaName, f.Name)
	if err != nil || t.Source == nil || t.Source.Pipeline != 0 || t.Kind != f.Kind || t.Source.Textual != f.Textual {
		return nil
	}
	return t
}

func ownerOf(txn *catalog.Txn, p *catalog.Pipeline) uint32 {
	r, err := txn.Role(p.Owner)
	if err != nil {
		return 0
	}
	return r.OID
}

// free is a name in a schema that no type has, nor the rows of a table or view: the source's, or
// that with the pipeline's behind it.
func free(txn *catalog.Txn, p *catalog.Pipeline, schemaName, name string) string {
	taken := func(name string) bool {
		_, noType := txn.TypeByName(schemaName, name)
		_, noTable := txn.TableByName(schemaName, name)
		_, noView := txn.ViewByName(schemaName, name)
		return noType == nil || noTable == nil || noView == nil
	}
	out := name
	for n := 1; taken(out); n++ {
		suffix := "_" + p.Name
		if n > 1 {
			suffix += fmt.Sprintf("_%d", n)
		}
		out = cut(name, nameBytesMax-len(suffix)) + suffix
	}
	return out
}

// cut is the beginning of a text, of at most n bytes, in whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:max(n, 0)]
}
