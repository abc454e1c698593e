// Package naming reads names, and other texts of a database's catalog, also where they have
// what UTF-8 has no equivalent of. The server ends a query at the first such text, so that
// one table's name would keep all the others from being listed: so it is asked for bytes,
// which are converted here as values are (see charset).
package naming

import (
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/ingest/postgres/charset"
	"github.com/skipprd/skipprd/pgwire/charmap"
)

// Reader reads texts of one database's catalog. It is for one goroutine.
type Reader struct {
	// encoding is the database's where texts come as bytes, "" where they come as they are.
	encoding string
	texts    *charset.Charset
}

// Of is the reader for the database of a connection.
func Of(conn *pgconn.PgConn) *Reader { return of(conn.ParameterStatus("server_encoding")) }

func of(encoding string) *Reader {
	if !charset.Known(encoding) {
		return &Reader{}
	}
	return &Reader{encoding: encoding}
}

// text is an expression in double braces.
var text = regexp.MustCompile(`(?s)\{\{(.*?)\}\}`)

// SQL is a query in which each text expression that is in double braces comes as Text
// takes it.
func (r *Reader) SQL(query string) string {
	if r.encoding == "" {
		return text.ReplaceAllString(query, "($1)::text")
	}
	return text.ReplaceAllString(query, "pg_catalog.encode(pg_catalog.convert_to(($1)::text, '"+r.encoding+"'), 'hex')")
}

// unsaid ends a text that has what UTF-8 has no equivalent of: no UTF-8 has this byte. What
// precedes it is the text with replacement characters.
const unsaid = "\xff"

// Text is a text of a query of SQL. Of one that UTF-8 does not have all, Said is false: it
// means nothing at the source.
func (r *Reader) Text(came string) string {
	if r.encoding == "" {
		return came
	}
	b, err := hex.DecodeString(came)
	if err != nil {
		return came + unsaid // not of a query of SQL
	}
	if charmap.IsASCII(b) {
		return string(b)
	}
	if r.texts == nil {
		if r.texts, err = charset.Of(r.encoding); err != nil || r.texts == nil {
			return strings.ToValidUTF8(string(b), string(utf8.RuneError)) + unsaid
		}
	}
	return Convert(r.texts, string(b))
}

// Convert is Text of what came as it is in the database, whose encoding is texts; nil: it
// is not converted.
func Convert(texts *charset.Charset, raw string) string {
	if texts == nil || charmap.IsASCII([]byte(raw)) {
		return raw
	}
	if out := texts.Append(nil, []byte(raw)); out[0] != charset.Mark {
		return string(out)
	}
	return texts.String(raw) + unsaid
}

// Texts converts texts in place.
func (r *Reader) Texts(came []string) {
	for i := range came {
		came[i] = r.Text(came[i])
	}
}

// Read converts texts in place.
func (r *Reader) Read(came ...*string) {
	for _, t := range came {
		*t = r.Text(*t)
	}
}

// Said says that texts are what they are at the source, all of them.
func Said(texts ...string) bool {
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return false
		}
	}
	return true
}

// Show is a text for readers: what cannot be said of it is replaced.
func Show(t string) string {
	return strings.ToValidUTF8(strings.TrimSuffix(t, unsaid), string(utf8.RuneError))
}
