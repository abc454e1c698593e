// Package network holds PostgreSQL's functions and operators of inet and cidr, in Go. Values
// travel as the text that PostgreSQL writes. Pure; safe for concurrent use.
package network

import (
	"fmt"
	"math/big"
	"net/netip"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/encode/canon"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

type address = canon.Address

// Functions are the functions of the package.
func Functions() []scalar.Function {
	text := scalar.Text
	return []scalar.Function{
		ofOne("skippr_net_key", text, func(a address) (scalar.Value, error) { return scalar.OfText(Key(a)), nil }),
		ofOne("skippr_net_inet", text, inet),
		ofOne("skippr_net_host", text, func(a address) (scalar.Value, error) { return scalar.OfText(a.Host()), nil }),
		ofOne("skippr_net_network", text, func(a address) (scalar.Value, error) { return scalar.OfText(a.Network().Text(true)), nil }),
		ofOne("skippr_net_abbrev", text, func(a address) (scalar.Value, error) {
			s, err := abbreviated(a)
			return scalar.OfText(s), err
		}),
		ofOne("skippr_net_mask", text, func(a address) (scalar.Value, error) { return inet(mask(a, false)) }),
		ofOne("skippr_net_hostmask", text, func(a address) (scalar.Value, error) { return inet(mask(a, true)) }),
		ofOne("skippr_net_broadcast", text, func(a address) (scalar.Value, error) { return inet(broadcast(a)) }),
		ofOne("skippr_net_not", text, func(a address) (scalar.Value, error) {
			return inet(each(a, a, func(x, _ byte) byte { return ^x }))
		}),
		ofOne("skippr_net_masklen", scalar.Int32, func(a address) (scalar.Value, error) { return scalar.OfInt(int64(a.Bits)), nil }),
		ofOne("skippr_net_family", scalar.Int32, func(a address) (scalar.Value, error) {
			if a.Addr.Is4() {
				return scalar.OfInt(4), nil
			}
			return scalar.OfInt(6), nil
		}),
		setMask(), plus(), inside(),
		ofTwo("skippr_net_overlaps", scalar.Bool, func(a, b address) (scalar.Value, error) { return scalar.OfBool(overlaps(a, b)), nil }),
		ofTwo("skippr_net_same_family", scalar.Bool, func(a, b address) (scalar.Value, error) {
			return scalar.OfBool(a.Addr.Is4() == b.Addr.Is4()), nil
		}),
		ofTwo("skippr_net_and", text, func(a, b address) (scalar.Value, error) {
			return combined(a, b, "AND", func(x, y byte) byte { return x & y })
		}),
		ofTwo("skippr_net_or", text, func(a, b address) (scalar.Value, error) {
			return combined(a, b, "OR", func(x, y byte) byte { return x | y })
		}),
		ofTwo("skippr_net_minus", scalar.Int64, difference),
		ofTwo("skippr_net_merge", text, merged),
	}
}

func parse(text string) (address, error) {
	a, err := canon.ParseAddress(text, false)
	if err != nil {
		return a, pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type inet: \"%s\"", strings.Clone(text))
	}
	return a, nil
}

// parseTwo reads the first two arguments of a function.
func parseTwo(v []scalar.Value) (a, b address, err error) {
	if a, err = parse(v[0].Text); err == nil {
		b, err = parse(v[1].Text)
	}
	return a, b, err
}

func ofOne(name string, result scalar.Kind, f func(address) (scalar.Value, error)) scalar.Function {
	return scalar.Function{Name: name, Params: []scalar.Kind{scalar.Text}, Result: result, Call: func(v []scalar.Value) (scalar.Value, error) {
		a, err := parse(v[0].Text)
		if err != nil {
			return scalar.Value{}, err
		}
		return f(a)
	}}
}

func ofTwo(name string, result scalar.Kind, f func(a, b address) (scalar.Value, error)) scalar.Function {
	params := []scalar.Kind{scalar.Text, scalar.Text}
	return scalar.Function{Name: name, Params: params, Result: result, Call: func(v []scalar.Value) (scalar.Value, error) {
		a, b, err := parseTwo(v)
		if err != nil {
			return scalar.Value{}, err
		}
		return f(a, b)
	}}
}

func inet(a address) (scalar.Value, error) { return scalar.OfText(a.Text(false)), nil }

// Key is a text that orders by bytes as addresses do: by family, by network, by how many bits
// that has, and by the rest.
func Key(a address) string {
	var b strings.Builder
	b.WriteByte('4')
	if a.Addr.Is6() {
		b.Reset()
		b.WriteByte('6')
	}
	octets := a.Addr.AsSlice()
	for i := range a.Bits {
		b.WriteByte('0' + octets[i/8]>>(7-i%8)&1)
	}
	fmt.Fprintf(&b, " %x", octets)
	return b.String()
}

// each makes an address of the octets of two, of one family.
func each(a, b address, f func(x, y byte) byte) address {
	x, y := a.Addr.AsSlice(), b.Addr.AsSlice()
	for i := range x {
		x[i] = f(x[i], y[i])
	}
	addr, _ := netip.AddrFromSlice(x)
	return address{Addr: addr, Bits: max(a.Bits, b.Bits)}
}

func mask(a address, host bool) address {
	out := a.Addr.AsSlice()
	for i := range out {
		out[i] = 0
		for bit := range 8 {
			if (i*8+bit < a.Bits) != host {
				out[i] |= 128 >> bit
			}
		}
	}
	addr, _ := netip.AddrFromSlice(out)
	return address{Addr: addr, Bits: addr.BitLen()}
}

func broadcast(a address) address {
	out := each(a, mask(a, true), func(x, y byte) byte { return x | y })
	out.Bits = a.Bits
	return out
}

// abbreviated is a cidr in its short form: without the octets that are none of its network.
func abbreviated(a address) (string, error) {
	if !a.Addr.Is4() {
		return "", pgerr.New(codes.FeatureNotSupported, "abbrev of IPv6 networks is not supported")
	}
	octets := strings.Split(a.Addr.String(), ".")[:max((a.Bits+7)/8, 1)]
	if a.Bits == 0 {
		return "0/0", nil
	}
	return fmt.Sprintf("%s/%d", strings.Join(octets, "."), a.Bits), nil
}

func overlaps(a, b address) bool {
	if a.Addr.Is4() != b.Addr.Is4() {
		return false
	}
	bits := min(a.Bits, b.Bits)
	x, y := address{Addr: a.Addr, Bits: bits}, address{Addr: b.Addr, Bits: bits}
	return x.Network() == y.Network()
}

// inside is << and <<=, by its third argument.
func inside() scalar.Function {
	return scalar.Function{
		Name: "skippr_net_inside", Params: []scalar.Kind{scalar.Text, scalar.Text, scalar.Bool}, Result: scalar.Bool,
		Call: func(v []scalar.Value) (scalar.Value, error) {
			a, b, err := parseTwo(v)
			if err != nil {
				return scalar.Value{}, err
			}
			ok := overlaps(a, b) && (a.Bits > b.Bits || v[2].Int != 0 && a.Bits == b.Bits)
			return scalar.OfBool(ok), nil
		},
	}
}

func combined(a, b address, word string, f func(x, y byte) byte) (scalar.Value, error) {
	if a.Addr.Is4() != b.Addr.Is4() {
		return scalar.Value{}, pgerr.New(codes.InvalidParameterValue, "cannot %s inet values of different sizes", word)
	}
	return inet(each(a, b, f))
}

// setMask is set_masklen of an inet, or of a cidr, which loses its bits beyond.
func setMask() scalar.Function {
	return scalar.Function{
		Name: "skippr_net_set_masklen", Params: []scalar.Kind{scalar.Text, scalar.Int32, scalar.Bool}, Result: scalar.Text,
		Call: func(v []scalar.Value) (scalar.Value, error) {
			a, err := parse(v[0].Text)
			if err != nil {
				return scalar.Value{}, err
			}
			n := int(v[1].Int)
			if n == -1 {
				n = a.Addr.BitLen()
			}
			if n < 0 || n > a.Addr.BitLen() {
				return scalar.Value{}, pgerr.New(codes.InvalidParameterValue, "invalid mask length: %d", n)
			}
			a.Bits = n
			if v[2].Int != 0 {
				return scalar.OfText(a.Network().Text(true)), nil
			}
			return inet(a)
		},
	}
}

var errRange = pgerr.New(codes.NumericValueOutOfRange, "result is out of range")

// plus is + and - of a number.
func plus() scalar.Function {
	return scalar.Function{
		Name: "skippr_net_plus", Params: []scalar.Kind{scalar.Text, scalar.Int64, scalar.Bool}, Result: scalar.Text,
		Call: func(v []scalar.Value) (scalar.Value, error) {
			a, err := parse(v[0].Text)
			if err != nil {
				return scalar.Value{}, err
			}
			n := v[1].Int
			if v[2].Int != 0 {
				n = -n // the least number has no negative: it stays, as in PostgreSQL
			}
			by := big.NewInt(n)
			octets := a.Addr.AsSlice()
			sum := new(big.Int).Add(new(big.Int).SetBytes(octets), by)
			if sum.Sign() < 0 || sum.BitLen() > a.Addr.BitLen() {
				return scalar.Value{}, errRange
			}
			a.Addr, _ = netip.AddrFromSlice(sum.FillBytes(octets))
			return inet(a)
		},
	}
}

func difference(a, b address) (scalar.Value, error) {
	if a.Addr.Is4() != b.Addr.Is4() {
		return scalar.Value{}, pgerr.New(codes.InvalidParameterValue, "cannot subtract inet values of different sizes")
	}
	d := new(big.Int).SetBytes(a.Addr.AsSlice())
	d.Sub(d, new(big.Int).SetBytes(b.Addr.AsSlice()))
	if !d.IsInt64() {
		return scalar.Value{}, errRange
	}
	return scalar.OfInt(d.Int64()), nil
}

// merged is the smallest network that has both.
func merged(a, b address) (scalar.Value, error) {
	if a.Addr.Is4() != b.Addr.Is4() {
		return scalar.Value{}, pgerr.New(codes.InvalidParameterValue, "cannot merge addresses from different families")
	}
	bits := min(a.Bits, b.Bits)
	for ; bits > 0 && !overlaps(address{Addr: a.Addr, Bits: bits}, address{Addr: b.Addr, Bits: bits}); bits-- {
		continue
	}
	out := address{Addr: a.Addr, Bits: bits}
	return scalar.OfText(out.Network().Text(true)), nil
}
