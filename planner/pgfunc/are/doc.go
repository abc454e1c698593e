// Package are matches PostgreSQL's advanced regular expressions as PostgreSQL does.
//
// PostgreSQL's engine is Henry Spencer's. It finds the leftmost match; of those that begin there
// the longest, or the shortest when the expression as a whole prefers that; then it divides the
// match among the parts of the expression, from the left, each part being as long or as short as
// it prefers. Which parts there are, and what each prefers, is decided when the expression is
// read. The engine needs no order of trial for that but one question: where may this part
// end that begins here. Here it is answered by simulating a nondeterministic automaton, in time
// that is the product of the lengths of text and expression, at most once for a part and a place.
//
// Only back references make a search that tries: it counts its steps, and ends with ErrSteps.
//
// Pure; a Regexp is safe for concurrent use.
package are
