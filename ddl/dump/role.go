package dump

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// untilLayout is how the end of a password's validity is written.
const untilLayout = "2006-01-02 15:04:05.999999Z07:00"

// roles are all that users made, without their passwords, and what was said of the one that is
// always there.
func (d *script) roles() {
	roles := slices.DeleteFunc(d.Rights.Roles(), func(r *right.Role) bool { return r.Builtin })
	for _, r := range roles {
		name, list := quote.NameIfNeeded(r.Name), attributes(r)
		switch {
		case r.OID != right.Bootstrap:
			d.add("role", of{name: r.Name}, "CREATE ROLE %s WITH %s;", name, list)
		case list != attributes(&right.Role{Superuser: true, CanLogin: true}) && list != attributes(first):
			d.add("role", of{name: r.Name}, "ALTER ROLE %s WITH %s;", name, list)
		}
	}
	if e := d.Rights.Entry(right.Object{Class: right.Database}); e != nil {
		d.settings("", "ALTER ROLE ALL", e.RoleSettings)
		d.settings("", "ALTER DATABASE "+quote.NameIfNeeded(d.Database), e.Settings)
	}
	for _, r := range roles {
		d.settings(r.Name, "ALTER ROLE "+quote.NameIfNeeded(r.Name), r.Settings)
		d.settings(r.Name, "ALTER ROLE "+quote.NameIfNeeded(r.Name)+" IN DATABASE "+quote.NameIfNeeded(d.Database), r.Local)
	}
	for _, r := range roles {
		for _, m := range slices.SortedFunc(slices.Values(r.MemberOf), func(a, b right.Membership) int {
			return strings.Compare(d.Rights.Name(a.Role), d.Rights.Name(b.Role))
		}) {
			admin := ""
			if m.Admin {
				admin = " WITH ADMIN OPTION"
			}
			d.add("membership", of{name: r.Name}, "GRANT %s TO %s%s;", d.role(m.Role), quote.NameIfNeeded(r.Name), admin)
		}
	}
}

// settings are values with which sessions begin.
func (d *script) settings(role, head string, values map[string]string) {
	for _, s := range slices.Sorted(maps.Keys(values)) {
		d.add("setting", of{name: role}, "%s SET %s TO %s;", head, settingName(s), settingValue(s, values[s]))
	}
}

// first is the bootstrap role as it is made.
var first = &right.Role{Superuser: true, CanLogin: true, CreateRole: true, CreateDB: true, Replication: true, BypassRLS: true}

// attributes are the options of CREATE ROLE, without the password.
func attributes(r *right.Role) string {
	var out []string
	for _, a := range []struct {
		word string
		is   bool
	}{
		{"SUPERUSER", r.Superuser},
		{"INHERIT", !r.NoInherit},
		{"CREATEROLE", r.CreateRole},
		{"CREATEDB", r.CreateDB},
		{"LOGIN", r.CanLogin},
		{"REPLICATION", r.Replication},
		{"BYPASSRLS", r.BypassRLS},
	} {
		if a.is {
			out = append(out, a.word)
		} else {
			out = append(out, "NO"+a.word)
		}
	}
	if r.Limited {
		out = append(out, fmt.Sprintf("CONNECTION LIMIT %d", r.ConnectionLimit))
	}
	if !r.ValidUntil.IsZero() {
		out = append(out, "VALID UNTIL "+quote.Literal(r.ValidUntil.UTC().Format(untilLayout)))
	}
	return strings.Join(out, " ")
}

// Passwords are the statements that give roles their passwords again, as verifiers. They are for
// superusers alone.
func Passwords(b *right.Book) []Statement {
	var out []Statement
	for _, r := range b.Roles() {
		if r.Verifier != "" {
			sql := fmt.Sprintf("ALTER ROLE %s PASSWORD %s;", quote.NameIfNeeded(r.Name), quote.Literal(r.Verifier))
			out = append(out, Statement{Kind: "password", Name: r.Name, SQL: sql})
		}
	}
	return out
}

// settingName is the name of a setting as SQL; one of an extension has a dot.
func settingName(name string) string {
	parts := strings.Split(name, ".")
	for i := range parts {
		parts[i] = quote.NameIfNeeded(parts[i])
	}
	return strings.Join(parts, ".")
}

// settingValue is a value as SET takes it. A list of names is one of texts, since a text with
// commas would be one name.
func settingValue(name, value string) string {
	if name != "search_path" {
		return quote.Literal(value)
	}
	var out []string
	for _, n := range splitNames(value) {
		out = append(out, quote.Literal(n))
	}
	if len(out) == 0 {
		return "''"
	}
	return strings.Join(out, ", ")
}

// splitNames reads a list of names, some in quotes.
func splitNames(list string) []string {
	var out []string
	for list = strings.TrimSpace(list); list != ""; list = strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(list, " "), ","), " ") {
		name := ""
		if list[0] != '"' {
			name, list, _ = strings.Cut(list, ",")
			out = append(out, strings.ToLower(strings.TrimSpace(name)))
			continue
		}
		for list = list[1:]; list != ""; {
			i := strings.IndexByte(list, '"')
			if i < 0 {
				name, list = name+list, ""
				break
			}
			name, list = name+list[:i], list[i+1:]
			if !strings.HasPrefix(list, `"`) {
				break
			}
			name, list = name+`"`, list[1:]
		}
		out = append(out, name)
	}
	return out
}
