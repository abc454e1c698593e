// Package segment is the bytes of the log: body and marker. FORMAT.md beside this
// file describes them field by field.
//
// It does no I/O and knows no clock; it cannot say whether a group is committed,
// only whether it is whole. Reading order: Header, Marker; then writing, Encoder,
// Encoded, Builder; then reading, WalkGroups, ParseSlice, Decoder.
//
// It owns W4 (the marker's digest is the body's) and D1 (bytes that fail their
// checksum are an error, never a result).
package segment
