// Package numeric computes with PostgreSQL's numeric: exact decimals of any size, NaN and
// the infinities, with the display scales that PostgreSQL gives its results.
//
// A Num is read from and written as PostgreSQL's text. Pure; a Num is never changed once
// made, so all functions may be called at once.
//
// Reading order: Num, Parse, Num.Text; arith.go for the operators, transcend.go for roots
// and logarithms, key.go for the order.
package numeric
