package pgsql

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"
	"github.com/pganalyze/pg_query_go/v6/parser"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// charPosition turns a byte offset of the parser (0-based, -1 unknown) into the
// 1-based character position that clients expect.
// Position is where a byte of a statement is, as errors say it.
func Position(sql string, offset int32) int32 { return charPosition(sql, offset) }

func charPosition(sql string, offset int32) int32 {
	if offset < 0 {
		return 0
	}
	n := min(int(offset), len(sql))
	return int32(utf8.RuneCountInString(sql[:n])) + 1
}

// syntaxError translates the parser's error, which points at byte Cursorpos
// (1-based, 0 unknown).
func syntaxError(sql string, err error) error {
	var p *parser.Error
	if !errors.As(err, &p) {
		return pgerr.New(codes.Syntax, "%s", err)
	}
	e := pgerr.New(codes.Syntax, "%s", p.Message)
	switch {
	case strings.Contains(p.Message, "not supported"), strings.Contains(p.Message, "not implemented"):
		e.Code = codes.FeatureNotSupported
	case strings.HasPrefix(p.Message, "invalid Unicode escape"):
		e.Code = codes.Syntax
	case strings.HasPrefix(p.Message, "frame start"), strings.HasPrefix(p.Message, "frame end"), strings.HasPrefix(p.Message, "frame starting"):
		e.Code = codes.Windowing
	case strings.HasPrefix(p.Message, "invalid byte sequence"):
		e.Code = codes.CharacterNotInRepertoire
	}
	if p.Cursorpos > 0 {
		e = e.WithPosition(charPosition(sql, int32(p.Cursorpos-1)))
	}
	return e
}

func unsupported(format string, args ...any) *pgerr.Error {
	return pgerr.New(codes.FeatureNotSupported, format, args...)
}

var (
	errMultiple = pgerr.New(codes.Syntax, "cannot insert multiple commands into a prepared statement")
	errNul      = pgerr.New(codes.CharacterNotInRepertoire, `invalid byte sequence for encoding "UTF8": 0x00`)
)

// shift moves an error's position by the start of its statement in a longer string.
func shift(err error, offset int32) error {
	e, ok := pgerr.As(err)
	if !ok || e.Position == 0 || offset == 0 {
		return err
	}
	return e.WithPosition(e.Position + offset)
}
