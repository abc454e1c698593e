package hba

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Limits of a file.
const (
	fileBytesMax = 1 << 20
	lineBytesMax = 64 << 10
)

// LineError is what is wrong with a line of a file.
type LineError struct {
	File   string
	Line   int
	Reason string
}

// Error implements error.
func (e *LineError) Error() string {
	return fmt.Sprintf("line %d of %s: %s", e.Line, e.File, e.Reason)
}

// Entry is a line of a file of rules or of maps, or what is wrong with it.
type Entry struct {
	Line int
	// Rule is of a file of rules, Map, a certificate's name and a role of one of maps; nil
	// where Reason says what is wrong.
	Rule   *Rule
	Map    *[3]string
	Reason string
}

// Entries are all lines of the text of a file of rules that have anything, in order.
func Entries(text string) []Entry {
	return entries(text, func(e *Entry, fields []field) error {
		rule, err := parseRule(fields)
		e.Rule = &rule
		return err
	})
}

func entries(text string, f func(e *Entry, fields []field) error) []Entry {
	var out []Entry
	err := eachLine("", text, func(number int, _ string, fields []field) error {
		e := Entry{Line: number}
		err := f(&e, fields)
		if err == nil {
			out = append(out, e)
		}
		return err
	})
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			var e *LineError
			if errors.As(one, &e) {
				out = append(out, Entry{Line: e.Line, Reason: e.Reason})
			}
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Line, b.Line) })
	return out
}

// Parse reads rules from the text of the file of that name. The error joins a *LineError for
// every bad line; then there are no rules.
func Parse(file, text string, maps *Maps) (*Rules, error) {
	r := &Rules{Maps: maps}
	err := eachLine(file, text, func(number int, line string, fields []field) error {
		rule, err := parseRule(fields)
		if err != nil {
			return err
		}
		if rule.Map != "" && !maps.has(rule.Map) {
			return fmt.Errorf("there is no map \"%s\"", rule.Map)
		}
		rule.Line, rule.Text = number, line
		r.Rules = append(r.Rules, rule)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(r.Rules) == 0 {
		return nil, fmt.Errorf("%s has no rules: nobody could connect", file)
	}
	return r, nil
}

// field is a comma list.
type field []Name

// eachLine calls f with the fields of every line that has any; a backslash at its end continues
// it on the next.
func eachLine(file, text string, f func(number int, line string, fields []field) error) error {
	if len(text) > fileBytesMax {
		return fmt.Errorf("%s has %d bytes, more than %d", file, len(text), fileBytesMax)
	}
	var errs []error
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		number, line := i+1, strings.TrimSuffix(lines[i], "\r")
		for strings.HasSuffix(line, "\\") && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, "\\") + strings.TrimSuffix(lines[i], "\r")
		}
		if len(line) > lineBytesMax {
			errs = append(errs, &LineError{file, number, "it is too long"})
			continue
		}
		fields, err := split(line)
		if err == nil && len(fields) > 0 {
			err = f(number, strings.TrimSpace(line), fields)
		}
		if err != nil {
			errs = append(errs, &LineError{file, number, err.Error()})
		}
	}
	return errors.Join(errs...)
}

// split cuts a line into fields at blanks, and these into names at commas. A comma holds a field
// together also when blanks follow it.
func split(line string) ([]field, error) {
	var out []field
	for at := 0; at < len(line); {
		var now field
		for {
			for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
				at++
			}
			if at == len(line) || line[at] == '#' {
				break
			}
			n, next, err := word(line, at)
			if err != nil {
				return nil, err
			}
			now = append(now, n)
			at = next
			if at == len(line) || line[at] != ',' {
				break
			}
			at++
		}
		if len(now) > 0 {
			out = append(out, now)
		}
		if at < len(line) && line[at] == '#' {
			break
		}
	}
	return out, nil
}

// word reads one name, which quotes may hold together.
func word(line string, at int) (n Name, next int, err error) {
	var b strings.Builder
	quoted := false
	if line[at] == '@' {
		return n, at, errors.New("files of names (@file) are not supported")
	}
	if line[at] == ',' {
		return n, at, errors.New("a name is missing before a comma")
	}
	for at < len(line) {
		c := line[at]
		switch {
		case c == '"' && quoted && at+1 < len(line) && line[at+1] == '"':
			b.WriteByte(c)
			at++
		case c == '"':
			quoted, n.Quoted = !quoted, true
		case !quoted && (c == ' ' || c == '\t' || c == ',' || c == '#'):
			n.Text = b.String()
			return n, at, nil
		default:
			b.WriteByte(c)
		}
		at++
	}
	if quoted {
		return n, at, errors.New("a quoted name does not end")
	}
	n.Text = b.String()
	return n, at, nil
}

// otherMethods are PostgreSQL's that there are not here.
var otherMethods = []string{"md5", "gss", "sspi", "ident", "peer", "ldap", "radius", "pam", "bsd"}

func parseRule(fields []field) (r Rule, err error) {
	one := func(i int, what string) (string, error) {
		if i >= len(fields) {
			return "", fmt.Errorf("end-of-line before %s specification", what)
		}
		if len(fields[i]) != 1 {
			return "", fmt.Errorf("multiple values specified for %s", what)
		}
		return fields[i][0].Text, nil
	}
	kind, err := one(0, "connection type")
	if err != nil {
		return r, err
	}
	r.Connection = Connection(kind)
	switch r.Connection {
	case Local, Host, HostSSL, HostNoSSL:
	case "hostgssenc", "hostnogssenc":
		return r, fmt.Errorf("connection type \"%s\" is not supported: there is no GSSAPI encryption", kind)
	default:
		return r, fmt.Errorf("invalid connection type \"%s\"", kind)
	}
	if len(fields) < 2 {
		return r, errors.New("end-of-line before database specification")
	}
	if len(fields) < 3 {
		return r, errors.New("end-of-line before role specification")
	}
	r.Databases, r.Users = fields[1], fields[2]
	at := 3
	if r.Connection != Local {
		if at, err = r.address(fields, one); err != nil {
			return r, err
		}
	}
	method, err := one(at, "authentication method")
	if err != nil {
		return r, err
	}
	r.Method = Method(method)
	switch r.Method {
	case Trust, Reject, SCRAM, Password:
	case Cert:
		if r.Connection != HostSSL {
			return r, errors.New("cert authentication is only supported on hostssl connections")
		}
		r.ClientCert = "verify-full"
	default:
		if slices.Contains(otherMethods, method) {
			return r, fmt.Errorf("authentication method \"%s\" is not supported; there are trust, reject, scram-sha-256, password and cert", method)
		}
		return r, fmt.Errorf("invalid authentication method \"%s\"", method)
	}
	if r.Method == Password && r.Connection != HostSSL {
		return r, errors.New("method password sends it in clear text: it is supported on hostssl connections only; use scram-sha-256")
	}
	for _, f := range fields[at+1:] {
		if err := r.option(f); err != nil {
			return r, err
		}
	}
	return r, nil
}

// address reads the address, which may have its mask in a field of its own; it returns the
// place of the method.
func (r *Rule) address(fields []field, one func(int, string) (string, error)) (int, error) {
	text, err := one(3, "IP address")
	if err != nil {
		return 0, err
	}
	switch text {
	case "all", "samehost", "samenet":
		r.Keyword = text
		return 4, nil
	}
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return 0, fmt.Errorf("invalid IP address \"%s\"", text)
		}
		r.Prefix = unmapped(p)
		return 4, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return 0, fmt.Errorf("invalid IP address \"%s\": names of hosts are not supported", text)
	}
	mask, err := one(4, "netmask")
	if err != nil {
		return 0, fmt.Errorf("%w: specify an address range in CIDR notation, or provide a separate netmask", err)
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || m.Is4() != a.Is4() {
		return 0, fmt.Errorf("invalid IP mask \"%s\"", mask)
	}
	bits, ok := maskBits(m.AsSlice())
	if !ok {
		return 0, fmt.Errorf("invalid IP mask \"%s\"", mask)
	}
	r.Prefix = unmapped(netip.PrefixFrom(a, bits))
	return 5, nil
}

// unmapped is a prefix of IPv4 addresses in IPv6 form as one of IPv4.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// maskBits counts the leading ones of a mask, which must be all of it.
func maskBits(mask []byte) (n int, ok bool) {
	ended := false
	for _, b := range mask {
		for i := 7; i >= 0; i-- {
			one := b>>i&1 == 1
			if one && ended {
				return 0, false
			}
			ended = ended || !one
			if one {
				n++
			}
		}
	}
	return n, true
}

func (r *Rule) option(f field) error {
	if len(f) != 1 {
		return errors.New("an option has several values")
	}
	name, value, ok := strings.Cut(f[0].Text, "=")
	if !ok {
		return fmt.Errorf("authentication option not in name=value format: %s", f[0].Text)
	}
	switch name {
	case "map":
		if r.Method != Cert {
			return errors.New("option map is only valid with method cert")
		}
		r.Map = value
	case "clientcert":
		switch {
		case r.Connection != HostSSL:
			return errors.New("clientcert can only be configured for \"hostssl\" rows")
		case value != "verify-ca" && value != "verify-full":
			return fmt.Errorf("invalid value for clientcert: \"%s\"", value)
		case r.Method == Cert && value == "verify-ca":
			return errors.New("clientcert only accepts \"verify-full\" when using \"cert\" authentication")
		}
		r.ClientCert = value
	case "clientname":
		if value != "CN" {
			return errors.New("option clientname is supported with CN only")
		}
	default:
		return fmt.Errorf("unrecognized authentication option name: \"%s\"", name)
	}
	return nil
}
