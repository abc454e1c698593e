package pgsql

import (
	"fmt"
	"strings"
)

// A numeric is in one of two forms. A decimal is an engine DECIMAL with the scale that
// PostgreSQL shows: fast, for columns with a modifier and what is made of them as long as
// the digits surely fit. All else is exact text (expr.text), which functions of
// planner/pgfunc compute with. Text that stands for decimals of different scales keeps a
// decimal of equal value besides, to compare and add up.

// decimalForm is an engine DECIMAL: how many digits it has, and how many after the point.
type decimalForm struct {
	sql         string
	prec, scale int
}

func (d decimalForm) whole() int { return d.prec - d.scale }

// decimal gives the engine DECIMAL of equal value, where there is one.
func (e *expr) decimal() (decimalForm, bool) {
	switch {
	case isInt(e.typ.OID) && e.sql != "":
		return decimalForm{e.sql, intDigits[e.typ.OID], 0}, true
	case e.typ.OID != OIDNumeric:
		return decimalForm{}, false
	case !e.text:
		return decimalForm{e.sql, e.prec, max(e.scale, 0)}, true
	case e.alt != nil:
		return *e.alt, true
	}
	return decimalForm{}, false
}

// intDigits are the digits of the integer types.
var intDigits = map[uint32]int{OIDInt2: 5, OIDInt4: 10, OIDInt8: 19}

// decimals gives the DECIMALs of both, when the engine has one type for both.
func decimals(l, r *expr) (x, y decimalForm, ok bool) {
	x, lok := l.decimal()
	y, rok := r.decimal()
	return x, y, lok && rok && max(x.whole(), y.whole())+max(x.scale, y.scale) <= maxDigits
}

func (e *expr) setDecimal(sql string, prec, scale int) {
	e.sql, e.prec, e.scale = sql, min(prec, maxDigits), scale
	e.text, e.alt, e.dscale = false, nil, ""
}

func (e *expr) setText(sql string) {
	e.sql, e.text, e.prec, e.scale, e.alt, e.dscale = sql, true, 0, -1, nil, ""
}

// numericText renders a number as the text of a numeric.
func numericText(e expr) string {
	switch {
	case isInt(e.typ.OID):
		return "CAST(" + e.sql + " AS VARCHAR)"
	case e.text:
		return e.sql
	case e.prec <= e.scale: // the engine writes .5 of a decimal without whole digits
		return "skippr_decimal_text(" + e.sql + ")"
	}
	return "CAST(" + e.sql + " AS VARCHAR)"
}

// elementSQL renders a value as an element of an array.
func elementSQL(e expr) string {
	switch e.typ.OID {
	case OIDNumeric:
		return numericText(e)
	case OIDBpchar: // with its blanks
		return e.sql
	}
	return native(e)
}

// displayScale is how many digits after the point a numeric shows.
func displayScale(e expr) string {
	switch {
	case isInt(e.typ.OID):
		return "0"
	case !e.text:
		return fmt.Sprint(max(e.scale, 0))
	case e.dscale != "":
		return e.dscale
	}
	return "skippr_n_scale(" + e.sql + ")"
}

// numericKey renders what sorts and compares as the number does.
func numericKey(e expr) string {
	if d, ok := e.decimal(); ok {
		return d.sql
	}
	return textKey(e)
}

func textKey(e expr) string { return "skippr_n_key(" + numericText(e) + ")" }

// doubleOf renders the nearest double of a numeric.
func doubleOf(e expr) string {
	const exactDigits = 15
	switch {
	case e.text:
		return "skippr_n_float(" + e.sql + ")"
	case e.prec <= exactDigits:
		return "CAST(" + e.sql + " AS DOUBLE)"
	}
	return "CAST(" + numericText(e) + " AS DOUBLE)"
}

// fastDigits is the greatest precision that the engine computes with in 64 bits.
const fastDigits = 18

// textFunctions are the operators on text.
var textFunctions = map[string]string{
	"+": "skippr_n_add", "-": "skippr_n_sub", "*": "skippr_n_mul", "/": "skippr_n_div", "%": "skippr_n_mod", "^": "skippr_n_pow",
}

// numericOperator analyses arithmetic on numerics.
func (a *analyzer) numericOperator(op string, l, r, out expr) (expr, error) {
	l, err := a.coerce(l, plain(OIDNumeric), implicit)
	if err != nil {
		return out, err
	}
	if r, err = a.coerce(r, plain(OIDNumeric), implicit); err != nil {
		return out, err
	}
	if !l.text && !r.text {
		scale := max(l.scale, r.scale)
		prec := max(l.prec-l.scale, r.prec-r.scale) + scale
		if op == "*" {
			prec = l.prec + r.prec
		}
		left := l.sql
		if narrow := max(l.prec, r.prec); narrow <= fastDigits && prec >= fastDigits {
			// The engine would stay with its narrow decimals, and overflow.
			left = fmt.Sprintf("CAST(%s AS DECIMAL(%d,%d))", l.sql, fastDigits+1, l.scale)
		}
		sql := "(" + left + " " + op + " " + r.sql + ")"
		switch {
		case (op == "+" || op == "-") && prec+1 <= maxDigits:
			out.setDecimal(sql, prec+1, scale)
			return out, nil
		case op == "*" && l.prec+r.prec <= maxDigits:
			out.setDecimal(sql, l.prec+r.prec, l.scale+r.scale)
			return out, nil
		case op == "%" && prec <= maxDigits:
			out.setDecimal("("+l.sql+" % skippr_nonzero("+r.sql+"))", prec, scale)
			return out, nil
		}
	}
	out.setText(textFunctions[op] + "(" + numericText(l) + ", " + numericText(r) + ")")
	return out, nil
}

// toNumeric renders the cast of a number or a text to numeric.
func (a *analyzer) toNumeric(e expr, to Type) expr {
	out := expr{typ: plain(OIDNumeric)}
	switch {
	case isInt(e.typ.OID):
		n := intDigits[e.typ.OID]
		out.setDecimal(fmt.Sprintf("CAST(%s AS DECIMAL(%d,0))", e.sql, n), n, 0)
	case e.typ.OID == OIDFloat4:
		out.setText("skippr_n_float4(CAST(" + e.sql + " AS DOUBLE))")
	case e.typ.OID == OIDFloat8:
		out.setText("skippr_n_float8(" + e.sql + ")")
	default:
		out.setText("skippr_n_norm(" + e.sql + ")")
	}
	return a.constrain(out, to)
}

// constrain applies a modifier to a numeric.
func (a *analyzer) constrain(e expr, to Type) expr {
	p, s, ok := to.decimal()
	if !ok {
		return e
	}
	out := e
	out.typ, out.col = to, nil
	if eng := to.engineType(); eng != "" && !e.text {
		out.setDecimal("CAST("+e.sql+" AS "+eng+")", p, s)
		return out
	}
	out.setText(fmt.Sprintf("skippr_n_constrain(%s, %d, %d)", numericText(e), p, s))
	return out
}

// fromNumeric renders the cast of a numeric to another number type.
func fromNumeric(e expr, to Type) string {
	switch {
	case to.OID == OIDFloat4:
		return fmt.Sprintf("CAST(skippr_text_in(%s, %d) AS FLOAT)", numericText(e), OIDFloat4)
	case isFloat(to.OID):
		return doubleOf(e)
	case e.text && isInt(to.OID):
		bits := map[uint32]int{OIDInt2: 16, OIDInt4: 32, OIDInt8: 64}[to.OID]
		return fmt.Sprintf("CAST(skippr_n_int(%s, %d, '%s') AS %s)", e.sql, bits, to.Name(), to.engineType())
	}
	return "CAST(" + e.sql + " AS " + to.engineType() + ")"
}

// unifyNumeric makes numerics of one column alike: decimals of one scale stay so, others
// become text.
func unifyNumeric(list []*expr, out expr) expr {
	same, whole, scale := true, 0, 0
	exact := true // all have a DECIMAL
	first := list[0]
	for _, e := range list {
		if !e.null {
			first = e
			break
		}
	}
	for _, e := range list {
		d, ok := e.decimal()
		exact = exact && ok
		same = same && !e.text && (e.scale == first.scale || e.null)
		whole, scale = max(whole, d.whole()), max(scale, d.scale)
	}
	if same && whole+scale <= maxDigits {
		for _, e := range list {
			if e.null || e.prec != whole+scale {
				e.setDecimal(fmt.Sprintf("CAST(%s AS DECIMAL(%d,%d))", e.sql, whole+scale, scale), whole+scale, scale)
			}
		}
		out.setDecimal("", whole+scale, scale)
		return out
	}
	for _, e := range list {
		d, ok := e.decimal()
		shown := displayScale(*e)
		e.setText(numericText(*e))
		e.col, e.dscale = nil, shown
		if ok && whole+scale <= maxDigits {
			e.alt = &decimalForm{fmt.Sprintf("CAST(%s AS DECIMAL(%d,%d))", d.sql, whole+scale, scale), whole + scale, scale}
		}
	}
	out.setText("")
	if exact && whole+scale <= maxDigits {
		out.alt = &decimalForm{"", whole + scale, scale}
	}
	return out
}

// choiceOf gives a value that is one of several: print joins the choices.
func choiceOf(out expr, list []expr, print func(parts []string) string) expr {
	pick := func(f func(expr) string) string {
		parts := make([]string, len(list))
		for i, e := range list {
			parts[i] = f(e)
		}
		return print(parts)
	}
	out.sql = pick(func(e expr) string { return e.sql })
	if out.typ.OID != OIDNumeric || !out.text || out.alt == nil {
		return out
	}
	alt := *out.alt
	alt.sql = pick(func(e expr) string { return e.alt.sql })
	out.alt = &alt
	out.dscale = pick(func(e expr) string { return "CASE WHEN " + e.alt.sql + " IS NOT NULL THEN " + e.dscale + " END" })
	return out
}

// numericCall analyses the functions and aggregates that take numerics; ok is false for
// those that do not need it.
func (a *analyzer) numericCall(c *signature, args []expr, d decoration) (expr, bool, error) {
	out := expr{typ: plain(OIDNumeric), scale: -1}
	if len(args) == 0 || len(c.args) == 0 {
		return out, false, nil
	}
	e := args[0]
	var err error
	switch {
	case c.kind == 'a' && (c.args[0] == OIDNumeric || isInt(c.args[0])) && numericAggregates[c.name]:
		out, err = a.numericAggregate(c, e, d)
		return out, true, err
	case (c.name == "min" || c.name == "max") && c.kind == 'a' && (e.typ.OID == OIDInterval || ElemOf(e.typ.OID) == OIDNumeric || typeKey(e) != ""):
		d.before = ""
		out.typ = bare(e.typ)
		out.sql, err = a.expand("@arg_"+c.name+"($1, $2)", []string{native(e), sortKey(e)}, d)
		return out, true, err
	case (c.name == "min" || c.name == "max") && c.kind == 'a' && e.typ.OID == OIDNumeric:
		out, err = a.numericExtreme(c.name, e, d)
		return out, true, err
	case c.kind != 'f' || e.typ.OID != OIDNumeric || e.text:
		return out, false, nil
	}
	switch c.name {
	case "abs":
		out.setDecimal("abs("+e.sql+")", e.prec, e.scale)
	case "ceil", "ceiling", "floor", "sign":
		out.setDecimal(fmt.Sprintf("CAST(%s(%s) AS DECIMAL(%d,0))", c.name, e.sql, min(e.prec-e.scale+1, maxDigits)), e.prec-e.scale+1, 0)
	case "round", "trunc":
		return a.roundDecimal(c.name, args)
	default:
		return out, false, nil
	}
	return out, true, nil
}

// roundDecimal rounds a decimal to a constant number of digits.
func (a *analyzer) roundDecimal(name string, args []expr) (expr, bool, error) {
	out, e := expr{typ: plain(OIDNumeric), scale: -1}, args[0]
	digits := 0
	if len(args) > 1 {
		if args[1].num == nil || *args[1].num < 0 || *args[1].num > maxDigits {
			return out, false, nil
		}
		digits = int(*args[1].num)
	}
	whole := e.prec - e.scale
	switch {
	case whole+1+digits > maxDigits || name == "trunc" && digits > 0:
		return out, false, nil
	case digits < e.scale:
		out.setDecimal(fmt.Sprintf("CAST(%s(%s%s) AS DECIMAL(%d,%d))", name, e.sql, digitsArg(name, digits), whole+1+digits, digits),
			whole+1+digits, digits)
	default:
		out.setDecimal(fmt.Sprintf("CAST(%s AS DECIMAL(%d,%d))", e.sql, whole+digits, digits), whole+digits, digits)
	}
	return out, true, nil
}

func digitsArg(name string, digits int) string {
	if name == "trunc" {
		return ""
	}
	return fmt.Sprintf(", %d", digits)
}

var numericAggregates = map[string]bool{
	"sum": true, "avg": true, "stddev": true, "stddev_samp": true, "stddev_pop": true, "variance": true, "var_samp": true, "var_pop": true,
}

// numericAggregate analyses sum, avg and the deviations of numerics and integers.
func (a *analyzer) numericAggregate(c *signature, e expr, d decoration) (expr, error) {
	out := expr{typ: plain(c.result), scale: -1}
	if c.name == "sum" && isInt(e.typ.OID) {
		if e.typ.OID == OIDInt8 {
			return a.aggregated(out, "CAST(@sum($1) AS DECIMAL(38,0))", d, 0, e.sql)
		}
		sql, err := a.expand("CAST(@sum($1) AS BIGINT)", []string{e.sql}, d)
		out.sql = sql
		return out, err
	}
	if c.name == "sum" && !e.text {
		return a.aggregated(out, "CAST(@sum($1) AS DECIMAL(38,$2))", d, e.scale, e.sql, fmt.Sprint(e.scale))
	}
	sum, err := a.sumText(e, d)
	if err != nil {
		return out, err
	}
	count := "CAST(@count($1) AS VARCHAR)"
	switch c.name {
	case "sum":
		out.setText(sum)
		return out, nil
	case "avg":
		n, err := a.expand(count, []string{numericKey(e)}, d)
		out.setText("skippr_n_div(" + sum + ", " + n + ")")
		return out, err
	}
	if d.before != "" && e.text {
		return out, unsupported("%s(DISTINCT …) of a numeric without a precision is not supported", c.name)
	}
	square := expr{typ: plain(OIDNumeric)}
	if isInt(e.typ.OID) {
		square.setDecimal("(CAST("+e.sql+" AS DECIMAL(19,0)) * CAST("+e.sql+" AS DECIMAL(19,0)))", maxDigits, 0)
		if e.typ.OID == OIDInt8 { // their sum may have more digits than the engine's integers
			square.setText("CAST(" + square.sql + " AS VARCHAR)")
		}
	} else if square, err = a.numericOperator("*", e, e, square); err != nil {
		return out, err
	}
	const sure = 28 // their sum has no more digits than the engine's integers, if there are fewer than 10 billion
	if dec, ok := square.decimal(); ok && dec.prec > sure && !square.text {
		square.setText("CAST(" + square.sql + " AS VARCHAR)")
	}
	squares, err := a.sumText(square, d)
	if err != nil {
		return out, err
	}
	n, err := a.expand("@count($1)", []string{e.sql}, d)
	sample := !strings.HasSuffix(c.name, "_pop")
	root := strings.HasPrefix(c.name, "stddev")
	out.setText(fmt.Sprintf("skippr_n_deviation(%s, %s, %s, %v, %v)", n, sum, squares, sample, root))
	return out, err
}

// aggregated is an aggregate that is a decimal.
func (a *analyzer) aggregated(out expr, template string, d decoration, scale int, args ...string) (expr, error) {
	sql, err := a.expand(template, args, d)
	out.setDecimal(sql, maxDigits, scale)
	return out, err
}

// sumText is the exact sum of numbers as text.
func (a *analyzer) sumText(e expr, d decoration) (string, error) {
	if dec, ok := e.decimal(); ok {
		shown := fmt.Sprint(dec.scale)
		if e.text {
			shown = "@max($2)"
		}
		sum := "CAST(@sum($1) AS VARCHAR)"
		if dec.prec <= dec.scale || e.text {
			sum = "skippr_n_round(" + sum + ", CAST(" + shown + " AS INTEGER))"
		}
		return a.expand(sum, []string{dec.sql, displayScale(e)}, d)
	}
	if d.before != "" {
		return a.expand("skippr_n_list_sum(CAST(to_json(@list(skippr_n_trim($1))) AS VARCHAR), @max(skippr_n_scale($1)))", []string{e.sql}, d)
	}
	part := func(i int) string {
		return fmt.Sprintf("CAST(@sum(skippr_n_part($1, %d)) AS VARCHAR)", i)
	}
	return a.expand(fmt.Sprintf("skippr_n_total(%s, %s, %s, %s, @max(skippr_n_scale($1)), @bit_or(skippr_n_special($1)))",
		part(0), part(1), part(2), part(3)), []string{e.sql}, d)
}

// numericExtreme analyses min and max of numerics.
func (a *analyzer) numericExtreme(name string, e expr, d decoration) (expr, error) {
	out := expr{typ: plain(OIDNumeric), scale: -1}
	if !e.text {
		sql, err := a.expand("@"+name+"($1)", []string{e.sql}, d)
		out.setDecimal(sql, e.prec, e.scale)
		return out, err
	}
	d.before = "" // DISTINCT changes nothing
	sql, err := a.expand("@arg_"+name+"($1, $2)", []string{e.sql, numericKey(e)}, d)
	out.setText(sql)
	return out, err
}

// keyedChoice renders GREATEST and LEAST of values that keys order.
func keyedChoice(fn string, list []expr, key func(expr) string) string {
	keys := make([]string, len(list))
	for i, e := range list {
		keys[i] = key(e)
	}
	// The text of the first that has the key of the greatest.
	best := fn + "(" + strings.Join(keys, ", ") + ")"
	var b strings.Builder
	b.WriteString("CASE " + best)
	for i, e := range list {
		b.WriteString(" WHEN " + keys[i] + " THEN " + e.sql)
	}
	b.WriteString(" END")
	return b.String()
}
