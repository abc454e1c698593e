package charmap

// Bytes that begin, and continue, sequences of several bytes.
const (
	high    = 0x80 // and above: not ASCII
	single2 = 0x8E // SS2
	single3 = 0x8F // SS3
	planes  = 7    // that SS2 reaches in EUC_TW: 0xA1 to 0xA7
)

// form is how the sequences of an encoding are built.
type form uint8

const (
	oneByte       form = iota
	eucJapanese        // two bytes, also behind SS2; three behind SS3
	eucChina           // two bytes
	eucKorea           // two bytes
	eucTaiwan          // two bytes; four behind SS2
	johab              // as PostgreSQL sees it: two bytes, three behind SS3
	shiftJapanese      // one byte for half-width katakana, else two
	freeSecond         // two bytes, the second of any value but zero: BIG5, GBK, UHC
	gb18030            // four bytes where the second is a digit, else two
)

// forms are the encodings that PostgreSQL converts from and to UTF-8.
var forms = map[string]form{
	"EUC_CN": eucChina, "EUC_JIS_2004": eucJapanese, "EUC_JP": eucJapanese, "EUC_KR": eucKorea, "EUC_TW": eucTaiwan,
	"ISO_8859_5": oneByte, "ISO_8859_6": oneByte, "ISO_8859_7": oneByte, "ISO_8859_8": oneByte, "KOI8R": oneByte, "KOI8U": oneByte,
	"LATIN1": oneByte, "LATIN10": oneByte, "LATIN2": oneByte, "LATIN3": oneByte, "LATIN4": oneByte, "LATIN5": oneByte,
	"LATIN6": oneByte, "LATIN7": oneByte, "LATIN8": oneByte, "LATIN9": oneByte,
	"WIN1250": oneByte, "WIN1251": oneByte, "WIN1252": oneByte, "WIN1253": oneByte, "WIN1254": oneByte, "WIN1255": oneByte,
	"WIN1256": oneByte, "WIN1257": oneByte, "WIN1258": oneByte, "WIN866": oneByte, "WIN874": oneByte,
	"SJIS": shiftJapanese, "SHIFT_JIS_2004": shiftJapanese, "BIG5": freeSecond, "GBK": freeSecond, "UHC": freeSecond,
	"JOHAB": johab, "GB18030": gb18030,
}

// announced is how many bytes the sequence has that b begins with, by what its first bytes say:
// there may be fewer, and they may be wrong. b is not empty.
func (f form) announced(b []byte) int {
	first := b[0]
	switch {
	case first < high || f == oneByte:
		return 1
	case f == shiftJapanese && first >= 0xA1 && first <= 0xDF:
		return 1
	case first == single3 && (f == eucJapanese || f == johab || f == eucTaiwan):
		return 3
	case first == single2 && f == eucTaiwan:
		return 4
	case f == gb18030 && len(b) > 1 && digit(b[1]):
		return 4
	}
	return 2
}

// named is how many bytes an error names of what b begins with.
func (f form) named(b []byte) int {
	n := f.announced(b)
	if f == eucKorea && b[0] == single3 || f == eucChina && (b[0] == single2 || b[0] == single3) {
		n = 3
	}
	return min(n, len(b))
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// in says that a byte continues a sequence of EUC.
func in(c byte) bool { return c >= 0xA1 && c <= 0xFE }

// valid says that b is a sequence of the encoding, whether it means anything or not. It has as
// many bytes as announced says.
func (f form) valid(b []byte) bool {
	first := b[0]
	if len(b) == 1 {
		return true
	}
	second := b[1]
	switch f {
	case eucJapanese:
		switch first {
		case single2:
			return second >= 0xA1 && second <= 0xDF
		case single3:
			return in(second) && in(b[2])
		}
		return in(first) && in(second)
	case eucChina, eucKorea:
		return in(first) && in(second)
	case eucTaiwan:
		switch first {
		case single2:
			return second >= 0xA1 && second <= 0xA0+planes && in(b[2]) && in(b[3])
		case single3:
			return false
		}
		return in(second)
	case johab:
		return in(second) && (len(b) == 2 || in(b[2]))
	case shiftJapanese:
		return (first >= 0x81 && first <= 0x9F || first >= 0xE0 && first <= 0xFC) &&
			(second >= 0x40 && second <= 0x7E || second >= 0x80 && second <= 0xFC)
	case freeSecond:
		return second != 0
	case gb18030:
		if len(b) == 4 {
			return first >= 0x81 && first <= 0xFE && b[2] >= 0x81 && b[2] <= 0xFE && digit(b[3])
		}
		return first >= 0x81 && first <= 0xFE && (second >= 0x40 && second <= 0x7E || second >= 0x80 && second <= 0xFE)
	}
	return false
}

// Where sequences have their places: those of one byte first, those of two by themselves, and the
// longer ones behind them.
const (
	longPlace    = high << 8
	longRow      = 0x60 // third and fourth bytes of EUC, from 0xA0
	planesPlace  = longRow * longRow
	quadPlaceMax = 39420 // the sequences of four bytes of GB18030 for the basic plane
	quadBeyond   = 189000
)

// room is how many places an encoding has.
func (f form) room() int {
	switch f {
	case oneByte:
		return high
	case eucJapanese, johab:
		return longPlace + planesPlace
	case eucTaiwan:
		return longPlace + planes*planesPlace
	case gb18030:
		return longPlace + quadPlaceMax
	}
	return longPlace
}

// place is where a valid sequence is, negative where there is nothing.
func (f form) place(b []byte) int {
	lead := int(b[0]) - high
	switch {
	case f == oneByte:
		return lead
	case len(b) == 1:
		return lead << 8 // no second byte is zero
	case len(b) == 2:
		return lead<<8 | int(b[1])
	case len(b) == 3:
		return longPlace + (int(b[1])-0xA0)*longRow + int(b[2]) - 0xA0
	case f == eucTaiwan:
		return longPlace + (int(b[1])-0xA1)*planesPlace + (int(b[2])-0xA0)*longRow + int(b[3]) - 0xA0
	}
	if n := quad(b); n < quadPlaceMax {
		return longPlace + n
	}
	return -1
}

// quad is the number of a sequence of four bytes of GB18030.
func quad(b []byte) int {
	return ((int(b[0])-0x81)*10+int(b[1])-'0')*1260 + (int(b[2])-0x81)*10 + int(b[3]) - '0'
}

// quadBytes is the sequence of four bytes of a number.
func quadBytes(n int) [4]byte {
	return [4]byte{byte(n/12600 + 0x81), byte(n/1260%10 + '0'), byte(n/10%126 + 0x81), byte(n%10 + '0')}
}

// each calls f for all sequences of an encoding that have a place and are not ASCII, in order.
func (f form) each(call func(code []byte)) {
	for first := high; first <= 0xFF; first++ {
		f.continued([]byte{byte(first)}, call)
	}
}

func (f form) continued(begin []byte, call func(code []byte)) {
	n := f.announced(begin)
	if len(begin) == n && (f != gb18030 || n > 1) {
		if f.valid(begin) && f.place(begin) >= 0 {
			call(begin)
		}
		return
	}
	for next := 1; next <= 0xFF; next++ {
		f.continued(append(begin[:len(begin):len(begin)], byte(next)), call)
	}
}
