package ddl

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// Grant is GRANT and REVOKE on pipelines, connections and secrets:
//
//	GRANT USAGE ON PIPELINE name, … TO role, … [WITH GRANT OPTION]
//	REVOKE [GRANT OPTION FOR] USAGE ON PIPELINE name, … FROM role, … [CASCADE]
//
// The session, which knows how PostgreSQL reads the rest, runs it.
type Grant struct {
	Revoke bool
	Object string // pipeline, connection, secret
	// SQL is the statement with SCHEMA in the place of Object.
	SQL string
}

// SetOwner is ALTER PIPELINE, CONNECTION and SECRET … OWNER TO. The session runs it.
type SetOwner struct {
	Object string // PIPELINE, CONNECTION, SECRET
	Name   string
	To     string
	// Quoted says that To is a name also where it is that of a special role.
	Quoted bool
}

// Tag implements Statement.
func (s *Grant) Tag() string {
	if s.Revoke {
		return "REVOKE"
	}
	return "GRANT"
}

// Transactional implements Statement.
func (*Grant) Transactional() bool { return true }

// Tag implements Statement.
func (s *SetOwner) Tag() string { return "ALTER " + s.Object }

// Transactional implements Statement.
func (*SetOwner) Transactional() bool { return true }

// grantTokensMax bounds how far the object of a GRANT is looked for.
const grantTokensMax = 64

// isGrant says whether a GRANT or REVOKE is on objects of ours.
func isGrant(l *lexer) bool {
	on := false
	for range grantTokensMax {
		t, err := l.next()
		if err != nil || t.kind == tokEOF {
			return false
		}
		if on {
			name, err := l.next() // else it is the name of a table
			return err == nil && t.kind == tokWord && isObject(t.text) &&
				(name.kind == tokWord && name.text != "to" && name.text != "from" || name.kind == tokQuoted)
		}
		on = t.kind == tokWord && t.text == "on"
	}
	return false
}

// grant parses GRANT and REVOKE.
func (p *parser) grant() (Statement, error) {
	s := &Grant{Revoke: p.next().text == "revoke"}
	for p.peek().kind != tokEOF {
		if !p.word("on") {
			p.next()
			continue
		}
		t := p.next()
		s.Object = t.text
		var b strings.Builder
		chars := []rune(p.src)
		at := int(t.pos) - 1
		b.WriteString(string(chars[:at]))
		b.WriteString("SCHEMA")
		b.WriteString(string(chars[at+len([]rune(t.raw)):]))
		s.SQL = b.String()
		break
	}
	for p.peek().kind != tokEOF {
		p.next()
	}
	return s, nil
}

// owner parses what follows OWNER.
func (p *parser) owner(object, name string) (Statement, error) {
	if err := p.expectWord("to"); err != nil {
		return nil, err
	}
	quoted := p.peek().kind == tokQuoted
	to, err := p.name()
	return &SetOwner{Object: object, Name: name, To: to, Quoted: quoted}, err
}

// access is a role that runs a statement, and what it may do.
type access struct {
	book *right.Book
	role uint32
	snap *catalog.Snapshot
}

// authorize refuses a statement that the session's role may not run. What does not exist is
// left to the statement.
func (x *Executor) authorize(s Statement, session Session) error {
	a := access{book: x.Catalog.Rights(), role: session.Role()}
	if a.book.Superuser(a.role) {
		return nil
	}
	a.snap = x.Catalog.Snapshot()
	defer a.snap.Close()
	switch s := s.(type) {
	case *CreateSecret:
		return a.createSecret(s)
	case *CreateConnection:
		_, err := a.snap.Connection(s.Name)
		if err := a.create("connection", s.Name, err == nil && s.OrReplace, s.Spec.Options); err != nil {
			return err
		}
		return a.reach(&s.Spec)
	case *AlterConnection:
		if err := a.owns("connection", s.Name); err != nil {
			return err
		}
		if err := a.secrets(s.Options); err != nil {
			return err
		}
		spec := ConnectionSpec{Options: s.Options}
		if c, err := a.snap.Connection(s.Name); err == nil {
			spec.Kind = c.Kind
		}
		if err := a.reach(&spec); err != nil {
			return err
		}
		s.Options = spec.Options
		return nil
	case *ValidateConnection:
		return a.uses("connection", s.Name)
	case *CreatePipeline:
		return a.createPipeline(s)
	case *AlterPipeline:
		if s.Action == Compact {
			return a.uses("pipeline", s.Name)
		}
		return a.owns("pipeline", s.Name)
	case *Drop:
		return a.owns(strings.ToLower(s.Object), s.Name)
	case *Discover:
		return a.uses(strings.ToLower(s.Object), s.Name)
	case *Sync:
		return a.uses("pipeline", s.Name)
	case *Verify:
		return a.uses("pipeline", s.Name)
	case *RetryLetters:
		return a.owns("pipeline", s.Pipeline)
	case *Show:
		if s.What == "PIPELINE" || s.What == "STATS" {
			return a.watches(s.Name)
		}
		return nil // which leaves out what the role may not see
	}
	return pgerr.New(codes.InsufficientPrivilege, "permission denied")
}

// object finds what rights are kept of; false when there is no such.
func (a access) object(kind, name string) (right.Object, bool) {
	switch kind {
	case "pipeline":
		p, err := a.snap.Pipeline(name)
		if err != nil {
			return right.Object{}, false
		}
		return right.Object{Class: right.Pipeline, ID: uint32(p.ID)}, true
	case "connection":
		_, err := a.snap.Connection(name)
		return right.Object{Class: right.Connection, Name: name}, err == nil
	}
	_, err := a.snap.Secret(name)
	return right.Object{Class: right.Secret, Name: name}, err == nil
}

func (a access) owns(kind, name string) error {
	if o, ok := a.object(kind, name); ok && !a.book.Owns(a.role, o) {
		return pgerr.New(codes.InsufficientPrivilege, "must be owner of %s %s", kind, name)
	}
	return nil
}

// uses asks for USAGE, which owners have.
func (a access) uses(kind, name string) error {
	if o, ok := a.object(kind, name); ok && !a.book.Owns(a.role, o) && a.book.Has(a.role, o, right.Usage) == 0 {
		return pgerr.New(codes.InsufficientPrivilege, "permission denied for %s %s", kind, name).
			WithHint("Its owner may run: GRANT USAGE ON %s %s TO %s;", strings.ToUpper(kind), quote.NameIfNeeded(name), quote.NameIfNeeded(a.book.Name(a.role)))
	}
	return nil
}

// watches asks for the right to see a pipeline, which who reads all statistics has.
func (a access) watches(name string) error {
	if a.book.HasRole(a.role, right.ReadAllStats) {
		return nil
	}
	return a.uses("pipeline", name)
}

// create asks for the right to make something, or to replace it.
func (a access) create(kind, name string, replaces bool, options []Option) error {
	if replaces {
		if err := a.owns(kind, name); err != nil {
			return err
		}
	}
	if a.book.Has(a.role, right.Object{Class: right.Database}, right.Create) == 0 {
		return pgerr.New(codes.InsufficientPrivilege, "permission denied to create %s", kind).
			WithDetail("It needs CREATE on the database.")
	}
	return a.secrets(options)
}

// serverOptions name files of the server's host, or say how far it is trusted there.
var serverOptions = []string{"SSLROOTCERT", "SSLCERT", "SSLKEY", "PASSFILE", "SERVICE", "SERVICEFILE", "REQUIRE_AUTH"}

// asksForPassword is the REQUIRE_AUTH of connections that roles other than superusers make.
const asksForPassword = "scram-sha-256,md5,password"

// reach keeps who is no superuser from what the server's host may do: to read its files, and
// to connect where that host is trusted. Its connections are to servers that ask for a
// password.
func (a access) reach(spec *ConnectionSpec) error {
	if spec.Kind != "postgres" {
		return nil
	}
	options, err := expandURL(*spec)
	if err != nil {
		return nil // which the statement says
	}
	for _, o := range options {
		if slices.Contains(serverOptions, strings.ToUpper(o.Name)) {
			return pgerr.New(codes.InsufficientPrivilege, "must be superuser to set %s of a connection", strings.ToUpper(o.Name)).
				WithHint("Leave it out, and give a PASSWORD.").WithPosition(o.Pos)
		}
	}
	spec.Options = append(spec.Options[:len(spec.Options):len(spec.Options)], Option{Name: "REQUIRE_AUTH", Value: asksForPassword})
	return nil
}

// secrets asks for USAGE on the secrets that options name.
func (a access) secrets(options []Option) error {
	for _, o := range options {
		if o.Secret != "" {
			if err := a.uses("secret", o.Secret); err != nil {
				return err
			}
		}
	}
	return nil
}

// createSecret: secrets that the server looks up in its environment and files are superusers'.
func (a access) createSecret(s *CreateSecret) error {
	if catalog.ValidSecretSource(s.Value) && s.Value != catalog.SourceLiteral {
		return pgerr.New(codes.InsufficientPrivilege, "must be superuser to take a secret from the server's environment or files").
			WithHint("Give the value itself.")
	}
	_, err := a.snap.Secret(s.Name)
	if s.Alter {
		return a.owns("secret", s.Name)
	}
	return a.create("secret", s.Name, err == nil && s.OrReplace, nil)
}

func (a access) createPipeline(s *CreatePipeline) error {
	_, err := a.snap.Pipeline(s.Name)
	var options []Option
	if s.Inline != nil {
		options = s.Inline.Options
	}
	if err := a.create("pipeline", s.Name, err == nil && s.OrReplace, options); err != nil {
		return err
	}
	if s.Inline != nil {
		if err := a.reach(s.Inline); err != nil {
			return err
		}
	}
	if s.Connection != "" {
		if err := a.uses("connection", s.Connection); err != nil {
			return err
		}
	}
	target := s.Schema
	if target == "" {
		target = s.Name
	}
	if sc, err := a.snap.Schema(target); err == nil && a.book.Has(a.role, right.Object{Class: right.Schema, ID: sc.OID}, right.Create) == 0 {
		return pgerr.New(codes.InsufficientPrivilege, "permission denied for schema %s", target)
	}
	return nil
}
