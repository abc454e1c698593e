// Package verify compares tables of a pipeline with their source, at one position, in
// bounded memory.
//
// Both sides render each row as the text that PostgreSQL writes for it and hash that, so
// a comparison knows no types. A table is cut into ranges of its key; each side adds up
// the hashes of a range. Where the sums differ the range is cut again, by a hash of the
// key, until few enough rows are left to compare one by one. So the answer names the keys.
//
// Read Run, then Source and Here, the two sides; then Comparer, which brings a pipeline and
// its source to one moment: see docs/decisions/0022-verify.md.
package verify
