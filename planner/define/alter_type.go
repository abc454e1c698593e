package define

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// Retyping is an ALTER TABLE that gives columns types which do not have their values as they are:
// they are computed for all rows, into columns beside the old ones, whose places those then take.
// Its steps are done in one transaction, in order.
type Retyping struct {
	// First adds the columns, after what comes before it in the statement. Update computes them.
	// Last is what comes after, nil for nothing.
	First, Last *pg.AlterTableStmt
	Update      string
	// Owner is the table of which the owner does it.
	Owner right.Object
	// of is the table, columns what is computed.
	of      *pg.AlterTableStmt
	columns []retyped
}

// retyped is a column, and the one that is to take its place.
type retyped struct {
	name, beside string
	from, to     pgsql.Type
}

// Retypes plans an ALTER TABLE that computes columns anew; it is nil for any other.
func (c *Context) Retypes(n *pg.AlterTableStmt) (*Retyping, error) {
	isType := func(x *pg.Node) bool {
		return x.GetAlterTableCmd().GetSubtype() == pg.AlterTableType_AT_AlterColumnType
	}
	if n.Objtype != pg.ObjectType_OBJECT_TABLE || !slices.ContainsFunc(n.Cmds, isType) {
		return nil, nil
	}
	a, missing, err := c.alteredTable(n.Relation, n.MissingOk, "ALTER TABLE")
	if err != nil || missing || a.table.Query != nil {
		return nil, nil // the statement itself says so
	}
	out := &Retyping{of: n, Owner: right.Table(uint32(a.table.Face()))}
	var before, adds, after []*pg.Node
	var set []string
	for _, x := range n.Cmds {
		cmd := x.GetAlterTableCmd()
		r, using, err := a.retypes(cmd)
		switch {
		case err != nil:
			return nil, err
		case r != nil:
			if slices.ContainsFunc(out.columns, func(o retyped) bool { return o.name == r.name }) {
				return nil, pgerr.New(codes.FeatureNotSupported, "cannot alter type of column \"%s\" twice", r.name)
			}
			out.columns = append(out.columns, *r)
			def := &pg.ColumnDef{Colname: r.beside, TypeName: cmd.Def.GetColumnDef().TypeName, CollClause: cmd.Def.GetColumnDef().CollClause, IsLocal: true}
			adds = append(adds, &pg.Node{Node: &pg.Node_AlterTableCmd{AlterTableCmd: &pg.AlterTableCmd{
				Subtype: pg.AlterTableType_AT_AddColumn, Def: &pg.Node{Node: &pg.Node_ColumnDef{ColumnDef: def}},
			}}})
			set = append(set, quote.NameIfNeeded(r.beside)+" = ("+using+")")
		case goesFirst(cmd):
			before = append(before, x)
		default:
			after = append(after, x)
		}
	}
	if len(adds) == 0 {
		return nil, nil
	}
	part := func(list []*pg.Node) *pg.AlterTableStmt {
		return &pg.AlterTableStmt{Relation: n.Relation, Cmds: list, Objtype: n.Objtype}
	}
	out.First = part(append(before, adds...))
	if len(after) > 0 {
		out.Last = part(after)
	}
	out.Update = "UPDATE ONLY " + qualifiedName(a.rel.Schema, a.rel.Name) + " SET " + strings.Join(set, ", ")
	return out, nil
}

// goesFirst says whether PostgreSQL does a command before types change, wherever it stands.
func goesFirst(n *pg.AlterTableCmd) bool {
	switch n.Subtype {
	case pg.AlterTableType_AT_DropColumn, pg.AlterTableType_AT_DropConstraint, pg.AlterTableType_AT_DropNotNull,
		pg.AlterTableType_AT_DropIdentity, pg.AlterTableType_AT_DropExpression:
		return true
	case pg.AlterTableType_AT_ColumnDefault:
		return n.Def == nil
	}
	return false
}

// retypes is a command that has a column computed anew, nil for any other, and by what.
func (a *alteration) retypes(n *pg.AlterTableCmd) (*retyped, string, error) {
	if n.GetSubtype() != pg.AlterTableType_AT_AlterColumnType {
		return nil, "", nil
	}
	def := n.Def.GetColumnDef()
	f, err := a.find(n.Name)
	if err != nil {
		return nil, "", err
	}
	t, err := a.context.columnType(def.TypeName)
	if err != nil {
		return nil, "", err
	}
	to, err := newField(f.Name, t)
	if err != nil {
		return nil, "", err
	}
	from := a.context.Env.TypeOf(f.OID, f.TypMod)
	if a.narrows(n, f, t) {
		return nil, "", nil
	}
	same := def.RawDefault == nil || a.context.itself(def.RawDefault, n.Name, t)
	if same && widens(pgsql.Type{OID: f.OID, Mod: f.TypMod}, pgsql.Type{OID: to.OID, Mod: to.TypMod}) && schema.Widens(f.Type, to.Type) {
		return nil, "", nil
	}
	if err := cmp.Or(a.unusedInViews(n.Name), a.notGenerated(f), a.mayReplace(f)); err != nil {
		return nil, "", err
	}
	r := &retyped{name: f.Name, from: from, to: t}
	for i := len(a.table.Current.Fields); ; i++ {
		r.beside = fmt.Sprintf("%.40s as %d", f.Name, i)
		if _, taken := a.table.Current.FieldByName(r.beside); !taken {
			break
		}
	}
	if def.RawDefault == nil {
		if !pgsql.Assigns(from, t) {
			return nil, "", pgerr.New(codes.DatatypeMismatch, "column \"%s\" cannot be cast automatically to type %s", f.Name, t.Name()).
				WithHint("You might need to specify \"USING %s::%s\".", quote.NameIfNeeded(f.Name), t.Name())
		}
		return r, quote.NameIfNeeded(f.Name), nil
	}
	if pgsql.HasQuery(def.RawDefault) {
		return nil, "", unsupported("cannot use subquery in transform expression")
	}
	using, err := pgsql.ExpressionText(def.RawDefault)
	return r, using, err
}

// itself says whether an expression is a column, or a cast of it to a type.
func (c *Context) itself(n *pg.Node, name string, t pgsql.Type) bool {
	if tc := n.GetTypeCast(); tc != nil {
		if to, err := c.columnType(tc.TypeName); err != nil || to.OID != t.OID || to.Mod != t.Mod {
			return false
		}
		n = tc.Arg
	}
	fields := n.GetColumnRef().GetFields()
	return len(fields) == 1 && fields[0].GetString_().GetSval() == name
}

// narrows says whether a command gives a column by which rows are found a length that its texts have,
// as must be proved: they stay as they are.
func (a *alteration) narrows(n *pg.AlterTableCmd, f schema.Field, to pgsql.Type) bool {
	from := pgsql.Type{OID: f.OID, Mod: f.TypMod}
	return n.Def.GetColumnDef().RawDefault == nil && (from.OID == pgsql.OIDVarchar || from.OID == pgsql.OIDText) &&
		to.OID == pgsql.OIDVarchar && !widens(from, to) && a.mayReplace(f) != nil
}

// proveFits asks for texts that are too long for a type: those that only blanks make so are cut by
// PostgreSQL, and not here.
func (a *alteration) proveFits(f schema.Field, to pgsql.Type) error {
	if !a.asked(f.Name) {
		return errSplit
	}
	column, most := quote.NameIfNeeded(f.Name), to.Mod-4
	a.prove(fmt.Sprintf(" WHERE length(rtrim(%s, ' ')) > %d", column, most),
		pgerr.New(codes.StringDataRightTruncation, "value too long for type %s(%d)", to.Name(), most))
	cut, _ := pgerr.As(a.mayReplace(f)) // it is refused
	a.prove(fmt.Sprintf(" WHERE length(%s) > %d", column, most), cut)
	return nil
}

// mayReplace refuses to put another column in the place of one by which rows are found.
func (a *alteration) mayReplace(f schema.Field) error {
	why := ""
	switch {
	case slices.Contains(a.table.Current.Key, f.ID):
		why = "which is in the primary key"
	case slices.ContainsFunc(a.table.Indexes, func(x catalog.Index) bool { return x.Unique && x.Has(f.ID) }):
		why = "which is in a unique index"
	case slices.ContainsFunc(a.table.Foreign, func(k catalog.ForeignKey) bool { return slices.Contains(k.Fields, f.ID) }),
		len(a.context.referrers(a.table.Face(), func(k catalog.ForeignKey) bool { return slices.Contains(k.Refs, f.ID) })) > 0:
		why = "which is in a foreign key"
	case slices.ContainsFunc(a.context.Snapshot.Sequences(), func(q *sequence.Sequence) bool { return q.Table == a.table.Face() && q.Column == f.ID }):
		why = "which a sequence fills"
	default:
		return nil
	}
	return unsupported("computing column \"%s\", %s, anew is not supported", f.Name, why).
		WithHint("Drop that first, and add it afterwards.")
}

// Replace plans the last step: the new columns take the places of those that they were computed from.
func (r *Retyping) Replace(c *Context) (*Change, error) {
	a, _, err := c.alteredTable(r.of.Relation, false, "ALTER TABLE")
	if err != nil {
		return nil, err
	}
	for _, x := range r.columns {
		if err := a.replace(x); err != nil {
			return nil, err
		}
	}
	return a.done("table altered"), nil
}

func (a *alteration) replace(x retyped) error {
	old, err := a.find(x.name)
	if err != nil {
		return err
	}
	now, err := a.find(x.beside)
	if err != nil {
		return err
	}
	if err := a.proveReplaced(x, old); err != nil {
		return err
	}
	list, key := a.fields()
	at := a.table.Current.Index(old.ID)
	next := list[a.table.Current.Index(now.ID)]
	next.Name, next.NotNull = x.name, old.NotNull
	list = slices.DeleteFunc(list, func(f schema.NewField) bool { return f.Name == x.beside })
	list[at] = next
	if err := a.evolve(list, key); err != nil {
		return err
	}
	a.table.Current.Fields[at].AttNum = old.AttNum
	setText(&a.table.Comments, now.ID, a.table.Comments[old.ID])
	setText(&a.table.Comments, old.ID, "")
	for i := range a.table.Indexes {
		index := &a.table.Indexes[i]
		if at := slices.Index(index.Fields, old.ID); at >= 0 {
			index.Fields = slices.Clone(index.Fields)
			index.Fields[at] = now.ID
		}
		if at := slices.Index(index.Uses, old.ID); at >= 0 { // of one that is not unique
			index.Uses = slices.Clone(index.Uses)
			index.Uses[at] = now.ID
		}
	}
	object := right.Table(uint32(a.table.Face()))
	a.also = append(a.also, func(txn *catalog.Txn) error {
		e := txn.Rights().Edit()
		e.Change(object, func(x *right.Entry) {
			if list, ok := x.Columns[old.ID]; ok {
				delete(x.Columns, old.ID)
				x.Columns[now.ID] = list
			}
		})
		return txn.PutRights(e)
	})
	return a.replaceDefault(x, old.ID, now.ID)
}

// replaceDefault keeps the default, which must be one of the new type.
func (a *alteration) replaceDefault(x retyped, old, now int32) error {
	text := a.table.Defaults[old]
	setText(&a.table.Defaults, old, "")
	if text == "" {
		return nil
	}
	if !pgsql.Assigns(x.from, x.to) {
		return pgerr.New(codes.DatatypeMismatch, "default for column \"%s\" cannot be cast automatically to type %s", x.name, x.to.Name())
	}
	p, err := pgsql.Parse("SELECT " + text)
	if err != nil {
		return err
	}
	f, _ := a.table.Current.Field(now)
	of := schema.NewField{Name: f.Name, OID: f.OID, TypMod: f.TypMod, Type: f.Type}
	kept, err := defaultText(p.Node.GetSelectStmt().TargetList[0].GetResTarget().Val, &of, a.context.Env)
	setText(&a.table.Defaults, now, kept)
	return err
}

// proveReplaced asks the rows for what the old column was held to.
func (a *alteration) proveReplaced(x retyped, old schema.Field) error {
	if old.NotNull {
		e := pgerr.New(codes.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", x.name, a.table.Name)
		e.Column = x.name
		a.prove(" WHERE "+quote.NameIfNeeded(x.beside)+" IS NULL", e)
	}
	var columns []string
	for _, f := range a.table.Current.Fields {
		switch f.Name {
		case x.name:
			columns = append(columns, quote.NameIfNeeded(x.beside)+" AS "+quote.NameIfNeeded(x.name))
		case x.beside:
		default:
			columns = append(columns, quote.NameIfNeeded(f.Name))
		}
	}
	for _, k := range a.table.Checks {
		used, err := pgsql.CheckCondition(k.SQL, a.context.Env.WithUserTypes(RelationOf(a.table)), a.context.Env)
		if err != nil {
			return err
		}
		if slices.Contains(used, x.name) {
			a.proveCheck(k.Name, "SELECT 1 FROM (SELECT "+strings.Join(columns, ", ")+" FROM ONLY "+a.place()+") AS "+
				quote.NameIfNeeded(a.rel.Name)+" WHERE NOT ("+k.SQL+") LIMIT 1")
		}
	}
	return nil
}

// ErrorOf is an error of Update, as PostgreSQL has it of the statement.
func (r *Retyping) ErrorOf(err error) error {
	e, ok := pgerr.As(err)
	if !ok {
		return err
	}
	out := *e
	out.Position, out.Message = 0, strings.Replace(e.Message, "not allowed in UPDATE", "not allowed in transform expressions", 1)
	if e.Code != codes.DatatypeMismatch {
		return &out
	}
	for _, x := range r.columns {
		if strings.HasPrefix(e.Message, "column "+quote.Name(x.beside)+" is of type ") {
			return pgerr.New(codes.DatatypeMismatch, "result of USING clause for column \"%s\" cannot be cast automatically to type %s", x.name, x.to.Name()).
				WithHint("You might need to add an explicit cast.")
		}
	}
	return &out
}

func (a *alteration) setType(n *pg.AlterTableCmd) error {
	def := n.Def.GetColumnDef()
	f, err := a.find(n.Name)
	if err != nil {
		return err
	}
	t, err := a.context.columnType(def.TypeName)
	if err != nil {
		return err
	}
	to, err := newField(f.Name, t)
	if err != nil {
		return err
	}
	from := pgsql.Type{OID: f.OID, Mod: f.TypMod}
	same := t.User != nil && f.Enum && f.OID == t.OID && def.CollClause == nil
	switch {
	case same && (def.RawDefault == nil || a.context.itself(def.RawDefault, n.Name, t)):
		return a.unusedInViews(n.Name)
	case def.RawDefault != nil && !a.context.itself(def.RawDefault, n.Name, t):
		return unsupported("USING in ALTER COLUMN … TYPE is not supported here").WithHint("Add another column, UPDATE it, then drop this one.")
	case a.narrows(n, f, t):
		if err := a.proveFits(f, t); err != nil {
			return err
		}
	case !widens(from, t) || !schema.Widens(f.Type, to.Type):
		return unsupported("changing the type of column \"%s\" from %s to %s is not supported", n.Name, from.Name(), t.Name()).
			WithHint("A type can become one that has all its values. Else add another column, UPDATE it, then drop this one.")
	case slices.Contains(a.table.Current.Key, f.ID),
		slices.ContainsFunc(a.table.Indexes, func(x catalog.Index) bool { return x.Unique && slices.Contains(x.Fields, f.ID) }):
		if err := a.context.checkKeyType(to); err != nil {
			return err
		}
	}
	if at := slices.IndexFunc(a.table.Indexes, func(x catalog.Index) bool { return x.Unique && slices.Contains(x.Uses, f.ID) }); at >= 0 {
		return unsupported("changing the type of a column that unique index \"%s\" computes something of is not supported", a.table.Indexes[at].Name).
			WithHint("Drop the index, and make it again.")
	}
	if err := cmp.Or(a.notGenerated(f), a.unusedInViews(n.Name)); err != nil {
		return err
	}
	list, key := a.fields()
	for i := range list {
		if list[i].Name == n.Name {
			list[i].Type, list[i].OID, list[i].TypMod, list[i].TypeName = to.Type, to.OID, to.TypMod, ""
			if err := a.context.collate(&list[i], def, t); err != nil {
				return err
			}
		}
	}
	if err := a.evolve(list, key); err != nil {
		return err
	}
	return a.retyped(f)
}

// collate gives a column the collation that it is defined with, or the default.
func (c *Context) collate(f *schema.NewField, n *pg.ColumnDef, t pgsql.Type) (err error) {
	f.Collation = 0
	if n.CollClause != nil {
		f.Collation, err = pgsql.ResolveCollation(n.CollClause, t, c.SQL, c.Env)
	}
	return err
}

// widens says whether every value of a type is, as it is, one of another.
func widens(from, to pgsql.Type) bool {
	length := from.OID == to.OID && (to.Mod < 0 || from.Mod >= 0 && to.Mod >= from.Mod)
	switch from.OID {
	case pgsql.OIDInt2:
		return to.OID == pgsql.OIDInt2 || to.OID == pgsql.OIDInt4 || to.OID == pgsql.OIDInt8
	case pgsql.OIDInt4:
		return to.OID == pgsql.OIDInt4 || to.OID == pgsql.OIDInt8
	case pgsql.OIDFloat4:
		return to.OID == pgsql.OIDFloat4 || to.OID == pgsql.OIDFloat8
	case pgsql.OIDVarchar:
		return length || to.OID == pgsql.OIDText
	case pgsql.OIDText:
		return to.OID == pgsql.OIDText || to.OID == pgsql.OIDVarchar && to.Mod < 0
	case pgsql.OIDNumeric:
		return to.OID == pgsql.OIDNumeric // the lake's types decide
	}
	return from == to
}
