package query

import "slices"

// Result is a table's rows, as a query gave them. Immutable.
type Result struct {
	// Digest is a function of the rows, in whatever order they came.
	Digest Digest
	text   []byte
	ends   []int
}

// Digest tells two bags of rows apart.
type Digest struct {
	Rows int
	Sum  uint64
}

// Add adds a rendered row.
func (d *Digest) Add(row []byte) {
	d.Rows++
	d.Sum += hash(row)
}

// Remove takes out a row that was added.
func (d *Digest) Remove(row []byte) {
	d.Rows--
	d.Sum -= hash(row)
}

// hash is FNV-1a with a final mix, so that sums of hashes do not cancel out.
func hash(b []byte) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, c := range b {
		h = (h ^ uint64(c)) * prime
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

// NewResult makes a result of rendered rows.
func NewResult(rows ...string) *Result {
	r := &Result{}
	for _, row := range rows {
		r.text = append(r.text, row...)
		r.end(len(r.text) - len(row))
	}
	return r
}

// end closes the row that begins at byte start.
func (r *Result) end(start int) {
	r.ends = append(r.ends, len(r.text))
	r.Digest.Add(r.text[start:])
}

// Len is the number of rows.
func (r *Result) Len() int { return len(r.ends) }

// Rows are the rows, sorted.
func (r *Result) Rows() []string {
	out := make([]string, len(r.ends))
	start := 0
	for i, end := range r.ends {
		out[i] = string(r.text[start:end])
		start = end
	}
	slices.Sort(out)
	return out
}
