package pgfunc

import (
	"math"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// numberKeys are the keywords of number templates, in upper and in lower case.
var numberKeys = strings.Fields("EEEE FM MI PL PR RN SG TH , . 0 9 B C D G L S V")

// numberPicture is a number template taken apart, in PostgreSQL's terms.
type numberPicture struct {
	nodes                 []node
	pre, post             int // digits before and after the point
	zeroStart, zeroEnd    int
	multi                 int
	sign                  signPlace
	preSign               int
	zero, fill, decimal   bool
	minus, plus, bracket  bool
	roman, exponent, mult bool
}

type signPlace uint8

const (
	signNone signPlace = iota
	signBefore
	signAfter
)

var pictureCache cache[*numberPicture]

func pictureOf(format string) (*numberPicture, error) {
	var failed error
	p, _ := pictureCache.get(format, func() (*numberPicture, bool) {
		p, err := parsePicture(strings.Clone(format))
		failed = err
		return p, err == nil
	})
	return p, failed
}

func badPicture(format string, args ...any) error {
	return pgerr.New(codes.Syntax, format, args...)
}

func parsePicture(f string) (*numberPicture, error) {
	p := &numberPicture{}
	for len(f) > 0 {
		key := ""
		for _, k := range numberKeys {
			if strings.HasPrefix(f, k) || strings.HasPrefix(f, strings.ToLower(k)) {
				key = k
				break
			}
		}
		if key == "" {
			f = literalNodes(f, &p.nodes)
			continue
		}
		n := node{key: key, text: f[:len(key)]}
		f = f[len(key):]
		if err := p.add(key); err != nil {
			return nil, err
		}
		p.nodes = append(p.nodes, n)
	}
	return p, nil
}

func (p *numberPicture) add(key string) error {
	if p.exponent && key != "EEEE" {
		return badPicture("\"EEEE\" must be the last pattern used")
	}
	switch key {
	case "9", "0":
		return p.digit(key == "0")
	case "D", ".":
		if p.decimal {
			return badPicture("multiple decimal points")
		}
		if p.mult {
			return badPicture("cannot use \"V\" and decimal point together")
		}
		p.decimal = true
	case "FM":
		p.fill = true
	case "S":
		switch {
		case p.sign != signNone:
			return badPicture("cannot use \"S\" twice")
		case p.plus || p.minus || p.bracket:
			return badPicture("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together")
		case !p.decimal:
			p.sign, p.preSign = signBefore, p.pre
		default:
			p.sign = signAfter
		}
	case "MI", "PL", "SG":
		if p.sign != signNone {
			return badPicture("cannot use \"S\" and \"%s\" together", key)
		}
		p.minus = p.minus || key != "PL"
		p.plus = p.plus || key != "MI"
	case "PR":
		if p.sign != signNone || p.plus || p.minus {
			return badPicture("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together")
		}
		p.bracket = true
	case "RN":
		p.roman = true
	case "V":
		if p.decimal {
			return badPicture("cannot use \"V\" and decimal point together")
		}
		p.mult = true
	case "EEEE":
		if p.exponent {
			return badPicture("cannot use \"EEEE\" twice")
		}
		if p.fill || p.sign != signNone || p.bracket || p.minus || p.plus || p.roman || p.mult {
			return badPicture("\"EEEE\" is incompatible with other formats").(*pgerr.Error).
				WithDetail("\"EEEE\" may only be used together with digit and decimal point patterns.")
		}
		p.exponent = true
	}
	return nil
}

func (p *numberPicture) digit(zero bool) error {
	if p.bracket {
		return badPicture("\"%s\" must be ahead of \"PR\"", map[bool]string{true: "0", false: "9"}[zero])
	}
	switch {
	case !zero && p.mult:
		p.multi++
	case zero && !p.zero && !p.decimal:
		p.zero, p.zeroStart = true, p.pre+1
		p.pre++
	case !p.decimal:
		p.pre++
	default:
		p.post++
	}
	if zero {
		p.zeroEnd = p.pre + p.post
	}
	return nil
}

// showNumber is to_char of a number: kind says whether of a numeric, an integer or a float.
func showNumber(text, kind, format string) (value, error) {
	if format == "" {
		return scalar.Null, nil
	}
	shared, err := pictureOf(format)
	if err != nil {
		return value{}, err
	}
	p := *shared
	n, err := numeric.Parse(text)
	if err != nil {
		return value{}, err
	}
	if !n.IsFinite() {
		return value{}, unsupported("to_char of %s is not supported", n.Text())
	}
	switch {
	case p.roman:
		return p.romanNumber(n)
	case p.exponent:
		return p.exponential(n, kind)
	}
	if p.mult {
		ten, err := numeric.Power(numeric.FromInt(10), numeric.FromInt(int64(p.multi)))
		if err != nil {
			return value{}, err
		}
		if n, err = numeric.Mul(n, ten); err != nil {
			return value{}, err
		}
		p.pre += p.multi
	}
	if kind == "i" && p.mult {
		if _, err := n.Int(32, "integer"); err != nil { // PostgreSQL's integers wrap there
			return value{}, unsupported("to_char of such an integer with \"V\" is not supported")
		}
	}
	shown := n.Round(p.post).Text()
	if kind == "f" {
		if shown, err = p.floatText(text); err != nil {
			return value{}, err
		}
	}
	w := &numberWriter{numberPicture: &p, sign: '+', number: strings.TrimPrefix(shown, "-")}
	if shown[0] == '-' {
		w.sign = '-'
	}
	whole := strings.IndexByte(w.number, '.')
	if whole < 0 {
		whole = len(w.number)
	}
	switch {
	case whole < p.pre:
		w.spaces = p.pre - whole
	case whole > p.pre:
		w.number = strings.Repeat("#", p.pre)
		w.number += "."
		w.number += strings.Repeat("#", p.post)
	}
	return scalar.OfText(w.write()), nil
}

const floatDigits = 15

// floatText is a float with as many digits after the point as the template has, but no more
// than 15 in all.
func (p *numberPicture) floatText(text string) (string, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type double precision: \"%s\"", text)
	}
	whole := len(strconv.FormatFloat(math.Abs(f), 'f', 0, 64))
	switch {
	case whole >= floatDigits:
		p.post = 0
	case whole+p.post > floatDigits:
		p.post = floatDigits - whole
	}
	return strconv.FormatFloat(f, 'f', p.post, 64), nil
}

var romanDigits = []struct {
	n int64
	s string
}{
	{1000, "M"},
	{900, "CM"},
	{500, "D"},
	{400, "CD"},
	{100, "C"},
	{90, "XC"},
	{50, "L"},
	{40, "XL"},
	{10, "X"},
	{9, "IX"},
	{5, "V"},
	{4, "IV"},
	{1, "I"},
}

func (p *numberPicture) romanNumber(n numeric.Num) (value, error) {
	v, err := n.Int(32, "integer")
	if err != nil {
		v = 0 // none that they can show
	}
	const width, most = 15, 3999
	roman := ""
	if v < 1 || v > most {
		roman = strings.Repeat("#", width)
	} else {
		for _, d := range romanDigits {
			for v >= d.n {
				roman += d.s
				v -= d.n
			}
		}
	}
	var b strings.Builder
	for _, n := range p.nodes {
		switch n.key {
		case "RN":
			s := roman
			if n.text == "rn" {
				s = strings.ToLower(s)
			}
			if !p.fill {
				s = strings.Repeat(" ", width-len(s)) + s
			}
			b.WriteString(s)
		case "FM":
		case "":
			b.WriteString(n.text)
		default:
			return value{}, unsupported("to_char of roman numerals and other patterns is not supported")
		}
	}
	return scalar.OfText(b.String()), nil
}

// exponential writes a number as 1.23e+04.
func (p *numberPicture) exponential(n numeric.Num, kind string) (value, error) {
	if kind == "f" {
		f, err := n.Float()
		if err != nil {
			return value{}, err
		}
		return scalar.OfText(signedNumber(strconv.FormatFloat(f, 'e', p.post, 64))), nil
	}
	digits := strings.TrimLeft(strings.Replace(n.Abs().Text(), ".", "", 1), "0")
	exponent := 0
	if digits != "" {
		whole, frac, _ := strings.Cut(n.Abs().Text(), ".")
		if whole = strings.TrimLeft(whole, "0"); whole != "" {
			exponent = len(whole) - 1
		} else {
			exponent = -1 - (len(frac) - len(strings.TrimLeft(frac, "0")))
		}
	}
	unit, err := numeric.Parse("1e" + strconv.Itoa(-exponent))
	if err != nil {
		return value{}, err
	}
	mant, err := numeric.Mul(n, unit)
	if err != nil {
		return value{}, err
	}
	mant = mant.Round(p.post)
	sign := "+"
	if exponent < 0 {
		sign = "-"
	}
	e := strconv.Itoa(int(math.Abs(float64(exponent))))
	if len(e) < 2 {
		e = "0" + e
	}
	return scalar.OfText(signedNumber(mant.Text() + "e" + sign + e)), nil
}

// signedNumber leaves room for a sign.
func signedNumber(s string) string {
	if s[0] == '-' {
		return s
	}
	return " " + s
}

// numberWriter is PostgreSQL's NUM_processor.
type numberWriter struct {
	*numberPicture
	out       strings.Builder
	number    string // digits without a sign
	at        int    // in number
	sign      byte
	signDone  bool
	spaces    int // before the number
	current   int // digit of the template
	count     int
	inNumber  bool
	relevant  int // of number: the last digit that FM keeps, -1 for all
	zeroBegin int
}

func (w *numberWriter) write() string {
	w.relevant, w.zeroBegin = -1, w.zeroStart
	if w.zeroBegin > 0 {
		w.zeroBegin--
	}
	switch {
	case w.plus || w.minus:
		w.signDone = !w.plus || w.minus
	default:
		if w.sign != '-' && w.bracket && w.fill {
			w.bracket = false
		}
		w.signDone = w.sign == '+' && w.fill && w.numberPicture.sign == signNone
		if w.numberPicture.sign == signBefore && w.pre == w.preSign {
			w.numberPicture.sign = signAfter
		}
	}
	w.count = w.post + w.pre - 1
	if w.fill && w.decimal {
		w.keepRelevant()
	}
	if !w.signDone && w.spaces == 0 {
		w.count++
	}
	for _, n := range w.nodes {
		w.node(n)
	}
	return w.out.String()
}

// keepRelevant finds the last digit that is shown: not a zero at the end, unless a 0 of
// the template asks for it.
func (w *numberWriter) keepRelevant() {
	point := strings.IndexByte(w.number, '.')
	if point < 0 {
		return
	}
	w.relevant = point
	for i := point + 1; i < len(w.number); i++ {
		if w.number[i] != '0' {
			w.relevant = i
		}
	}
	if w.zeroEnd > w.spaces {
		last := min(len(w.number)-1, w.zeroEnd-w.spaces)
		w.relevant = max(w.relevant, last)
	}
}

func (w *numberWriter) node(n node) {
	put := func(c byte) { w.out.WriteByte(c) }
	switch n.key {
	case "":
		w.out.WriteString(n.text)
	case "9", "0", ".", "D":
		w.digitOut(n.key)
	case ",", "G":
		switch {
		case w.inNumber:
			put(',')
		case !w.fill:
			put(' ')
		}
	case "L":
		put(' ')
	case "TH":
		if w.number[0] != '#' && w.sign != '-' && !w.decimal {
			w.out.WriteString(ordinalOf(w.number, n.text == "TH"))
		}
	case "MI":
		w.signOut(w.sign == '-', '-')
	case "PL":
		w.signOut(w.sign == '+', '+')
	case "SG":
		put(w.sign)
	}
}

func (w *numberWriter) signOut(show bool, c byte) {
	switch {
	case show:
		w.out.WriteByte(c)
	case !w.fill:
		w.out.WriteByte(' ')
	}
}

// predecSpace reports whether the zero before the point of a number below 1 is left out.
func (w *numberWriter) predecSpace() bool {
	return !w.zero && w.at == 0 && w.number != "" && w.number[0] == '0' && w.post != 0
}

func (w *numberWriter) relevantPoint() bool { return w.relevant >= 0 && w.number[w.relevant] == '.' }

// digitOut writes what stands for one digit or point of the template.
func (w *numberWriter) digitOut(key string) {
	w.inNumber = false
	if !w.signDone && (w.current >= w.spaces || w.zero && w.zeroBegin == w.current) && (!w.predecSpace() || w.relevantPoint()) {
		w.leadingSign()
	}
	switch {
	case w.current < w.spaces && (w.zeroBegin > w.current || !w.zero):
		if !w.fill {
			w.out.WriteByte(' ')
		}
	case w.zero && w.current < w.spaces && w.zeroBegin <= w.current:
		w.out.WriteByte('0')
		w.inNumber = true
	default:
		w.numberOut(key)
	}
	end := w.count
	if w.spaces > 0 {
		end++
	}
	if w.decimal {
		end++
	}
	if w.relevant >= 0 && w.relevant == w.at {
		end = w.current
	}
	if w.current+1 == end {
		w.trailingSign()
	}
	w.current++
}

func (w *numberWriter) numberOut(key string) {
	if w.at >= len(w.number) {
		return
	}
	c := w.number[w.at]
	switch {
	case c == '.':
		if w.relevant < 0 || !w.relevantPoint() || w.fill {
			w.out.WriteByte('.')
		}
	case w.relevant >= 0 && w.at > w.relevant && key != "0":
	case w.predecSpace():
		switch {
		case !w.fill:
			w.out.WriteByte(' ')
		case w.relevantPoint():
			w.out.WriteByte('0')
		}
	default:
		w.out.WriteByte(c)
		w.inNumber = true
	}
	w.at++
}

func (w *numberWriter) leadingSign() {
	switch {
	case w.numberPicture.sign != signNone:
		if w.numberPicture.sign == signBefore {
			w.out.WriteByte(w.sign)
			w.signDone = true
		}
	case w.bracket:
		c := byte('<')
		if w.sign == '+' {
			c = ' '
		}
		w.out.WriteByte(c)
		w.signDone = true
	case w.sign == '+':
		if !w.fill {
			w.out.WriteByte(' ')
		}
		w.signDone = true
	default:
		w.out.WriteByte('-')
		w.signDone = true
	}
}

func (w *numberWriter) trailingSign() {
	switch {
	case w.signDone && w.bracket:
		c := byte('>')
		if w.sign == '+' {
			c = ' '
		}
		w.out.WriteByte(c)
	case w.numberPicture.sign == signAfter:
		w.out.WriteByte(w.sign)
	}
}

// readNumber is to_number for templates of digits, commas, a point and a sign, and texts
// that are written as they say.
func readNumber(text, format string) (value, error) {
	p, err := pictureOf(format)
	if err != nil {
		return value{}, err
	}
	refused := func() (value, error) {
		return value{}, unsupported("to_number of \"%s\" by \"%s\" is not supported", strings.Clone(text), strings.Clone(format))
	}
	for _, n := range p.nodes {
		if !strings.Contains("9 0 , . D G S MI FM SG PL", n.key) || n.key == "" {
			return refused()
		}
	}
	s := strings.Trim(text, " ")
	sign := ""
	switch {
	case strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+"):
		sign, s = strings.TrimPrefix(s[:1], "+"), s[1:]
	case strings.HasSuffix(s, "-") || strings.HasSuffix(s, "+"):
		last := p.nodes[len(p.nodes)-1].key
		if last != "MI" && last != "S" {
			return refused()
		}
		sign, s = strings.TrimPrefix(s[len(s)-1:], "+"), s[:len(s)-1]
	}
	whole, frac, point := strings.Cut(s, ".")
	commas := strings.Contains(whole, ",")
	if commas && !strings.ContainsAny(format, ",Gg") {
		return refused()
	}
	whole = strings.ReplaceAll(whole, ",", "")
	if whole+frac == "" || strings.Trim(whole+frac, "0123456789") != "" || len(whole) > p.pre || len(frac) > p.post || point && !p.decimal {
		return refused()
	}
	if whole == "" {
		whole = "0"
	}
	n, err := numeric.Parse(sign + whole + "." + frac + "0")
	if err != nil {
		return value{}, err
	}
	return scalar.OfText(n.Round(len(frac)).Text()), nil
}
