package define

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// bounds are the limits of the types that sequences may have.
var bounds = map[uint32][2]int64{
	pgsql.OIDInt2: {math.MinInt16, math.MaxInt16}, pgsql.OIDInt4: {math.MinInt32, math.MaxInt32},
	pgsql.OIDInt8: {math.MinInt64, math.MaxInt64},
}

// sequenceOptions are the options of CREATE and ALTER SEQUENCE, by name; nil is NO MINVALUE
// and its kin.
type sequenceOptions map[string]*pg.Node

func optionsOf(list []*pg.Node) (sequenceOptions, error) {
	out := sequenceOptions{}
	for _, n := range list {
		d := n.GetDefElem()
		if _, twice := out[d.Defname]; twice {
			return nil, pgerr.New(codes.Syntax, "conflicting or redundant options")
		}
		out[d.Defname] = d.Arg
	}
	return out, nil
}

// number is the value of an option, which has one.
func (o sequenceOptions) number(name string) (value int64, given bool, err error) {
	n := o[name]
	if n == nil {
		return 0, false, nil
	}
	switch v := n.Node.(type) {
	case *pg.Node_Integer:
		return int64(v.Integer.Ival), true, nil
	case *pg.Node_Float:
		value, err = strconv.ParseInt(v.Float.Fval, 10, 64)
		if err != nil {
			return 0, true, pgerr.New(codes.NumericValueOutOfRange, "value \"%s\" is out of range for type bigint", v.Float.Fval)
		}
		return value, true, nil
	}
	return 0, true, pgerr.New(codes.Syntax, "%s requires a numeric value", name)
}

// apply changes a sequence by options; created says that it is new.
func (o sequenceOptions) apply(s *sequence.Sequence, created bool) error {
	before := bounds[s.Type]
	if n := o["as"]; n != nil {
		t, err := pgsql.ResolveTypeName(n.GetTypeName())
		if err != nil {
			return err
		}
		if bounds[t.OID] == [2]int64{} {
			return pgerr.New(codes.InvalidParameterValue, "sequence type must be smallint, integer, or bigint")
		}
		s.Type = t.OID
	}
	increment, given, err := o.number("increment")
	switch {
	case err != nil:
		return err
	case given && increment == 0:
		return pgerr.New(codes.InvalidParameterValue, "INCREMENT must not be zero")
	case given:
		s.Increment = increment
	}
	if n, ok := o["cycle"]; ok {
		s.Cycle = n.GetBoolean().GetBoolval()
	}
	if err := o.limits(s, created, before); err != nil {
		return err
	}
	return o.values(s, created)
}

// limits applies MINVALUE and MAXVALUE. before are the limits of the type that it had.
func (o sequenceOptions) limits(s *sequence.Sequence, created bool, before [2]int64) error {
	type limit struct {
		name, word  string
		at          *int64
		side        int // of bounds
		rest, least int64
	}
	ends := bounds[s.Type]
	up, down := limit{"maxvalue", "MAXVALUE", &s.Max, 1, ends[1], -1}, limit{"minvalue", "MINVALUE", &s.Min, 0, ends[0], 1}
	if s.Increment < 0 {
		up.rest = -1
	} else {
		down.rest = 1
	}
	for _, l := range []limit{up, down} {
		value, given, err := o.number(l.name)
		_, said := o[l.name]
		switch {
		case err != nil:
			return err
		case given:
			*l.at = value
		case said, created, s.Type != 0 && o["as"] != nil && *l.at == before[l.side]:
			*l.at = l.rest
		}
		if *l.at < ends[0] || *l.at > ends[1] {
			return pgerr.New(codes.InvalidParameterValue, "%s (%d) is out of range for sequence data type %s", l.word, *l.at, pgsql.Type{OID: s.Type, Mod: -1}.Name())
		}
	}
	if s.Min >= s.Max {
		return pgerr.New(codes.InvalidParameterValue, "MINVALUE (%d) must be less than MAXVALUE (%d)", s.Min, s.Max)
	}
	return nil
}

// values applies START, RESTART and CACHE.
func (o sequenceOptions) values(s *sequence.Sequence, created bool) error {
	start, given, err := o.number("start")
	switch {
	case err != nil:
		return err
	case given:
		s.Start = start
	case created && s.Increment > 0:
		s.Start = s.Min
	case created:
		s.Start = s.Max
	}
	if err := within(s, "START", s.Start); err != nil {
		return err
	}
	again, given, err := o.number("restart")
	_, said := o["restart"]
	switch {
	case err != nil:
		return err
	case created:
		s.Last, s.Called = s.Start, false
	case given:
		s.Last, s.Called = again, false
	case said:
		s.Last, s.Called = s.Start, false
	}
	if err := within(s, "RESTART", s.Last); err != nil {
		return err
	}
	cache, given, err := o.number("cache")
	switch {
	case err != nil:
		return err
	case given && cache <= 0:
		return pgerr.New(codes.InvalidParameterValue, "CACHE (%d) must be greater than zero", cache)
	case given:
		s.Cache = cache
	case created:
		s.Cache = 1
	}
	return nil
}

func within(s *sequence.Sequence, word string, value int64) error {
	if value < s.Min {
		return pgerr.New(codes.InvalidParameterValue, "%s value (%d) cannot be less than MINVALUE (%d)", word, value, s.Min)
	}
	if value > s.Max {
		return pgerr.New(codes.InvalidParameterValue, "%s value (%d) cannot be greater than MAXVALUE (%d)", word, value, s.Max)
	}
	return nil
}

// newSequence is a sequence of a type and options.
func newSequence(kind uint32, list []*pg.Node) (*sequence.Sequence, error) {
	o, err := optionsOf(list)
	if err != nil {
		return nil, err
	}
	s := &sequence.Sequence{Type: kind, Increment: 1}
	return s, o.apply(s, true)
}

// createSequence plans CREATE SEQUENCE.
func (c *Context) createSequence(n *pg.CreateSeqStmt) (*Change, error) {
	out := &Change{Tag: "CREATE SEQUENCE"}
	schemaName, exists, err := c.newName(n.Sequence)
	switch {
	case err != nil:
		return nil, err
	case exists && n.IfNotExists:
		out.Notices = append(out.Notices, notice(codes.DuplicateRelation, "relation \"%s\" already exists, skipping", n.Sequence.Relname))
		return out, nil
	case exists:
		return nil, existsError(n.Sequence.Relname)
	}
	s, err := newSequence(pgsql.OIDInt8, n.Options)
	if err != nil {
		return nil, err
	}
	s.Schema, s.Name = schemaName, n.Sequence.Relname
	if err := c.ownedBy(s, n.Options); err != nil {
		return nil, err
	}
	if s.ID, err = c.reserve(s.Schema); err != nil {
		return nil, err
	}
	return out.do(c.isTemp(s.Schema), func(txn *catalog.Txn) error {
		return cmp.Or(hasSchema(txn, s.Schema), free(txn, s.Schema, s.Name), txn.PutSequence(s))
	}), nil
}

// ownedBy applies OWNED BY.
func (c *Context) ownedBy(s *sequence.Sequence, list []*pg.Node) error {
	o, err := optionsOf(list)
	if err != nil || o["owned_by"] == nil {
		return err
	}
	items := o["owned_by"].GetList().GetItems()
	last := items[len(items)-1].GetString_().GetSval()
	if len(items) == 1 {
		if last != "none" {
			return pgerr.New(codes.Syntax, "invalid OWNED BY option").WithHint("Specify OWNED BY table.column or OWNED BY NONE.")
		}
		s.Table, s.Column = 0, 0
		return nil
	}
	r := rangeVar(&pg.Node{Node: &pg.Node_List{List: &pg.List{Items: items[:len(items)-1]}}})
	t, rel, err := c.table(r)
	if err != nil {
		return err
	}
	f, ok := t.Current.FieldByName(last)
	switch {
	case !ok:
		return pgerr.New(codes.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", last, rel.Name)
	case t.Schema != s.Schema:
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "sequence must be in same schema as table it is linked to")
	case t.Temp == "" && c.ownerOf(s) != c.Snapshot.Rights().Owner(right.Table(uint32(t.Face()))):
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "sequence must have same owner as table it is linked to")
	}
	s.Table, s.Column = t.Face(), f.ID
	return nil
}

// ownerOf is the role whose a sequence is; a new one is made by the session's.
func (c *Context) ownerOf(s *sequence.Sequence) uint32 {
	book := c.Snapshot.Rights()
	if s.ID != 0 {
		return book.Owner(right.SequenceOf(uint32(s.ID)))
	}
	if r := book.Named(c.Env.User); r != nil {
		return r.OID
	}
	return right.Bootstrap
}

// sequence finds the sequence that a statement changes; missing says that it is not there,
// and that this is no error.
func (c *Context) sequence(r *pg.RangeVar, missingOK bool, out *Change) (s *sequence.Sequence, missing bool, err error) {
	rel, err := pgsql.FindRelation(r, c.Env)
	if e, ok := pgerr.As(err); ok && missingOK && e.Code == codes.UndefinedTable {
		out.Notices = append(out.Notices, notice(codes.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", r.Relname))
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	if !rel.Sequence {
		return nil, false, pgerr.New(codes.WrongObjectType, "\"%s\" is not a sequence", rel.Name)
	}
	s, err = c.Snapshot.SequenceByName(rel.Schema, rel.Name)
	return s, false, err
}

// alterSequence plans ALTER SEQUENCE.
func (c *Context) alterSequence(n *pg.AlterSeqStmt) (*Change, error) {
	out := &Change{Tag: "ALTER SEQUENCE"}
	s, missing, err := c.sequence(n.Sequence, n.MissingOk, out)
	if err != nil || missing {
		return out, err
	}
	next := s.Clone()
	o, err := optionsOf(n.Options)
	if err == nil {
		_, owned := o["owned_by"]
		if owned && s.Identity != "" {
			return nil, pgerr.New(codes.FeatureNotSupported, "cannot change ownership of identity sequence").
				WithDetail("Sequence \"%s\" is linked to table \"%s\".", s.Name, c.tableName(s.Table))
		}
		err = c.ownedBy(next, n.Options)
	}
	if err != nil {
		return nil, err
	}
	apply, err := c.resetBy(s, o, func(row *sequence.Sequence) { row.Table, row.Column = next.Table, next.Column })
	return out.do(c.isTemp(s.Schema), apply), err
}

func (c *Context) tableName(id change.TableID) string {
	t, err := c.Snapshot.TableByFace(id)
	if err != nil {
		return ""
	}
	return t.Name
}

// resetBy changes a sequence by options, which is planned against what it is now.
func (c *Context) resetBy(s *sequence.Sequence, o sequenceOptions, also func(*sequence.Sequence)) (func(*catalog.Txn) error, error) {
	step := c.Step()
	change := func(row *sequence.Sequence) (*sequence.Sequence, error) {
		next := row.Clone()
		if last, called, known := c.Settle(row); known {
			next.Last, next.Called = last, called
		}
		if err := o.apply(next, false); err != nil {
			return nil, err
		}
		next.Resets += step
		if also != nil {
			also(next)
		}
		return next, nil
	}
	if _, err := change(s); err != nil {
		return nil, err
	}
	return func(txn *catalog.Txn) error {
		row, err := txn.SequenceByID(s.ID)
		if err != nil {
			return gone(err, "sequence", s.Name)
		}
		next, err := change(row)
		if err != nil {
			return err
		}
		return txn.PutSequence(next)
	}, nil
}

// moveSequence plans another name of a sequence. Defaults that draw from it follow.
func (c *Context) moveSequence(r *pg.RangeVar, missingOK bool, rename func(*sequence.Sequence)) (*Change, error) {
	out := &Change{Tag: "ALTER SEQUENCE"}
	old, missing, err := c.sequence(r, missingOK, out)
	if err != nil || missing {
		return out, err
	}
	next := old.Clone()
	rename(next)
	if next.Schema != old.Schema && old.Table != 0 {
		return nil, pgerr.New(codes.FeatureNotSupported, "cannot move an owned sequence into another schema").
			WithDetail("Sequence \"%s\" is linked to table \"%s\".", old.Name, c.tableName(old.Table))
	}
	if _, taken := c.Env.Resolver.Relation(next.Schema, next.Name); taken {
		return nil, existsError(next.Name)
	}
	for _, d := range c.drawers(old) {
		out.Alters = append(out.Alters, d.table.Face())
	}
	return out.do(c.isTemp(old.Schema), func(txn *catalog.Txn) error {
		if err := cmp.Or(hasSchema(txn, next.Schema), free(txn, next.Schema, next.Name)); err != nil {
			return err
		}
		return moveSequence(txn, old.ID, next.Schema, next.Name)
	}), nil
}

// moveSequence gives a sequence another name, also in the defaults that draw from it.
func moveSequence(txn *catalog.Txn, id change.TableID, schemaName, name string) error {
	row, err := txn.SequenceByID(id)
	if err != nil {
		return gone(err, "sequence", name)
	}
	next := row.Clone()
	next.Schema, next.Name = schemaName, name
	if err := txn.DeleteSequence(row.Schema, row.Name); err != nil {
		return fmt.Errorf("move sequence: %w", err)
	}
	if err := txn.PutSequence(next); err != nil {
		return err
	}
	before, after := pgsql.Nextval(row.Schema, row.Name), pgsql.Nextval(schemaName, name)
	for _, t := range txn.EveryTable() {
		next, changed := t.Clone(), false
		for field, text := range t.Defaults {
			if moved, ok := pgsql.RenameNextval(text, before, after); ok {
				setText(&next.Defaults, field, moved)
				changed = true
			}
		}
		if !changed {
			continue
		}
		if err := txn.PutTable(next); err != nil {
			return err
		}
	}
	return nil
}

// ownedSequences are the sequences that go with a table, or with one of its columns.
func ownedSequences(all []*sequence.Sequence, table change.TableID, column int32) []*sequence.Sequence {
	var out []*sequence.Sequence
	for _, s := range all {
		if s.Table == table && (column == 0 || s.Column == column) {
			out = append(out, s)
		}
	}
	return out
}

// dropOwned drops the sequences that go with a table, or with one of its columns.
func dropOwned(txn *catalog.Txn, table change.TableID, column int32) (err error) {
	for _, s := range ownedSequences(txn.Sequences(), table, column) {
		err = errors.Join(err, txn.DeleteSequence(s.Schema, s.Name))
	}
	return err
}

// drawing is a column whose default draws from a sequence.
type drawing struct {
	table *catalog.Table
	field int32
}

// drawers are the columns whose defaults draw from a sequence.
func (c *Context) drawers(s *sequence.Sequence) []drawing {
	text := pgsql.Nextval(s.Schema, s.Name)
	var out []drawing
	for _, t := range c.Snapshot.AllTables() {
		for _, f := range t.Current.Fields {
			if pgsql.Draws(t.Defaults[f.ID], text) {
				out = append(out, drawing{t, f.ID})
			}
		}
	}
	return out
}

// freeName is PostgreSQL's name of what belongs to a column, or several, with a label at its
// end: taken says which are not free.
func freeName(table, column, label string, taken func(string) bool) string {
	const longest = 63
	for i := 0; ; i++ {
		end := label
		if i > 0 {
			end += strconv.Itoa(i)
		}
		a, b := table, column
		if b != "" {
			b = "_" + b
		}
		for len(a)+len(b)+len(end) > longest {
			if len(a) > len(b)-1 {
				a = clip(a)
			} else {
				b = clip(b)
			}
		}
		if name := a + b + end; !taken(name) {
			return name
		}
	}
}

// clip takes the last character off.
func clip(s string) string {
	r := []rune(s)
	return string(r[:len(r)-1])
}

func commentSequence(rel *pgsql.Relation, text string) func(*catalog.Txn) error {
	return func(txn *catalog.Txn) error {
		s, err := txn.SequenceByName(rel.Schema, rel.Name)
		if err != nil {
			return gone(err, "sequence", rel.Name)
		}
		next := s.Clone()
		next.Comment = text
		return txn.PutSequence(next)
	}
}
