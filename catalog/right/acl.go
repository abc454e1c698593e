package right

import (
	"slices"
	"strings"
)

// Set is a set of privileges.
type Set uint16

// The privileges, in the order in which PostgreSQL writes them.
const (
	Insert Set = 1 << iota
	Select
	Update
	Delete
	Truncate
	References
	Trigger
	Execute
	Usage
	Create
	Temporary
	Connect
)

const letters = "arwdDxtXUCTc"

var words = []string{
	"INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "EXECUTE", "USAGE", "CREATE", "TEMPORARY", "CONNECT",
}

// SetOf finds a privilege by its word in upper case; TEMP is TEMPORARY.
func SetOf(word string) (Set, bool) {
	if word == "TEMP" {
		word = "TEMPORARY"
	}
	i := slices.Index(words, word)
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}

// Words are the privileges' names.
func (s Set) Words() []string {
	var out []string
	for i, w := range words {
		if s&(1<<i) != 0 {
			out = append(out, w)
		}
	}
	return out
}

// Each calls f with every privilege of the set alone.
func (s Set) Each(f func(Set)) {
	for i := range words {
		if one := Set(1) << i; s&one != 0 {
			f(one)
		}
	}
}

// Item is what one role has been granted by another.
type Item struct {
	Grantee, Grantor uint32
	Privileges       Set
	// Options are those of Privileges that the grantee may grant on.
	Options Set `json:",omitempty"`
}

// ACL is an access list.
type ACL []Item

// Text renders an item as PostgreSQL's aclitem, with names of roles.
func (i Item) Text(name func(uint32) string) string {
	var b strings.Builder
	if i.Grantee != Public {
		b.WriteString(quoted(name(i.Grantee)))
	}
	b.WriteByte('=')
	for n := range letters {
		if one := Set(1) << n; i.Privileges&one != 0 {
			b.WriteByte(letters[n])
			if i.Options&one != 0 {
				b.WriteByte('*')
			}
		}
	}
	return b.String() + "/" + quoted(name(i.Grantor))
}

// quoted puts a name that is not plain between quotes, as aclitems have it.
func quoted(name string) string {
	plain := name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if plain {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// at is the place of what grantor gave grantee, -1 for nothing.
func (l ACL) at(grantee, grantor uint32) int {
	return slices.IndexFunc(l, func(i Item) bool { return i.Grantee == grantee && i.Grantor == grantor })
}

// Grant is the list with more in it.
func (l ACL) Grant(grantee, grantor uint32, privileges, options Set) ACL {
	l = slices.Clone(l)
	n := l.at(grantee, grantor)
	if n < 0 {
		l, n = append(l, Item{Grantee: grantee, Grantor: grantor}), len(l)
	}
	l[n].Privileges |= privileges
	l[n].Options |= options
	return l
}

// optionsOf are the privileges that a role itself may grant on; the owner may all.
func (l ACL) optionsOf(role, owner uint32) Set {
	if role == owner {
		return ^Set(0)
	}
	var out Set
	for _, i := range l {
		if i.Grantee == role {
			out |= i.Options
		}
	}
	return out
}

// Revoke is the list with less in it: of what grantor gave grantee, the options alone if
// onlyOptions, else the privileges too. What the grantee has given on by options that it loses
// goes too; ok is false when there is such and cascade does not allow it.
func (l ACL) Revoke(grantee, grantor, owner uint32, privileges Set, onlyOptions, cascade bool) (out ACL, ok bool) {
	n := l.at(grantee, grantor)
	if n < 0 {
		return l, true
	}
	out = slices.Clone(l)
	before := out.optionsOf(grantee, owner)
	out[n].Options &^= privileges
	if !onlyOptions {
		out[n].Privileges &^= privileges
	}
	if out[n].Privileges == 0 {
		out = slices.Delete(out, n, n+1)
	}
	lost := before &^ out.optionsOf(grantee, owner)
	for lost != 0 {
		n := slices.IndexFunc(out, func(i Item) bool { return i.Grantor == grantee && i.Grantee != grantee && i.Privileges&lost != 0 })
		if n < 0 {
			break
		}
		if !cascade {
			return l, false
		}
		if out, ok = out.Revoke(out[n].Grantee, grantee, owner, lost, false, true); !ok {
			return l, false
		}
	}
	return out, true
}

// change gives the list another owner: what the old one gave and had is the new one's.
func (l ACL) change(from, to uint32) ACL {
	var out ACL
	for _, i := range l {
		if i.Grantee == from {
			i.Grantee = to
		}
		if i.Grantor == from {
			i.Grantor = to
		}
		out = out.Grant(i.Grantee, i.Grantor, i.Privileges, i.Options)
	}
	return out
}

// Names says whether the list names a role.
func (l ACL) Names(role uint32) bool {
	return slices.ContainsFunc(l, func(i Item) bool { return i.Grantee == role || i.Grantor == role })
}
