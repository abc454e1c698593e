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
	// Source is "default", "client" or "session", as pg_settings.source says.
	Source string
	// Reset is the value RESET goes back to.
	Reset string
}

// Values are a session's settings. Not safe for concurrent use.
type Values struct {
	base    map[string]string // what RESET goes back to, by lower-case name
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
		base: map[string]string{}, session: map[string]string{}, local: map[string]string{},
		told: map[string]string{},
	}
	for _, s := range All() {
		v.base[strings.ToLower(s.Name)] = s.Default
	}
	for name, value := range server {
		v.base[strings.ToLower(name)] = value
	}
	for name, value := range client {
		key := strings.ToLower(name)
		s, ok := Lookup(key)
		if !ok {
			if strings.Contains(key, ".") {
				v.base[key] = value
				continue
			}
			return nil, unknown(name)
		}
		if s.Context != User {
			return nil, cannotChange(s)
		}
		n, err := s.normalise(v.base[key], value)
		if err != nil {
			return nil, err
		}
		v.base[key] = n
	}
	return v, nil
}

func unknown(name string) *pgerr.Error {
	return pgerr.New(codes.UndefinedObject, "unrecognized configuration parameter \"%s\"", name)
}

func cannotChange(s *Setting) *pgerr.Error {
	return pgerr.New(codes.CantChangeRuntimeParam, "parameter \"%s\" cannot be changed", s.Name)
}

// Version grows with every change: what was derived from settings is stale when it
// differs.
func (v *Values) Version() uint64 { return v.version }

// Get returns a value as SHOW renders it.
func (v *Values) Get(name string) (string, bool) {
	key := strings.ToLower(name)
	for _, m := range []map[string]string{v.local, v.session, v.base} {
		if s, ok := m[key]; ok {
			return s, true
		}
	}
	return "", false
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
	if s.Context != User {
		return cannotChange(s)
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
	if ok && s.Context == Internal {
		return cannotChange(s)
	}
	v.version++
	delete(v.local, key)
	delete(v.session, key)
	return nil
}

// kept are what RESET ALL does not reset: who the session is.
var kept = map[string]bool{"role": true, "session_authorization": true, "is_superuser": true}

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
	for _, s := range All() {
		if s.Reported {
			v.told[s.Name] = v.Value(s.Name)
		}
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

// All returns every registered setting with its value, sorted by name.
func (v *Values) All() []Shown {
	var out []Shown
	for _, s := range sorted() {
		key := strings.ToLower(s.Name)
		sh := Shown{Setting: s, Value: v.Value(key), Source: "default", Reset: v.base[key]}
		if sh.Reset != s.Default {
			sh.Source = "client"
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
