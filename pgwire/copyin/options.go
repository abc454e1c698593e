package copyin

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/encname"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Format is a format of COPY's data.
type Format byte

// The formats.
const (
	Text Format = iota
	CSV
	Binary
)

// Header says what a first line of names means.
type Header byte

// Without a header the first line is a row; HeaderSkip reads over it; HeaderMatch
// requires the names of the columns, in order.
const (
	HeaderNone Header = iota
	HeaderSkip
	HeaderMatch
)

// Options are those of COPY. The zero value is the text format with its defaults.
type Options struct {
	Format Format
	Header Header
	// Delimiter, Quote and Escape are 0 for the format's own: tab, or a comma and
	// double quotes.
	Delimiter, Quote, Escape byte
	// Null is what stands for NULL; nil for the format's own: \N, or nothing.
	Null *string
	// Default is what stands for a column's default; nil: there is no such marker.
	Default *string
	// ForceNotNull and ForceNull name columns, or all: do not match a field against
	// Null; match even if it was quoted.
	ForceNotNull, ForceNull       []string
	ForceNotNullAll, ForceNullAll bool
	// ForceQuote names columns of COPY TO, or all, that are quoted in every row.
	ForceQuote    []string
	ForceQuoteAll bool
	// OnErrorIgnore passes over rows with a value that is not of its column's type, Verbose says
	// of each which.
	OnErrorIgnore, Verbose bool
	// Freeze asks for rows that are seen at once, which a table that is new has anyway.
	Freeze bool
	// Encoding is that of the data, by PostgreSQL's own name, "" for the client's. A decoder is
	// given UTF-8 all the same.
	Encoding string
}

// Option is one element of COPY's option list as it was parsed. Exactly one of its
// three kinds of value is set, or none for an option that stands alone.
type Option struct {
	Name  string
	Value string // text, number or Boolean, as text
	List  []string
	Star  bool
	Alone bool // has no value
	// Position is where it stands in the statement, 0 where that is not known.
	Position int32
}

// Parse makes the options of COPY FROM from a list, with PostgreSQL's errors.
func Parse(list []Option) (Options, error) { return parse(list, false) }

// ParseTo makes the options of COPY TO.
func ParseTo(list []Option) (Options, error) { return parse(list, true) }

// valued are the options that do not stand alone.
var valued = []string{"format", "delimiter", "null", "default", "quote", "escape", "encoding"}

func parse(list []Option, to bool) (Options, error) {
	o := Options{}
	seen := map[string]bool{}
	var texts [3]*string // delimiter, quote, escape
	for _, x := range list {
		if seen[x.Name] && (x.Name != "format" || !x.Alone) { // whose value PostgreSQL looks at first
			return o, pgerr.New(codes.Syntax, "conflicting or redundant options").WithPosition(x.Position)
		}
		seen[x.Name] = true
		if x.Alone && slices.Contains(valued, x.Name) {
			return o, pgerr.New(codes.Syntax, "%s requires a parameter", x.Name)
		}
		var err error
		v := x.Value
		switch x.Name {
		case "format":
			o.Format, err = format(v, x.Position)
		case "header":
			o.Header, err = header(x, to)
		case "delimiter":
			texts[0] = &v
		case "quote":
			texts[1] = &v
		case "escape":
			texts[2] = &v
		case "null":
			o.Null = &v
		case "default":
			o.Default = &v
		case "force_not_null":
			o.ForceNotNull, o.ForceNotNullAll, err = names(x)
		case "force_null":
			o.ForceNull, o.ForceNullAll, err = names(x)
		case "force_quote":
			o.ForceQuote, o.ForceQuoteAll, err = names(x)
		case "freeze": // a promise about the table, which decoding does not need
			freeze, ok := boolean(x)
			if o.Freeze = freeze; !ok {
				err = pgerr.New(codes.Syntax, "%s requires a Boolean value", x.Name)
			}
		case "encoding":
			o.Encoding, err = encoding(v, x.Position)
		case "on_error": // of PostgreSQL 17
			o.OnErrorIgnore, err = onError(v, to)
		case "log_verbosity": // of PostgreSQL 17
			o.Verbose, err = verbosity(v)
		default:
			err = pgerr.New(codes.Syntax, "option \"%s\" not recognized", x.Name).WithPosition(x.Position)
		}
		if err != nil {
			return o, err
		}
	}
	return o, o.check(seen, texts, to)
}

func format(v string, position int32) (Format, error) {
	switch v {
	case "text":
		return Text, nil
	case "csv":
		return CSV, nil
	case "binary":
		return Binary, nil
	}
	return 0, pgerr.New(codes.InvalidParameterValue, "COPY format \"%s\" not recognized", v).WithPosition(position)
}

func header(x Option, to bool) (Header, error) {
	if strings.EqualFold(x.Value, "match") {
		if to {
			return 0, pgerr.New(codes.FeatureNotSupported, "cannot use \"%s\" with HEADER in COPY TO", x.Value)
		}
		return HeaderMatch, nil
	}
	on, ok := boolean(x)
	switch {
	case !ok:
		return 0, pgerr.New(codes.Syntax, "%s requires a Boolean value or \"match\"", x.Name)
	case on:
		return HeaderSkip, nil
	}
	return HeaderNone, nil
}

func boolean(x Option) (value, ok bool) {
	if x.Alone {
		return true, true
	}
	switch strings.ToLower(x.Value) {
	case "true", "on", "1":
		return true, true
	case "false", "off", "0":
		return false, true
	}
	return false, false
}

func names(x Option) ([]string, bool, error) {
	if x.Star {
		return nil, true, nil
	}
	if x.List == nil {
		return nil, false, pgerr.New(codes.InvalidParameterValue, "argument to option \"%s\" must be a list of column names", x.Name).
			WithPosition(x.Position)
	}
	return x.List, false, nil
}

func verbosity(v string) (verbose bool, err error) {
	switch v {
	case "default":
		return false, nil
	case "verbose":
		return true, nil
	}
	return false, pgerr.New(codes.InvalidParameterValue, "COPY LOG_VERBOSITY \"%s\" not recognized", v)
}

func encoding(v string, position int32) (string, error) {
	switch name, ok := encname.Own(v); {
	case !ok:
		return "", pgerr.New(codes.InvalidParameterValue, "argument to option \"encoding\" must be a valid encoding name").WithPosition(position)
	default:
		return name, nil
	}
}

// check applies the rules between options, in PostgreSQL's order.
func (o *Options) check(seen map[string]bool, texts [3]*string, to bool) error {
	if o.Format == Binary {
		for _, name := range []string{"delimiter", "null", "default"} {
			if seen[name] {
				return pgerr.New(codes.Syntax, "cannot specify %s in BINARY mode", strings.ToUpper(name))
			}
		}
	}
	var err error
	if o.Delimiter, err = o.single("delimiter", texts[0], false); err != nil {
		return err
	}
	if err := o.checkMarks(); err != nil {
		return err
	}
	if o.Format == Binary && o.Header != HeaderNone {
		return pgerr.New(codes.FeatureNotSupported, "cannot specify HEADER in BINARY mode")
	}
	if o.Quote, err = o.single("quote", texts[1], true); err != nil {
		return err
	}
	d := o.WithDefaults()
	if o.Format == CSV && d.Delimiter == d.Quote {
		return pgerr.New(codes.InvalidParameterValue, "COPY delimiter and quote must be different")
	}
	if o.Escape, err = o.single("escape", texts[2], true); err != nil {
		return err
	}
	for _, name := range []string{"force_quote", "force_not_null", "force_null"} {
		words := strings.ReplaceAll(name, "_", " ")
		if seen[name] && o.Format != CSV {
			return pgerr.New(codes.FeatureNotSupported, "COPY %s available only in CSV mode", words)
		}
		if seen[name] && (name == "force_quote") != to {
			direction := "COPY FROM"
			if name == "force_quote" {
				direction = "COPY TO"
			}
			return pgerr.New(codes.FeatureNotSupported, "COPY %s only available using %s", words, direction)
		}
	}
	if to && seen["default"] {
		return pgerr.New(codes.FeatureNotSupported, "COPY DEFAULT only available using COPY FROM")
	}
	return d.checkOverlap()
}

// single is the one byte of an option, 0 where it was not given.
func (o *Options) single(name string, v *string, csvOnly bool) (byte, error) {
	switch {
	case v == nil:
		return 0, nil
	case csvOnly && o.Format != CSV:
		return 0, pgerr.New(codes.FeatureNotSupported, "COPY %s available only in CSV mode", name)
	case len(*v) != 1:
		return 0, pgerr.New(codes.FeatureNotSupported, "COPY %s must be a single one-byte character", name)
	}
	return (*v)[0], nil
}

// checkMarks bounds what DELIMITER, NULL and DEFAULT may be.
func (o *Options) checkMarks() error {
	const lineEnd = "\r\n"
	switch {
	case o.Delimiter == '\r' || o.Delimiter == '\n':
		return pgerr.New(codes.InvalidParameterValue, "COPY delimiter cannot be newline or carriage return")
	case o.Null != nil && strings.ContainsAny(*o.Null, lineEnd):
		return pgerr.New(codes.InvalidParameterValue, "COPY null representation cannot use newline or carriage return")
	case o.Default != nil && strings.ContainsAny(*o.Default, lineEnd):
		return pgerr.New(codes.InvalidParameterValue, "COPY default representation cannot use newline or carriage return")
	case o.Format != CSV && o.Delimiter != 0 && strings.IndexByte("\\.abcdefghijklmnopqrstuvwxyz0123456789", o.Delimiter) >= 0:
		return pgerr.New(codes.InvalidParameterValue, "COPY delimiter cannot be \"%c\"", o.Delimiter)
	}
	return nil
}

// checkOverlap keeps markers, quotes and delimiters apart. Defaults are filled in.
func (o *Options) checkOverlap() error {
	if o.Format == Binary {
		return nil
	}
	for _, m := range []struct {
		name string
		v    *string
	}{{"NULL", o.Null}, {"DEFAULT", o.Default}} {
		if m.v == nil {
			continue
		}
		if strings.IndexByte(*m.v, o.Delimiter) >= 0 {
			return pgerr.New(codes.FeatureNotSupported, "COPY delimiter must not appear in the %s specification", m.name)
		}
		if o.Format == CSV && strings.IndexByte(*m.v, o.Quote) >= 0 {
			return pgerr.New(codes.FeatureNotSupported, "CSV quote character must not appear in the %s specification", m.name)
		}
	}
	if o.Default != nil && *o.Default == *o.Null {
		return pgerr.New(codes.FeatureNotSupported, "NULL specification and DEFAULT specification cannot be the same")
	}
	return nil
}

// WithDefaults returns a copy with what the format leaves open filled in.
func (o Options) WithDefaults() Options {
	null, delimiter := `\N`, byte('\t')
	if o.Format == CSV {
		null, delimiter = "", ','
		if o.Quote == 0 {
			o.Quote = '"'
		}
		if o.Escape == 0 {
			o.Escape = o.Quote
		}
	}
	if o.Delimiter == 0 {
		o.Delimiter = delimiter
	}
	if o.Null == nil {
		o.Null = &null
	}
	return o
}

// flags resolves FORCE_NOT_NULL and FORCE_NULL against the columns of the copy.
func (o *Options) flags(columns []Column) (notNull, null []bool, err error) {
	resolve := func(option string, all bool, list []string) ([]bool, error) {
		out := make([]bool, len(columns))
		for i := range out {
			out[i] = all
		}
		for _, name := range list {
			i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })
			if i < 0 {
				return nil, pgerr.New(codes.InvalidColumnReference, "%s column \"%s\" not referenced by COPY", option, name)
			}
			out[i] = true
		}
		return out, nil
	}
	if notNull, err = resolve("FORCE_NOT_NULL", o.ForceNotNullAll, o.ForceNotNull); err != nil {
		return nil, nil, err
	}
	null, err = resolve("FORCE_NULL", o.ForceNullAll, o.ForceNull)
	return notNull, null, err
}

// onError is the option ON_ERROR.
func onError(v string, to bool) (ignore bool, err error) {
	switch {
	case to:
		return false, pgerr.New(codes.InvalidParameterValue, "COPY ON_ERROR cannot be used with COPY TO")
	case strings.EqualFold(v, "stop"):
		return false, nil
	case strings.EqualFold(v, "ignore"):
		return true, nil
	}
	return false, pgerr.New(codes.InvalidParameterValue, "COPY ON_ERROR \"%s\" not recognized", v)
}
