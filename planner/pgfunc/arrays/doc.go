// Package arrays has the functions of arrays that are no lists: those of several dimensions, or
// that do not begin at 1. Their values travel as the text that PostgreSQL writes, in which each
// element is as its type writes it; the functions here know dimensions and no types.
package arrays
