package canon

import (
	"net/netip"
	"strconv"
	"strings"
)

// Address is an inet or a cidr: an address and how many of its bits are the network's.
type Address struct {
	Addr netip.Addr
	Bits int
}

// Network is an inet, or a cidr, in which no bits are to the right of the mask.
func Network(text string, cidr bool) (string, error) {
	a, err := ParseAddress(text, cidr)
	if err != nil {
		return "", err
	}
	return a.Text(cidr), nil
}

// ParseAddress reads an inet or a cidr as PostgreSQL does.
func ParseAddress(text string, cidr bool) (Address, error) {
	host, bits, masked := strings.Cut(text, "/")
	a, given := Address{}, 4
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return a, ErrSyntax
		}
		a.Addr = addr
	} else {
		var octets []byte
		for part := range strings.SplitSeq(host, ".") {
			n, err := decimal(part, 255)
			if err != nil || len(octets) == 4 {
				if cidr && strings.HasPrefix(host, "0x") {
					return a, ErrUnsupported
				}
				return a, ErrSyntax
			}
			octets = append(octets, byte(n))
		}
		given = len(octets)
		a.Addr = netip.AddrFrom4([4]byte(append(octets, 0, 0, 0, 0)[:4]))
	}
	a.Bits = a.Addr.BitLen()
	switch {
	case masked:
		n, err := decimal(bits, a.Addr.BitLen())
		if err != nil {
			return a, ErrSyntax
		}
		a.Bits = n
	case cidr && a.Addr.Is4():
		a.Bits = classBits(a.Addr.As4(), given)
	}
	if !cidr && given < 4 && (!masked || (a.Bits+7)/8 > given) {
		return a, ErrSyntax
	}
	if cidr && a.Network().Addr != a.Addr {
		return a, ErrSyntax
	}
	return a, nil
}

// classBits is the mask of an IPv4 network that is written without one: that of its class, or
// of the octets that are written.
func classBits(octets [4]byte, given int) int {
	bits := 8
	switch first := octets[0]; {
	case first >= 240:
		bits = 32
	case first >= 224:
		bits = 8
	case first >= 192:
		bits = 24
	case first >= 128:
		bits = 16
	}
	bits = max(bits, 8*given)
	if bits == 8 && octets[0] == 224 {
		bits = 4
	}
	return bits
}

// decimal reads digits, also zeros before others.
func decimal(s string, most int) (int, error) {
	if s == "" || len(s) > 100 || strings.Trim(s, "0123456789") != "" {
		return 0, ErrSyntax
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > most {
		return 0, ErrSyntax
	}
	return n, nil
}

// Network is the address without the bits to the right of its mask.
func (a Address) Network() Address {
	p, err := a.Addr.Prefix(a.Bits)
	if err != nil {
		return a
	}
	return Address{p.Addr(), a.Bits}
}

// Host is the address as text.
func (a Address) Host() string {
	if a.Addr.Is6() && !a.Addr.Is4In6() {
		b := a.Addr.As16()
		for _, x := range b[:12] {
			if x != 0 {
				return a.Addr.String()
			}
		}
		if b[12]|b[13] != 0 { // ::1.2.3.4
			return "::" + netip.AddrFrom4([4]byte(b[12:])).String()
		}
	}
	return a.Addr.String()
}

// Text is the value as PostgreSQL writes it; all means with its mask, even if that is of all
// bits.
func (a Address) Text(all bool) string {
	if a.Bits == a.Addr.BitLen() && !all {
		return a.Host()
	}
	return a.Host() + "/" + strconv.Itoa(a.Bits)
}
