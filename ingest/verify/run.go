package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Options bound a comparison; zero is the default.
type Options struct {
	// Ranges is how many ranges a table is cut into at most; default 64.
	Ranges int
	// Keys is how many differing keys of a table are named at most; default 100.
	Keys int
	// RowsMost is how many rows of one side are held in memory; default 100,000.
	RowsMost int64
	// RangesOnly leaves the keys out.
	RangesOnly bool
}

func (o Options) withDefaults() Options {
	if o.Ranges <= 0 {
		o.Ranges = 64
	}
	if o.Keys <= 0 {
		o.Keys = 100
	}
	if o.RowsMost <= 0 {
		o.RowsMost = 100_000
	}
	return o
}

// State is what a line of the result says.
type State string

// The states. The last four are of a key.
const (
	Equal     State = "equal"
	Differs   State = "differs"
	Skipped   State = "skipped"
	Missing   State = "missing here"
	Extra     State = "extra here"
	Different State = "different"
	Letter    State = "dead letter"
)

// Line is one line of the result: a run of ranges that are all equal, a range that
// differs, a key of such a range, or a table that was left out.
type Line struct {
	Table string
	// Low and High bound the range, from Low up to High; nil: no bound.
	Low, High              *string
	RowsSource, RowsHere   int64
	State                  State
	Key, Detail            string
	isKey, unknownRowCount bool
	passes                 bool // see SkipError
}

// Counted says that the line's rows were counted.
func (l *Line) Counted() bool { return !l.isKey && !l.unknownRowCount }

// Run compares tables, one after the other. tick is told the share of a table that is done.
func Run(ctx context.Context, tables []*Table, source Source, here Here, o Options,
	tick func(table string, share float64),
) ([]Line, error) {
	var out []Line
	for _, t := range tables {
		if t.Skip != "" {
			out = append(out, skipped(t, &SkipError{Reason: t.Skip, Passes: t.Skip == SkipTruncated}))
			continue
		}
		v := &verifier{
			table: t, here: here, options: o.withDefaults(),
			tick: func(share float64) { tick(t.Name, share) },
		}
		lines, err := v.run(ctx, source)
		var skip *SkipError
		switch {
		case errors.As(err, &skip):
			lines = []Line{skipped(t, skip)}
		case err != nil:
			return out, fmt.Errorf("verify %s: %w", t.Name, err)
		}
		out = append(append(out, lines...), letters(t, o.withDefaults().Keys)...)
		tick(t.Name, 1)
	}
	return out, nil
}

// letters are lines for the rows that were not compared.
func letters(t *Table, most int) []Line {
	var out []Line
	for _, key := range slices.Sorted(maps.Keys(t.SetAside)) {
		if len(out) == most {
			out = append(out, Line{
				Table: t.Name, State: Letter, unknownRowCount: true,
				Detail: fmt.Sprintf("%d rows in all were not compared: see skippr.dead_letters", len(t.SetAside)),
			})
			break
		}
		name := key
		if len(t.Key) == 1 {
			name = Unrecord(key)
		}
		out = append(out, Line{Table: t.Name, State: Letter, Key: name, Detail: t.SetAside[key], isKey: true})
	}
	return out
}

func skipped(t *Table, why *SkipError) Line {
	return Line{Table: t.Name, State: Skipped, Detail: why.Reason, unknownRowCount: true, passes: why.Passes}
}

// verifier compares one table. Used by one goroutine.
type verifier struct {
	table   *Table
	source  Reader
	here    Here
	options Options
	tick    func(share float64)
}

// The first pass is at the source for this share of the progress, then here.
const sourceShare = 0.5

func (v *verifier) run(ctx context.Context, source Source) (lines []Line, err error) {
	if v.source, err = source.Open(ctx, v.table); err != nil {
		return nil, err
	}
	defer func() {
		if e := v.source.Done(ctx); err == nil {
			err = e
		}
	}()
	var bounds []string
	if len(v.table.Key) > 0 {
		if bounds, err = v.source.Bounds(ctx, v.options.Ranges); err != nil {
			return nil, err
		}
	}
	ranges, err := newRanges(v.table.IntegerKey && len(v.table.Key) > 0, bounds)
	if err != nil {
		return nil, err
	}
	q := &Query{Ranges: ranges, Parts: 1}
	theirs, ours, err := v.sums(ctx, q, v.tick)
	if err != nil {
		return nil, err
	}
	lines, differing := v.ranges(ranges, theirs, ours)
	if len(differing) == 0 || v.options.RangesOnly {
		return lines, nil
	}
	keys, more, err := v.keys(ctx, q, differing, theirs, ours)
	if err != nil {
		return nil, err
	}
	return v.withKeys(lines, ranges, keys, more), nil
}

// sums adds up both sides.
func (v *verifier) sums(ctx context.Context, q *Query, tick func(float64)) (theirs, ours map[Unit]Sum, err error) {
	theirs, err = v.source.Sums(ctx, q, func(share float64) { tick(share * sourceShare) })
	if err != nil {
		return nil, nil, err
	}
	var rows, expected int64
	for _, s := range theirs {
		expected += s.Rows
	}
	ours = map[Unit]Sum{}
	c := &cutter{table: v.table, query: q}
	const tickEvery = 1 << 14
	err = v.here.Rows(ctx, v.table, func(row Cells) error {
		if rows++; rows%tickEvery == 0 && q.Only == nil {
			tick(sourceShare + (1-sourceShare)*min(1, float64(rows)/float64(max(expected, 1))))
		}
		u, _, h, wanted, err := c.unit(row)
		if err != nil || !wanted {
			return err
		}
		s := ours[u]
		a, b := h.halves()
		ours[u] = Sum{Rows: s.Rows + 1, A: s.A + a, B: s.B + b}
		return nil
	})
	return theirs, ours, err
}

// ranges makes the lines of ranges, neighbours that are equal in one, and lists those that
// differ.
func (v *verifier) ranges(r *Ranges, theirs, ours map[Unit]Sum) (lines []Line, differing []Unit) {
	bounds := r.Bounds()
	bound := func(i int) *string {
		if i < 0 || i >= len(bounds) {
			return nil
		}
		return &bounds[i]
	}
	for i := range r.Count() {
		a, b := theirs[Unit(i)], ours[Unit(i)]
		l := Line{Table: v.table.Name, Low: bound(i - 1), High: bound(i), RowsSource: a.Rows, RowsHere: b.Rows, State: Equal}
		if a != b {
			l.State = Differs
			differing = append(differing, Unit(i))
		}
		if last := len(lines) - 1; last >= 0 && l.State == Equal && lines[last].State == Equal {
			lines[last].High = l.High
			lines[last].RowsSource += l.RowsSource
			lines[last].RowsHere += l.RowsHere
			continue
		}
		lines = append(lines, l)
	}
	return lines, differing
}

// unitsThat lists the units whose sums differ, ascending.
func unitsThat(theirs, ours map[Unit]Sum) []Unit {
	differ := map[Unit]bool{}
	for u, s := range theirs {
		if ours[u] != s {
			differ[u] = true
		}
	}
	for u, s := range ours {
		if theirs[u] != s {
			differ[u] = true
		}
	}
	return slices.Sorted(maps.Keys(differ))
}
