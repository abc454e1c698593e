package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// difference is a key that is not the same on both sides.
type difference struct {
	state State
	key   []string // of its columns
	text  string   // as a record
	at    int      // the range
	times int      // how often a row without a key is too many or too few
	ours  []string // hashes of our columns, "" for null, of a Different
	names []string // the columns that differ
}

// partsMost bounds the parts that a range is cut into: their sums are held in memory.
const partsMost = 1 << 16

// keys finds the keys of ranges that differ, at most Options.Keys; more says that there
// are others.
func (v *verifier) keys(ctx context.Context, q *Query, units []Unit, theirs, ours map[Unit]Sum) (found []difference,
	more bool, err error,
) {
	rows := func(u Unit) int64 { return max(theirs[u].Rows, ours[u].Rows) }
	var most int64
	for _, u := range units {
		most = max(most, rows(u))
	}
	if want := v.options.RowsMost / 2; most > want { // cut again, so that a unit fits in memory
		q = &Query{Ranges: q.Ranges, Parts: int(min(4*most/want+1, partsMost))}
		q.Only = map[Unit]bool{}
		for _, u := range units {
			for p := range q.Parts {
				q.Only[u*Unit(q.Parts)+Unit(p)] = true
			}
		}
		if theirs, ours, err = v.sums(ctx, q, func(float64) {}); err != nil {
			return nil, false, err
		}
		units = unitsThat(theirs, ours)
	}
	for len(units) > 0 && len(found) < v.options.Keys {
		n, total := 0, int64(0)
		for n < len(units) && (n == 0 || total+rows(units[n]) <= v.options.RowsMost) {
			total += rows(units[n])
			n++
		}
		batch := &Query{Ranges: q.Ranges, Parts: q.Parts, Only: map[Unit]bool{}}
		for _, u := range units[:n] {
			batch.Only[u] = true
		}
		units = units[n:]
		some, cut, err := v.compare(ctx, batch, v.options.Keys-len(found))
		if err != nil {
			return nil, false, err
		}
		found, more = append(found, some...), more || cut
	}
	return found, more || len(units) > 0, v.columns(ctx, found)
}

// entry is a row of the source.
type entry struct {
	hash  Hash
	key   []string
	at    int
	count int  // of equal rows, without a key
	seen  bool // here, too
}

// compare compares the rows of the units one by one.
func (v *verifier) compare(ctx context.Context, q *Query, most int) (found []difference, more bool, err error) {
	entries := map[string]*entry{}
	c := &cutter{table: v.table, query: q}
	err = v.source.Rows(ctx, q, func(key Cells, h Hash) error {
		if len(v.table.Key) == 0 {
			text := h.String()
			if e := entries[text]; e != nil {
				e.count++
			} else {
				entries[text] = &entry{hash: h, count: 1}
			}
			return nil
		}
		at, err := q.Ranges.index(key[0])
		entries[string(AppendRecord(nil, key))] = &entry{hash: h, key: texts(key), at: at}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	note := func(d difference) {
		if len(found) == most {
			more = true
			return
		}
		found = append(found, d)
	}
	err = v.here.Rows(ctx, v.table, func(row Cells) error {
		u, key, h, wanted, err := c.unit(row)
		if err != nil || !wanted {
			return err
		}
		e := entries[string(key)]
		at := int(u) / max(q.Parts, 1)
		switch {
		case len(v.table.Key) == 0 && e == nil:
			entries[string(key)] = &entry{hash: h, count: -1}
		case len(v.table.Key) == 0:
			e.count--
		case e == nil || e.seen: // seen: the key is here twice
			note(difference{state: Extra, key: texts(c.key), text: string(key), at: at})
		default:
			e.seen = true
			if e.hash != h {
				note(difference{state: Different, key: e.key, text: string(key), at: at, ours: v.hashes(row)})
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	for text, e := range entries {
		switch {
		case len(v.table.Key) == 0 && e.count > 0:
			note(difference{state: Missing, text: text, times: e.count})
		case len(v.table.Key) == 0 && e.count < 0:
			note(difference{state: Extra, text: text, times: -e.count})
		case len(v.table.Key) > 0 && !e.seen:
			note(difference{state: Missing, key: e.key, text: text, at: e.at})
		}
	}
	return found, more, nil
}

func texts(cells Cells) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = string(c)
	}
	return out
}

// hashes are those of a row's columns.
func (v *verifier) hashes(row Cells) []string {
	out := make([]string, len(row))
	for i, c := range row {
		if c != nil {
			out[i] = HashText(c).String()
		}
	}
	return out
}

// columns finds out which columns of keys differ.
func (v *verifier) columns(ctx context.Context, found []difference) error {
	var keys [][]string
	byKey := map[string]*difference{}
	for i := range found {
		if d := &found[i]; d.state == Different {
			keys = append(keys, d.key)
			byKey[d.text] = d
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return v.source.Columns(ctx, keys, func(key Cells, hashes []string) error {
		d := byKey[string(AppendRecord(nil, key))]
		if d == nil || len(hashes) != len(v.table.Columns) {
			return fmt.Errorf("columns of table %s: the source answered for another row", v.table.Name)
		}
		for i, name := range v.table.Columns {
			if hashes[i] != d.ours[i] {
				d.names = append(d.names, name)
			}
		}
		return nil
	})
}

// withKeys puts the lines of keys behind those of their ranges.
func (v *verifier) withKeys(lines []Line, r *Ranges, found []difference, more bool) []Line {
	slices.SortFunc(found, func(a, b difference) int {
		return cmp.Or(cmp.Compare(a.at, b.at), v.compareKeys(a, b), strings.Compare(string(a.state), string(b.state)))
	})
	var out []Line
	at := -1
	bounds := r.Bounds()
	for _, l := range lines {
		out = append(out, l)
		at = r.Count() - 1
		if l.High != nil {
			at = slices.Index(bounds, *l.High)
		}
		if l.State != Differs {
			continue
		}
		for _, d := range found {
			if d.at == at {
				out = append(out, Line{Table: l.Table, Low: l.Low, High: l.High, State: d.state, Key: d.name(), Detail: d.detail(), isKey: true})
			}
		}
	}
	if more {
		out = append(out, Line{
			Table: v.table.Name, State: Differs, unknownRowCount: true, isKey: false,
			Detail: fmt.Sprintf("more keys differ than the %d named", len(found)),
		})
	}
	return out
}

func (v *verifier) compareKeys(a, b difference) int {
	if v.table.IntegerKey && len(a.key) > 0 && len(b.key) > 0 {
		x, _ := strconv.ParseInt(a.key[0], 10, 64)
		y, _ := strconv.ParseInt(b.key[0], 10, 64)
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return bytes.Compare([]byte(a.text), []byte(b.text))
}

// name is the key as people write it; a row without one goes by its hash.
func (d *difference) name() string {
	switch len(d.key) {
	case 0:
		return "md5 " + d.text
	case 1:
		return d.key[0]
	}
	return d.text
}

func (d *difference) detail() string {
	switch {
	case d.times > 1:
		return fmt.Sprintf("%d times", d.times)
	case len(d.names) > 0:
		return strings.Join(d.names, ", ")
	}
	return ""
}
