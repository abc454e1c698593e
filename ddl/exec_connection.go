package ddl

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// createSecret is CREATE SECRET and ALTER SECRET. 'env:NAME' and 'file:PATH' are
// looked up whenever the secret is used; anything else is the value itself.
func (x *Executor) createSecret(ctx context.Context, s *CreateSecret, session Session) error {
	skip := false
	err := x.Catalog.Update(ctx, func(t *catalog.Txn) error {
		old, err := t.Secret(s.Name)
		exists := err == nil
		if err != nil && !errors.Is(err, catalog.ErrSecretNotFound) {
			return err
		}
		switch {
		case s.Alter && !exists:
			return notFound("secret", s.Name)
		case exists && s.IfNotExists:
			skip = true
			return nil
		case exists && !s.Alter && !s.OrReplace:
			return duplicate("secret", s.Name)
		}
		fresh := &catalog.Secret{Name: s.Name, Source: s.Value, CreatedAt: x.Clock.Now()}
		if exists {
			fresh.CreatedAt = old.CreatedAt
		}
		if !catalog.ValidSecretSource(s.Value) || s.Value == catalog.SourceLiteral {
			fresh.Source = catalog.SourceLiteral
			fresh.Sealed = x.Catalog.Seal([]byte(s.Value))
		}
		if exists {
			return t.PutSecret(fresh)
		}
		if err := t.CreateSecret(fresh); err != nil {
			return err
		}
		return t.Own(right.Object{Class: right.Secret, Name: s.Name}, session.Role())
	})
	if err == nil && skip {
		return noticeSkip(session, "secret \"%s\" already exists", s.Name)
	}
	return err
}

// buildConnection validates spec and makes the catalog's connection of it.
func (x *Executor) buildConnection(snap *catalog.Snapshot, name string, spec ConnectionSpec) (*catalog.Connection, error) {
	docs, ok := connectionOptions[spec.Kind]
	if !ok {
		return nil, unknownKind(spec)
	}
	options, err := expandURL(spec)
	if err != nil {
		return nil, err
	}
	c := &catalog.Connection{
		Name: name, Kind: spec.Kind, CreatedAt: x.Clock.Now(),
		Options: map[string]string{}, Secrets: map[string]string{}, Sealed: map[string][]byte{},
	}
	if err := x.applyOptions(snap, c, docs, options); err != nil {
		return nil, err
	}
	return c, nil
}

func unknownKind(spec ConnectionSpec) error {
	kind := strings.ToUpper(spec.Kind)
	if slices.Contains(laterKinds, spec.Kind) {
		return pgerr.New(codes.FeatureNotSupported, "connections of kind %s are not supported by this version", kind).
			WithPosition(spec.Pos).WithHint("The kinds are POSTGRES and GENERATOR.")
	}
	e := pgerr.New(codes.InvalidParameterValue, "unrecognized connection kind \"%s\"", kind).WithPosition(spec.Pos)
	if near := nearest(spec.Kind, []string{"postgres", "generator"}); near != "" {
		return e.WithHint("Perhaps you meant %s.", strings.ToUpper(near))
	}
	return e.WithHint("The kinds are POSTGRES and GENERATOR.")
}

func (x *Executor) applyOptions(snap *catalog.Snapshot, c *catalog.Connection, docs []OptionDoc, options []Option) error {
	for _, o := range options {
		if o.Secret != "" {
			if _, err := snap.Secret(o.Secret); err != nil {
				return notFound("secret", o.Secret).WithPosition(o.Pos).
					WithHint("CREATE SECRET %s AS '…'; makes it.", quote.NameIfNeeded(o.Secret))
			}
			probe := o
			probe.Value = "1"
			if _, err := checkOption(docs, probe, "connection"); err != nil {
				return err
			}
			delete(c.Options, o.Name)
			delete(c.Sealed, o.Name)
			c.Secrets[o.Name] = o.Secret
			continue
		}
		v, err := checkOption(docs, o, "connection")
		if err != nil {
			return err
		}
		delete(c.Secrets, o.Name)
		if slices.Contains(secretOptions, o.Name) {
			c.Sealed[o.Name] = x.Catalog.Seal([]byte(v))
			continue
		}
		c.Options[o.Name] = v
	}
	return nil
}

func (x *Executor) createConnection(ctx context.Context, s *CreateConnection, session Session) error {
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	c, err := x.buildConnection(snap, s.Name, s.Spec)
	if err != nil {
		return err
	}
	skip := false
	err = x.Catalog.Update(ctx, func(t *catalog.Txn) error {
		_, err := t.Connection(s.Name)
		switch {
		case err == nil && s.IfNotExists:
			skip = true
			return nil
		case err == nil && !s.OrReplace:
			return duplicate("connection", s.Name)
		case err != nil && !errors.Is(err, catalog.ErrConnectionNotFound):
			return err
		case err == nil:
			return t.PutConnection(c)
		}
		if err := t.CreateConnection(c); err != nil {
			return err
		}
		return t.Own(right.Object{Class: right.Connection, Name: c.Name}, session.Role())
	})
	if err == nil && skip {
		return noticeSkip(session, "connection \"%s\" already exists", s.Name)
	}
	return err
}

func (x *Executor) alterConnection(ctx context.Context, s *AlterConnection) error {
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	return x.Catalog.Update(ctx, func(t *catalog.Txn) error {
		old, err := t.Connection(s.Name)
		if errors.Is(err, catalog.ErrConnectionNotFound) {
			return notFound("connection", s.Name)
		}
		if err != nil {
			return err
		}
		c := old.Clone()
		if err := x.applyOptions(snap, c, connectionOptions[c.Kind], s.Options); err != nil {
			return err
		}
		return t.PutConnection(c)
	})
}

var validateColumns = []Column{{"check", oidText}, {"ok", oidBool}, {"detail", oidText}, {"fix", oidText}}

func (x *Executor) validateConnection(ctx context.Context, s *ValidateConnection) (*Result, error) {
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	c, err := snap.Connection(s.Name)
	if err != nil {
		return nil, notFound("connection", s.Name)
	}
	findings, err := x.Controller.Validate(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	r := &Result{Columns: validateColumns}
	for _, f := range findings {
		r.Rows = append(r.Rows, []any{f.Check, f.OK, orNull(f.Detail), orNull(f.Fix)})
	}
	return r, nil
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
