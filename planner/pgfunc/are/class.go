package are

import "unicode"

// set is a set of characters.
type set struct {
	ranges  []rune // pairs: the first, the last
	classes []func(rune) bool
	not     bool
	newline bool // when not: it has no newline
}

func (s *set) add(lo, hi rune, fold bool) {
	s.ranges = append(s.ranges, lo, hi)
	if !fold {
		return
	}
	const most = 1 << 17 // the scripts that have cases
	for c := lo; c <= min(hi, most); c++ {
		if l := unicode.ToLower(c); l != c {
			s.ranges = append(s.ranges, l, l)
		}
		if u := unicode.ToUpper(c); u != c {
			s.ranges = append(s.ranges, u, u)
		}
	}
}

func (s *set) has(c rune) bool {
	if s.newline && c == '\n' {
		return false
	}
	for i := 0; i < len(s.ranges); i += 2 {
		if c >= s.ranges[i] && c <= s.ranges[i+1] {
			return !s.not
		}
	}
	for _, in := range s.classes {
		if in(c) {
			return !s.not
		}
	}
	return s.not
}

// isAlpha is as the C library has it in C.UTF-8: digits of other scripts are letters there, as
// are vowel signs.
func isAlpha(c rune) bool {
	return unicode.In(c, unicode.L, unicode.Nl, unicode.Other_Alphabetic) || c > unicode.MaxASCII && unicode.Is(unicode.Nd, c)
}

func isWord(c rune) bool { return c == '_' || isDigit(c) || isAlpha(c) }

func isDigit(c rune) bool { return c >= '0' && c <= '9' }

func isPrint(c rune) bool {
	return unicode.In(c, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs, unicode.Cf, unicode.Co)
}

func isGraph(c rune) bool { return isPrint(c) && !isSpace(c) }

func isUpper(c rune) bool { return unicode.In(c, unicode.Lu, unicode.Lt, unicode.Other_Uppercase) }

func isLower(c rune) bool {
	return unicode.In(c, unicode.Ll, unicode.Other_Lowercase) || unicode.Is(unicode.Lt, c) && unicode.ToUpper(c) != c
}

// isSpace has no blanks at which a line must not be broken.
func isSpace(c rune) bool {
	switch c {
	case 0x85, 0xa0, 0x2007, 0x202f:
		return false
	}
	return unicode.IsSpace(c)
}

func not(in func(rune) bool) func(rune) bool { return func(c rune) bool { return !in(c) } }

// escapes are \d, \s and \w.
var escapes = map[rune]func(rune) bool{'d': isDigit, 's': isSpace, 'w': isWord}

// named are the classes of [[:name:]].
var named = map[string]func(rune) bool{
	"alpha": isAlpha,
	"digit": isDigit,
	"alnum": func(c rune) bool { return isAlpha(c) || isDigit(c) },
	"upper": isUpper,
	"lower": isLower,
	"space": isSpace,
	"blank": func(c rune) bool { return c == ' ' || c == '\t' },
	"cntrl": func(c rune) bool { return unicode.Is(unicode.Cc, c) },
	"punct": func(c rune) bool { return isGraph(c) && !isAlpha(c) && !isDigit(c) },
	"print": isPrint,
	"graph": isGraph,
	"xdigit": func(c rune) bool {
		return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	},
	"word":  isWord,
	"ascii": func(c rune) bool { return c < 128 },
}

// collating are the names of characters of [[.name.]].
var collating = map[string]rune{
	"NUL": 0, "tab": '\t', "newline": '\n', "vertical-tab": '\v', "form-feed": '\f', "carriage-return": '\r', "alert": 7, "backspace": '\b', "ESC": 27, "space": ' ', "exclamation-mark": '!',
	"quotation-mark": '"', "number-sign": '#', "dollar-sign": '$', "percent-sign": '%', "ampersand": '&', "apostrophe": '\'',
	"left-parenthesis": '(', "right-parenthesis": ')', "asterisk": '*', "plus-sign": '+', "comma": ',', "hyphen": '-', "hyphen-minus": '-',
	"period": '.', "full-stop": '.', "slash": '/', "solidus": '/', "zero": '0', "one": '1', "two": '2', "three": '3', "four": '4',
	"five": '5', "six": '6', "seven": '7', "eight": '8', "nine": '9', "colon": ':', "semicolon": ';', "less-than-sign": '<',
	"equals-sign": '=', "greater-than-sign": '>', "question-mark": '?', "commercial-at": '@', "left-square-bracket": '[',
	"backslash": '\\', "reverse-solidus": '\\', "right-square-bracket": ']', "circumflex": '^', "circumflex-accent": '^',
	"underscore": '_', "low-line": '_', "grave-accent": '`', "left-brace": '{', "left-curly-bracket": '{', "vertical-line": '|',
	"right-brace": '}', "right-curly-bracket": '}', "tilde": '~', "DEL": 127,
}

// bracket reads a bracket expression, after its [.
func (l *lexer) bracket() (*set, error) {
	s := &set{}
	if l.at < len(l.in) && l.in[l.at] == '^' {
		l.at++
		s.not, s.newline = true, l.lines
	}
	for first := true; ; first = false {
		if l.at == len(l.in) {
			return nil, ErrBrackets
		}
		if l.in[l.at] == ']' && !first {
			l.at++
			return s, nil
		}
		if err := l.member(s, first); err != nil {
			return nil, err
		}
	}
}

// member reads a member of a bracket expression, or a range.
func (l *lexer) member(s *set, first bool) error {
	if l.in[l.at] == '-' && !first && !l.has("-]") {
		return ErrRange
	}
	lo, whole, err := l.element(s)
	if err != nil || whole {
		return err
	}
	hi := lo
	if l.at < len(l.in) && l.in[l.at] == '-' && !l.has("-]") {
		l.at++
		if l.at == len(l.in) {
			return ErrBrackets
		}
		if hi, whole, err = l.element(s); err != nil {
			return err
		}
		if whole {
			return ErrRange
		}
	}
	if lo > hi {
		return ErrRange
	}
	s.add(lo, hi, l.fold)
	return nil
}

// element reads a character; whole says that it was a class instead, which s has now.
func (l *lexer) element(s *set) (c rune, whole bool, err error) {
	switch c = l.in[l.at]; {
	case l.has("[."), l.has("[="):
		name, err := l.between(l.in[l.at+1])
		if err != nil {
			return 0, false, err
		}
		r, ok := collating[string(name)]
		if len(name) == 1 {
			r, ok = name[0], true
		}
		if !ok {
			return 0, false, ErrCollating
		}
		if c = r; l.in[l.at-2] == '=' { // no character is another's equivalent
			s.add(c, c, l.fold)
			return 0, true, nil
		}
		return c, false, nil
	case l.has("[:"):
		name, err := l.between(':')
		if err != nil {
			return 0, false, err
		}
		in, ok := named[string(name)]
		if !ok {
			return 0, false, ErrClass
		}
		if l.fold && (string(name) == "upper" || string(name) == "lower") {
			in = isAlpha
		}
		s.classes = append(s.classes, in)
		return 0, true, nil
	case c == '\\' && l.advanced:
		l.at++
		t, err := l.escape()
		switch {
		case err != nil:
			return 0, false, err
		case t.kind == tokPlain:
			return t.value, false, nil
		case t.kind != tokClass:
			return 0, false, ErrEscape
		}
		in := escapes[t.value]
		if t.not {
			in = not(in)
		}
		s.classes = append(s.classes, in)
		return 0, true, nil
	}
	l.at++
	return c, false, nil
}

// between reads the name between [x and x].
func (l *lexer) between(mark rune) ([]rune, error) {
	from := l.at + 2
	for i := from; i+1 < len(l.in); i++ {
		if l.in[i] == mark && l.in[i+1] == ']' {
			l.at = i + 2
			return l.in[from:i], nil
		}
	}
	return nil, ErrBrackets
}
