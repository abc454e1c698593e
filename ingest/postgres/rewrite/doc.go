// Package rewrite knows whether a table was rewritten after it got a column. PostgreSQL says
// what older rows have in a new column as long as it was not; afterwards they have values of
// their own, which it does not send.
package rewrite
