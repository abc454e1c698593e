// Package foreign says what foreign keys ask of rows: the queries that find rows which they
// exclude, the statements that ON DELETE and ON UPDATE run, and PostgreSQL's errors. It runs none
// of them.
package foreign
