// Package encode turns column vectors into PostgreSQL wire bytes: DataRow messages
// and the CopyData messages of COPY TO, in text and binary, without allocating per
// row. It also decodes parameters (DecodeParam) and writes rows that the server
// makes itself (AppendDataRow). It does no I/O and knows no engine.
//
// Reading order: Spec, New and Encoder; cell.go chooses the function for a pair of
// engine type and target OID; the other files are one type family each.
//
// Text output is byte-equal to PostgreSQL's output functions under the session's
// DateStyle, IntervalStyle, TimeZone, bytea_output and extra_float_digits; binary
// output is that of the send functions.
package encode
