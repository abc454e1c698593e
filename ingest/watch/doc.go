// Package watch decides what to do when the tables at a source are no longer those that
// were taken in: new ones, dropped ones, others under an old name, partitions that came
// with rows or left with them. The stream tells of none of these. It knows values only.
package watch
