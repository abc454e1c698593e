// Package copyin decodes the data of COPY FROM STDIN into rows of nullable byte
// fields: PostgreSQL's text, csv and binary formats, row by row, with its rules about
// line ends, quotes, escapes, markers and encodings, and with its errors (SQLSTATE,
// message, CONTEXT). It does not turn fields into values of a type, and does not know
// tables, sessions or messages: the data is an io.Reader, cut anywhere.
//
// Reading order: Options, which COPY's option list is checked into; Config, New and
// Decoder; then a file for each format. input.go holds the only buffer.
//
// The oracle is PostgreSQL 15, the version whose face the server shows: in csv a line
// that is just \. ends the data. DEFAULT and FORCE_NULL * are those of later versions.
//
// What is allocated follows what has arrived, never a length that was announced, and
// stays below twice Config.RowBytesMax plus two reads: the row, and the values in it
// that are spelled otherwise.
package copyin
