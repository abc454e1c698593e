// Package encname knows PostgreSQL's names of character sets.
package encname

import (
	"slices"
	"strings"
)

// UTF8 is the one that the server has.
const UTF8 = "UTF8"

// aliases are the names that differ from the character set's own by more than case and signs.
var aliases = map[string]string{
	"abc": "WIN1258", "alt": "WIN866", "koi8": "KOI8R", "mskanji": "SJIS", "shiftjis": "SJIS", "tcvn": "WIN1258", "tcvn5712": "WIN1258",
	"unicode": UTF8, "vscii": "WIN1258", "win": "WIN1251", "win932": "SJIS", "win936": "GBK", "win949": "UHC", "win950": "BIG5",
	"windows932": "SJIS", "windows936": "GBK", "windows949": "UHC", "windows950": "BIG5",
	"iso88591": "LATIN1", "iso88592": "LATIN2", "iso88593": "LATIN3", "iso88594": "LATIN4", "iso88599": "LATIN5", "iso885910": "LATIN6",
	"iso885913": "LATIN7", "iso885914": "LATIN8", "iso885915": "LATIN9", "iso885916": "LATIN10",
	"windows866": "WIN866", "windows874": "WIN874", "windows1250": "WIN1250", "windows1251": "WIN1251", "windows1252": "WIN1252",
	"windows1253": "WIN1253", "windows1254": "WIN1254", "windows1255": "WIN1255", "windows1256": "WIN1256", "windows1257": "WIN1257",
	"windows1258": "WIN1258",
}

// own are the names that PostgreSQL shows, by its numbers of them.
var own = []string{
	"SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", UTF8, "MULE_INTERNAL", "LATIN1", "LATIN2", "LATIN3", "LATIN4",
	"LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9", "LATIN10", "WIN1256", "WIN1258", "WIN866", "WIN874", "KOI8R", "WIN1251", "WIN1252",
	"ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8", "WIN1250", "WIN1253", "WIN1254", "WIN1255", "WIN1257", "KOI8U",
	"SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004",
}

// clientOnly are those that no database can have: a byte of a character may be ASCII.
var clientOnly = map[string]bool{"SJIS": true, "BIG5": true, "GBK": true, "UHC": true, "GB18030": true, "JOHAB": true, "SHIFT_JIS_2004": true}

// ClientOnly says that no database can have an encoding, by its own name.
func ClientOnly(name string) bool { return clientOnly[name] }

// Number is PostgreSQL's number of an encoding by its own name, -1 for what is none.
func Number(name string) int { return slices.Index(own, name) }

// Named is the encoding of a number, "" for none.
func Named(number int) string {
	if number < 0 || number >= len(own) {
		return ""
	}
	return own[number]
}

var names = func() map[string]string {
	out := map[string]string{}
	for alias, name := range aliases {
		out[alias] = name
	}
	for _, name := range own {
		out[clean(name)] = name
	}
	return out
}()

// clean leaves the letters and digits of a name, which alone tell names apart.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
}

// Own is the name that PostgreSQL shows of a character set; false for what is none.
func Own(name string) (string, bool) {
	const nameBytes = 63
	if len(name) > nameBytes {
		return "", false
	}
	out, ok := names[clean(name)]
	return out, ok
}
