package verify

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"
)

// Unit is a part of a range of a table: range × Query.Parts + part.
type Unit int64

// Query says how a table is cut, and what of it is asked for.
type Query struct {
	Ranges *Ranges
	// Parts is how many parts a range is cut into, by the hash of the key.
	Parts int
	// Only are the units asked for, nil for all.
	Only map[Unit]bool
}

// Sum is what a unit has. Sums of the same rows are equal, in whatever order they come.
type Sum struct {
	Rows int64
	A, B uint64 // of the halves of the rows' hashes, modulo 2^64
}

// Ranges cut a table by the first column of its key: range i has the keys from bound i-1
// up to bound i. Immutable.
type Ranges struct {
	integer  bool
	integers []int64
	texts    [][]byte
}

// newRanges sorts bounds, which come in any order and may repeat.
func newRanges(integer bool, bounds []string) (*Ranges, error) {
	r := &Ranges{integer: integer}
	for _, b := range bounds {
		if !integer {
			r.texts = append(r.texts, []byte(b))
			continue
		}
		n, err := strconv.ParseInt(b, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("bound of an integer key: %w", err)
		}
		r.integers = append(r.integers, n)
	}
	slices.Sort(r.integers)
	r.integers = slices.Compact(r.integers)
	slices.SortFunc(r.texts, bytes.Compare)
	r.texts = slices.CompactFunc(r.texts, bytes.Equal)
	return r, nil
}

// Integer says that the key is compared as an integer, else by the bytes of its text.
func (r *Ranges) Integer() bool { return r.integer }

// Bounds are the texts of the bounds, ascending.
func (r *Ranges) Bounds() []string {
	var out []string
	for _, n := range r.integers {
		out = append(out, strconv.FormatInt(n, 10))
	}
	for _, t := range r.texts {
		out = append(out, string(t))
	}
	return out
}

// Count is how many ranges there are.
func (r *Ranges) Count() int { return len(r.integers) + len(r.texts) + 1 }

// index is the range of a key.
func (r *Ranges) index(key []byte) (int, error) {
	if !r.integer {
		return sort.Search(len(r.texts), func(i int) bool { return bytes.Compare(r.texts[i], key) > 0 }), nil
	}
	if len(r.integers) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(key), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("integer key: %w", err)
	}
	return sort.Search(len(r.integers), func(i int) bool { return r.integers[i] > n }), nil
}

// cutter tells the units of our rows. Used by one goroutine.
type cutter struct {
	table *Table
	query *Query
	key   Cells
	text  []byte
}

// unit is where a row belongs, with its key's text, good until the next call, and the
// hash of the row when it is asked for.
func (c *cutter) unit(row Cells) (u Unit, key []byte, h Hash, wanted bool, err error) {
	t := c.table
	c.key = c.key[:0]
	for _, k := range t.Key {
		c.key = append(c.key, row[k])
	}
	at := 0
	var part Hash
	if len(t.Key) > 0 {
		if at, err = c.query.Ranges.index(row[t.Key[0]]); err != nil {
			return 0, nil, h, false, fmt.Errorf("table %s: %w", t.Name, err)
		}
		c.text = AppendRecord(c.text[:0], c.key)
		if _, aside := t.SetAside[string(c.text)]; aside {
			return 0, nil, h, false, nil
		}
		if c.query.Parts > 1 {
			part = HashText(c.text)
		}
	} else {
		c.text = AppendRecord(c.text[:0], row)
		h = HashText(c.text)
		part = h
	}
	u = Unit(int64(at)*int64(max(c.query.Parts, 1)) + part.part(c.query.Parts))
	if c.query.Only != nil && !c.query.Only[u] {
		return u, nil, h, false, nil
	}
	if len(t.Key) == 0 {
		return u, []byte(h.String()), h, true, nil
	}
	n := len(c.text)
	c.text = AppendRecord(c.text, row)
	return u, c.text[:n:n], HashText(c.text[n:]), true, nil
}
