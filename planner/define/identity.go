package define

import (
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// serial is a sequence that is made with a column of a table.
type serial struct {
	column string
	*sequence.Sequence
}

// serialTypes are names of types that come with a sequence, and the types of their columns.
var serialTypes = map[string]string{
	"serial": "int4", "serial4": "int4", "bigserial": "int8", "serial8": "int8", "smallserial": "int2", "serial2": "int2",
}

// serialType is the type of a column of type serial and its kin.
func serialType(n *pg.TypeName) (*pg.TypeName, bool) {
	if len(n.Names) != 1 || len(n.ArrayBounds) > 0 {
		return n, false
	}
	name, ok := serialTypes[n.Names[0].GetString_().GetSval()]
	if !ok {
		return n, false
	}
	return &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode(name)}, Typemod: -1, Location: n.Location}, true
}

// serial adds the sequence of a column: identity is "" for that of a serial.
func (d *definition) serial(f *schema.NewField, identity string, options []*pg.Node) error {
	if bounds[f.OID] == [2]int64{} {
		return pgerr.New(codes.InvalidParameterValue, "identity column type must be smallint, integer, or bigint")
	}
	for _, s := range d.serials {
		if s.column == f.Name {
			return pgerr.New(codes.Syntax, "multiple identity specifications for column \"%s\" of table \"%s\"", f.Name, d.table.Name)
		}
	}
	o, err := optionsOf(options)
	if err != nil {
		return err
	}
	name := ""
	if r := o["sequence_name"]; r != nil { // as pg_dump writes it
		items := r.GetList().GetItems()
		name = items[len(items)-1].GetString_().GetSval()
	}
	s, err := newSequence(f.OID, options)
	if err != nil {
		return err
	}
	taken := func(name string) bool {
		_, exists := d.context.Env.Resolver.Relation(d.table.Schema, name)
		return exists || name == d.table.Name || slices.ContainsFunc(d.serials, func(s serial) bool { return s.Name == name })
	}
	if name == "" {
		name = freeName(d.table.Name, f.Name, "_seq", taken)
	} else if taken(name) {
		return existsError(name)
	}
	s.Schema, s.Name, s.Identity = d.table.Schema, name, identity
	if s.ID, err = d.context.reserve(s.Schema); err != nil {
		return err
	}
	f.NotNull = true
	d.serials = append(d.serials, serial{f.Name, s})
	return nil
}

// checkDefaults refuses columns that have a default and a sequence of their own.
func (d *definition) checkDefaults() error {
	for _, s := range d.serials {
		if _, ok := d.defaults[s.column]; !ok {
			continue
		}
		if s.Identity != "" {
			return pgerr.New(codes.Syntax, "both default and identity specified for column \"%s\" of table \"%s\"", s.column, d.table.Name)
		}
		return pgerr.New(codes.Syntax, "multiple default values specified for column \"%s\" of table \"%s\"", s.column, d.table.Name)
	}
	return nil
}

// own gives the sequences their columns, and the columns of serials their defaults.
func (d *definition) own() {
	for _, s := range d.serials {
		f, _ := d.table.Current.FieldByName(s.column)
		s.Table, s.Column = d.table.Face(), f.ID
		if s.Identity == "" {
			setText(&d.table.Defaults, f.ID, pgsql.Nextval(s.Schema, s.Name))
		}
	}
}

// makeSerials puts the sequences of a table that is made.
func makeSerials(txn *catalog.Txn, table change.TableID, list []serial) error {
	for _, s := range list {
		if err := free(txn, s.Schema, s.Name); err != nil {
			return err
		}
		next := s.Clone()
		next.Table = table
		if err := txn.PutSequence(next); err != nil {
			return err
		}
	}
	return nil
}

// identity finds the identity of a column that is altered.
func (a *alteration) identity(name string) (f schema.Field, s *sequence.Sequence, err error) {
	if f, err = a.find(name); err != nil {
		return f, nil, err
	}
	for _, s := range ownedSequences(a.context.Snapshot.Sequences(), a.table.Face(), f.ID) {
		if s.Identity != "" {
			return f, s, nil
		}
	}
	return f, nil, nil
}

// addIdentity is ADD GENERATED … AS IDENTITY.
func (a *alteration) addIdentity(n *pg.AlterTableCmd) error {
	f, s, err := a.identity(n.Name)
	c := n.Def.GetConstraint()
	switch {
	case err != nil:
		return err
	case !f.NotNull:
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" must be declared NOT NULL before identity can be added", n.Name, a.table.Name)
	case s != nil:
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" is already an identity column", n.Name, a.table.Name)
	case a.table.Defaults[f.ID] != "", a.table.Generated[f.ID] != "":
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" already has a default value", n.Name, a.table.Name)
	}
	d := &definition{context: a.context, table: a.table}
	nf := schema.NewField{Name: f.Name, OID: f.OID}
	if err := d.serial(&nf, c.GeneratedWhen, c.Options); err != nil {
		return err
	}
	d.own()
	a.also = append(a.also, func(txn *catalog.Txn) error { return makeSerials(txn, a.table.Face(), d.serials) })
	return nil
}

// setIdentity is SET GENERATED, and the options of the sequence.
func (a *alteration) setIdentity(n *pg.AlterTableCmd) error {
	_, s, err := a.identity(n.Name)
	if err != nil {
		return err
	}
	if s == nil {
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" is not an identity column", n.Name, a.table.Name)
	}
	o, err := optionsOf(n.Def.GetList().GetItems())
	if err != nil {
		return err
	}
	kind := s.Identity
	if g := o["generated"]; g != nil {
		kind = string(rune(g.GetInteger().GetIval()))
	}
	apply, err := a.context.resetBy(s, o, func(s *sequence.Sequence) { s.Identity = kind })
	a.also = append(a.also, apply)
	return err
}

// dropIdentity is DROP IDENTITY.
func (a *alteration) dropIdentity(n *pg.AlterTableCmd) error {
	f, s, err := a.identity(n.Name)
	switch {
	case err != nil:
		return err
	case s == nil && n.MissingOk:
		a.out.Notices = append(a.out.Notices, notice(codes.SuccessfulCompletion,
			"column \"%s\" of relation \"%s\" is not an identity column, skipping", n.Name, a.table.Name))
		return nil
	case s == nil:
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" is not an identity column", n.Name, a.table.Name)
	}
	a.also = append(a.also, func(txn *catalog.Txn) error { return dropOwned(txn, a.table.Face(), f.ID) })
	return nil
}
