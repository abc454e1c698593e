package setting

import (
	"maps"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Shown is a setting with its value in a session.
type Shown struct {
	*Setting
	Value string
	// Source is where the value comes from, as pg_settings.source says.
	Source string
	// Reset is the value RESET goes back to.
	Reset string
}

// Values are a session's settings. Not safe for concurrent use.
type Values struct {
	base    map[string]string // what RESET goes back to where that is not the default, by lower-case name
	source  map[string]string // of base
	session map[string]string
	local   map[string]string // until the transaction ends
	saved   map[string]string // session at the start of the transaction, nil outside
	marks   []mark
	told    map[string]string // what the client was told
	version uint64
}

type mark struct{ session, local map[string]string }

// NewValues starts a session whose base values are the defaults with the given
// overrides (values of the server and of the client's start-up packet). An unknown
// name or bad value is a *pgerr.Error.
func NewValues(server, client map[string]string) (*Values, error) {
	v := &Values{
		base: map[string]string{}, source: map[string]string{}, session: map[string]string{}, local: map[string]string{},
		told: map[string]string{},
	}
	for name, value := range server {
		key := strings.ToLower(name)
		v.base[key], v.source[key] = value, "configuration file"
	}
	for name, value := range client {
		key := strings.ToLower(name)
		s, ok := Lookup(key)
		if !ok {
			if strings.Contains(key, ".") {
				v.base[key], v.source[key] = value, "client"
				continue
			}
			return nil, unknown(name)
		}
		if err := v.mayChange(s, true); err != nil {
			return nil, err
		}
		n, err := s.normalise(v.Value(key), value)
		if err != nil {
			return nil, err
		}
		v.base[key], v.source[key] = n, "client"
	}
	return v, nil
}

func unknown(name string) *pgerr.Error {
	return pgerr.New(codes.UndefinedObject, "unrecognized configuration parameter \"%s\"", name)
}

// mayChange says whether a session may change a setting; starting says that it begins.
func (v *Values) mayChange(s *Setting, starting bool) error {
	when := ""
	switch s.Context {
	case User:
		return nil
	case Superuser, SuperStart:
		if super, ok := v.Get("is_superuser"); ok && super != "on" {
			return pgerr.New(codes.InsufficientPrivilege, "permission denied to set parameter \"%s\"", s.Name)
		}
		if starting || s.Context == Superuser {
			return nil
		}
		when = " after connection start"
	case Startup:
		if starting && !s.Hidden {
			return nil
		}
		when = " after connection start"
	case Sighup:
		when = " now"
	case Postmaster:
		when = " without restarting the server"
	}
	verb := "changed"
	if s.Context == Startup || s.Context == SuperStart {
		verb = "set"
	}
	return pgerr.New(codes.CantChangeRuntimeParam, "parameter \"%s\" cannot be %s%s", s.Name, verb, when)
}

// Version grows with every change: what was derived from settings is stale when it
// differs.
func (v *Values) Version() uint64 { return v.version }

// Get returns a value as SHOW renders it.
func (v *Values) Get(name string) (string, bool) {
	key := strings.ToLower(name)
	for _, m := range []map[string]string{v.local, v.session} {
		if s, ok := m[key]; ok {
			return s, true
		}
	}
	return v.reset(key)
}

// reset is the value that RESET goes back to.
func (v *Values) reset(key string) (string, bool) {
	if s, ok := v.base[key]; ok {
		return s, true
	}
	if s, ok := registry()[key]; ok {
		return s.Default, true
	}
	return "", false
}

// From says where base values come from, as pg_settings.source says it: those of these names.
func (v *Values) From(source string, names map[string]string) {
	for name := range names {
		if key := strings.ToLower(name); v.source[key] == "configuration file" {
			v.source[key] = source
		}
	}
}

// Value is Get for a name that is registered.
func (v *Values) Value(name string) string {
	s, _ := v.Get(name)
	return s
}

// Set changes a value; local undoes it at the end of the transaction. Names with a
// dot that nobody registered hold any text.
func (v *Values) Set(name, value string, local bool) error {
	key := strings.ToLower(name)
	s, ok := Lookup(key)
	if !ok {
		if !strings.Contains(key, ".") || strings.HasPrefix(key, "skippr.") {
			return unknown(name)
		}
		v.put(key, value, local)
		return nil
	}
	if err := v.mayChange(s, false); err != nil {
		return err
	}
	n, err := s.normalise(v.Value(key), value)
	if err != nil {
		return err
	}
	v.put(key, n, local)
	return nil
}

func (v *Values) put(key, value string, local bool) {
	v.version++
	_, registered := registry()[key]
	if _, ok := v.base[key]; !ok && !registered { // a name of the client's own stays, with nothing in it
		v.base[key] = ""
	}
	if local {
		v.local[key] = value
		return
	}
	delete(v.local, key)
	v.session[key] = value
}

// Force sets a value that only the server may set.
func (v *Values) Force(name, value string) {
	v.put(strings.ToLower(name), value, false)
}

// ForceLocal sets a value until the end of the transaction without checks.
func (v *Values) ForceLocal(name, value string) { v.put(strings.ToLower(name), value, true) }

// Reset goes back to the base value.
func (v *Values) Reset(name string) error {
	key := strings.ToLower(name)
	s, ok := Lookup(key)
	if !ok && (!strings.Contains(key, ".") || strings.HasPrefix(key, "skippr.")) {
		return unknown(name)
	}
	if ok && s.Context != Startup {
		if err := v.mayChange(s, false); err != nil {
			return err
		}
	}
	v.version++
	delete(v.local, key)
	delete(v.session, key)
	return nil
}

// kept are what RESET ALL does not reset: who the session is.
var kept = map[string]bool{"role": true, "session_authorization": true, "is_superuser": true}

// ResetLocal goes back to the base value until the end of the transaction.
func (v *Values) ResetLocal(name string) error {
	session, was := v.session[strings.ToLower(name)]
	if err := v.Reset(name); err != nil {
		return err
	}
	key := strings.ToLower(name)
	if was {
		v.session[key] = session
	}
	v.local[key], _ = v.reset(key)
	return nil
}

// ResetAll is RESET ALL; the settings of the running transaction stay.
func (v *Values) ResetAll() {
	v.version++
	for _, m := range []map[string]string{v.local, v.session} {
		maps.DeleteFunc(m, func(key, _ string) bool { return !kept[key] })
	}
}

// Begin starts a transaction.
func (v *Values) Begin() { v.saved, v.marks = maps.Clone(v.session), nil }

// Commit ends it: local values go, others stay.
func (v *Values) Commit() { v.end(v.session) }

// Rollback ends it: values go back to what they were at its start.
func (v *Values) Rollback() {
	if v.saved != nil {
		v.end(v.saved)
	}
}

func (v *Values) end(session map[string]string) {
	if len(v.local) > 0 || v.saved != nil && !maps.Equal(v.session, session) {
		v.version++
	}
	v.session, v.local, v.saved, v.marks = session, map[string]string{}, nil, nil
}

// Mark remembers the values for a savepoint; it returns the mark's number.
func (v *Values) Mark() int {
	v.marks = append(v.marks, mark{maps.Clone(v.session), maps.Clone(v.local)})
	return len(v.marks) - 1
}

// Release forgets the marks from n on and keeps the values.
func (v *Values) Release(n int) { v.marks = v.marks[:n] }

// RollbackTo goes back to the values at mark n, which stays.
func (v *Values) RollbackTo(n int) {
	m := v.marks[n]
	v.session, v.local = maps.Clone(m.session), maps.Clone(m.local)
	v.marks = v.marks[:n+1]
	v.version++
}

// Reported returns all values that clients are told at start-up, and counts them as
// told.
func (v *Values) Reported() map[string]string {
	for _, s := range reported() {
		v.told[s.Name] = v.Value(s.Name)
	}
	return maps.Clone(v.told)
}

// Changes returns the reported values that changed since the client was last told,
// sorted by name, and counts them as told.
func (v *Values) Changes() []Shown {
	var out []Shown
	for _, s := range reported() {
		if now := v.Value(s.Name); now != v.told[s.Name] {
			v.told[s.Name] = now
			out = append(out, Shown{Setting: s, Value: now})
		}
	}
	return out
}

// All returns every registered setting that is not hidden with its value, sorted by name.
func (v *Values) All() []Shown {
	var out []Shown
	for _, s := range sorted() {
		if s.Hidden {
			continue
		}
		key := strings.ToLower(s.Name)
		sh := Shown{Setting: s, Value: v.Value(key), Source: "default", Reset: s.Default}
		if base, ok := v.base[key]; ok {
			sh.Reset, sh.Source = base, v.source[key]
		}
		_, inSession := v.session[key]
		_, inLocal := v.local[key]
		if inSession || inLocal {
			sh.Source = "session"
		}
		out = append(out, sh)
	}
	return out
}
