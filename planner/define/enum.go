package define

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// labelBytesMax is how long a label may be; labelsMax how many a type may have.
const (
	labelBytesMax = 63
	labelsMax     = 10_000
)

func qualifiedName(schemaName, name string) string {
	return quote.NameIfNeeded(schemaName) + "." + quote.NameIfNeeded(name)
}

// TypeOf describes a type that users have made to the analysis.
func TypeOf(e *usertype.Type) *pgsql.UserType {
	out := &pgsql.UserType{OID: e.OID(), Schema: e.Schema, Name: e.Name, Kind: kinds[e.Kind], Labels: e.Labels, Length: 4, Array: e.ArrayOID()}
	if s := e.Source; s != nil {
		if s.ArrayOID == 0 {
			out.Array = 0
		}
		out.Foreign, out.Former, out.Length, out.Composite, out.JSON = true, s.Former, s.Length, s.Composite, s.Composite || s.JSON
	}
	return out
}

var kinds = map[usertype.Kind]pgsql.UserKind{
	usertype.Folded: pgsql.Folded, usertype.Canonical: pgsql.Canonical, usertype.Opaque: pgsql.Opaque,
}

// userField is a column of a type that users have made.
func userField(name string, t pgsql.Type) *schema.NewField {
	f := &schema.NewField{
		Name: name, OID: t.OID, TypMod: t.Mod, Enum: true, Type: schema.Type{Kind: schema.String},
		TypeName: qualifiedName(t.User.Schema, t.User.Name),
	}
	if t.User.Elem != nil {
		f.TypeName += "[]"
	}
	return f
}

// columnType is the type of a column that is made, which the role may use.
func (c *Context) columnType(n *pg.TypeName) (pgsql.Type, error) {
	t, err := c.Env.ResolveType(n)
	if err != nil || t.User == nil {
		return t, err
	}
	user := t.User
	if user.Elem != nil {
		user = user.Elem
	}
	book := c.Snapshot.Rights()
	r := book.Named(c.Env.User)
	if r == nil || !r.Superuser && book.Has(r.OID, right.Object{Class: right.Type, ID: user.OID}, right.Usage) == 0 {
		return t, pgerr.New(codes.InsufficientPrivilege, "permission denied for type %s", user.Name)
	}
	return t, nil
}

func checkLabel(e *usertype.Type, label string) error {
	switch {
	case len(label) > labelBytesMax:
		return pgerr.New(codes.InvalidName, "invalid enum label \"%s\"", label).WithDetail("Labels must be %d bytes or less.", labelBytesMax)
	case e.Has(label):
		return pgerr.New(codes.DuplicateObject, "enum label \"%s\" already exists", label)
	case len(e.Labels) >= labelsMax:
		return pgerr.New(codes.ProgramLimitExceeded, "an enumerated type has at most %d labels", labelsMax)
	}
	return nil
}

// createEnum plans CREATE TYPE … AS ENUM.
func (c *Context) createEnum(n *pg.CreateEnumStmt) (*Change, error) {
	r := rangeVar(&pg.Node{Node: &pg.Node_List{List: &pg.List{Items: n.TypeName}}})
	schemaName, _, err := c.newName(r)
	if err != nil {
		return nil, err
	}
	if c.isTemp(schemaName) {
		return nil, unsupported("temporary types are not supported")
	}
	e := &usertype.Type{Schema: schemaName, Name: r.Relname}
	if c.typeTaken(schemaName, r.Relname) {
		return nil, pgerr.New(codes.DuplicateObject, "type \"%s\" already exists", r.Relname)
	}
	for _, v := range n.Vals {
		label := v.GetString_().GetSval()
		if err := checkLabel(e, label); err != nil {
			if er, ok := pgerr.As(err); ok && er.Code == codes.DuplicateObject {
				return nil, pgerr.New(codes.UniqueViolation, "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"")
			}
			return nil, err
		}
		e.Labels = append(e.Labels, label)
	}
	if _, e.ID, err = c.Reserve(); err != nil {
		return nil, err
	}
	return &Change{Tag: "CREATE TYPE", Apply: func(txn *catalog.Txn) error {
		if _, err := txn.TypeByName(e.Schema, e.Name); err == nil {
			return pgerr.New(codes.DuplicateObject, "type \"%s\" already exists", e.Name)
		}
		return cmp.Or(hasSchema(txn, e.Schema), txn.PutType(e))
	}}, nil
}

// typeTaken says whether there is a type of a name, that of a table's rows among them.
func (c *Context) typeTaken(schemaName, name string) bool {
	if _, err := c.Snapshot.TypeByName(schemaName, name); err == nil {
		return true
	}
	rel, ok := c.Env.Resolver.Relation(schemaName, name)
	return ok && !rel.Sequence
}

// enumType finds the enumerated type that names mean.
func (c *Context) enumType(names []*pg.Node) (*usertype.Type, error) {
	n := &pg.TypeName{Names: slices.Clone(names), Typemod: -1, Location: -1}
	var list []string
	for _, x := range names {
		list = append(list, x.GetString_().GetSval())
	}
	t, err := c.Env.ResolveType(n)
	if err != nil {
		return nil, err
	}
	if t.User == nil {
		return nil, unsupported("changing type \"%s\" is not supported", strings.Join(list, "."))
	}
	e, err := c.Snapshot.TypeByName(t.User.Schema, t.User.Name)
	if err == nil && e.Source != nil && e.Source.Pipeline != 0 {
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is a type of a pipeline's source", e.Name).WithHint("Change it at the source.")
	}
	return e, err
}

// alterEnum plans ALTER TYPE … ADD VALUE.
func (c *Context) alterEnum(n *pg.AlterEnumStmt) (*Change, error) {
	e, err := c.enumType(n.TypeName)
	if err != nil {
		return nil, err
	}
	if err := c.mustOwn(e); err != nil {
		return nil, err
	}
	if e.Source != nil {
		return nil, unsupported("changing type \"%s\", which a pipeline had, is not supported", e.Name)
	}
	if n.OldVal != "" {
		return nil, unsupported("ALTER TYPE … RENAME VALUE is not supported").
			WithDetail("Rows have the label's text.").WithHint("Add another value, UPDATE the rows, and leave this one.")
	}
	out := &Change{Tag: "ALTER TYPE"}
	change := func(e *usertype.Type) (*usertype.Type, error) {
		next := e.Clone()
		if err := checkLabel(next, n.NewVal); err != nil {
			return nil, err
		}
		if err := next.Add(n.NewVal, n.NewValNeighbor, n.NewValIsAfter); errors.Is(err, usertype.ErrNoLabel) {
			return nil, pgerr.New(codes.InvalidParameterValue, "\"%s\" is not an existing enum label", n.NewValNeighbor)
		}
		return next, nil
	}
	if e.Has(n.NewVal) && n.SkipIfNewValExists {
		out.Notices = append(out.Notices, notice(codes.DuplicateObject, "enum label \"%s\" already exists, skipping", n.NewVal))
		return out, nil
	}
	if _, err := change(e); err != nil {
		return nil, err
	}
	out.Apply = func(txn *catalog.Txn) error {
		found, err := txn.TypeByName(e.Schema, e.Name)
		if err != nil {
			return gone(err, "type", e.Name)
		}
		next, err := change(found)
		if err != nil {
			return err
		}
		return txn.PutType(next)
	}
	return out, nil
}

// mustOwn refuses to change a type of another role's.
func (c *Context) mustOwn(e *usertype.Type) error {
	book := c.Snapshot.Rights()
	if r := book.Named(c.Env.User); r == nil || !book.Owns(r.OID, right.Object{Class: right.Type, ID: e.OID()}) {
		return pgerr.New(codes.InsufficientPrivilege, "must be owner of type %s", e.Name)
	}
	return nil
}

// dropTypes plans DROP TYPE.
func (c *Context) dropTypes(n *pg.DropStmt) (*Change, error) {
	out := &Change{Tag: "DROP TYPE"}
	var going []object
	for _, o := range n.Objects {
		e, err := c.enumType(o.GetTypeName().GetNames())
		if er, ok := pgerr.As(err); ok && n.MissingOk && (er.Code == codes.UndefinedObject || er.Code == codes.InvalidSchemaName) {
			out.Notices = append(out.Notices, notice(codes.SuccessfulCompletion, "%s, skipping", er.Message))
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := c.mustOwn(e); err != nil {
			return nil, err
		}
		if users := enumUsers(c.Snapshot, e); len(users) > 0 {
			err := pgerr.New(codes.DependentObjectsStillExist, "cannot drop type %s because other objects depend on it", TypeOf(e).SQLName()).
				WithDetail("%s", strings.Join(users, "\n"))
			if n.Behavior == pg.DropBehavior_DROP_CASCADE {
				return nil, unsupported("DROP TYPE … CASCADE of a type that is in use is not supported").WithDetail("%s", err.Detail).
					WithHint("Drop what depends on it before.")
			}
			return nil, err.WithHint("Drop what depends on it before.")
		}
		going = append(going, object{kind: "type", schema: e.Schema, name: e.Name, id: e.ID})
	}
	if len(going) > 0 {
		out.Apply = dropAll(going)
	}
	return out, nil
}

// typeReader is what a transaction and a snapshot have in common here.
type typeReader interface {
	TypeUsers(e *usertype.Type) []catalog.TypeUser
}

// enumUsers says what is of a type, or names it.
func enumUsers(r typeReader, e *usertype.Type) []string {
	var out []string
	shown := TypeOf(e).SQLName()
	for _, u := range r.TypeUsers(e) {
		of := shown
		if u.Array {
			of += "[]"
		}
		out = append(out, strings.TrimLeft(u.Part+" "+u.Relation, " ")+" depends on type "+of)
	}
	return out
}

// dropEnum drops a type that nothing is of any more.
func dropEnum(txn *catalog.Txn, schemaName, name string) error {
	e, err := txn.TypeByName(schemaName, name)
	if err != nil {
		return gone(err, "type", name)
	}
	if users := enumUsers(txn, e); len(users) > 0 {
		return pgerr.New(codes.DependentObjectsStillExist, "cannot drop type %s because other objects depend on it", TypeOf(e).SQLName()).
			WithDetail("%s", strings.Join(users, "\n"))
	}
	return txn.DeleteType(schemaName, name)
}

// commentType plans COMMENT ON TYPE.
func (c *Context) commentType(n *pg.CommentStmt) (*Change, error) {
	e, err := c.enumType(n.Object.GetTypeName().GetNames())
	if err != nil {
		return nil, err
	}
	return &Change{Tag: "COMMENT", Apply: func(txn *catalog.Txn) error {
		found, err := txn.TypeByName(e.Schema, e.Name)
		if err != nil {
			return gone(err, "type", e.Name)
		}
		next := found.Clone()
		next.Comment = n.Comment
		return txn.PutType(next)
	}}, nil
}

// renameType plans ALTER TYPE … RENAME TO: what is kept as SQL casts to the type by its name.
func (c *Context) renameType(n *pg.RenameStmt) (*Change, error) {
	e, err := c.enumType(n.Object.GetList().GetItems())
	if err != nil {
		return nil, err
	}
	if err := c.mustOwn(e); err != nil {
		return nil, err
	}
	switch {
	case e.Source != nil:
		return nil, unsupported("changing type \"%s\", which a pipeline had, is not supported", e.Name)
	case c.typeTaken(e.Schema, n.Newname):
		return nil, pgerr.New(codes.DuplicateObject, "type \"%s\" already exists", n.Newname)
	}
	out := &Change{Tag: "ALTER TYPE"}
	from, to := pgsql.RelationName{Schema: e.Schema, Name: e.Name}, pgsql.RelationName{Schema: e.Schema, Name: n.Newname}
	for _, t := range c.Snapshot.AllTables() {
		next, err := namedAnew(t, e, from, to)
		if err != nil {
			return nil, err
		}
		if next != nil && t.Temp == "" {
			out.Alters = append(out.Alters, t.Face())
		}
	}
	out.Apply = func(txn *catalog.Txn) error {
		found, err := txn.TypeByName(from.Schema, from.Name)
		if err != nil {
			return gone(err, "type", e.Name)
		}
		if _, err := txn.TypeByName(to.Schema, to.Name); err == nil {
			return pgerr.New(codes.DuplicateObject, "type \"%s\" already exists", to.Name)
		}
		renamed := found.Clone()
		renamed.Name = to.Name
		if err := cmp.Or(free(txn, to.Schema, to.Name), txn.DeleteType(from.Schema, from.Name), txn.PutType(renamed)); err != nil {
			return err
		}
		return renameTypeInUse(txn, found, from, to)
	}
	return out, nil
}

// renameTypeInUse has tables and views name a type anew.
func renameTypeInUse(txn *catalog.Txn, e *usertype.Type, from, to pgsql.RelationName) error {
	for _, t := range txn.AllTables() {
		next, err := namedAnew(t, e, from, to)
		if err == nil && next != nil {
			err = txn.PutTable(next)
		}
		if err != nil {
			return err
		}
	}
	for _, v := range txn.Queries() {
		sql, named, err := pgsql.RenameType(v.SQL, from, to)
		if err == nil && named {
			err = txn.RewordView(v.Schema, v.Name, sql)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namedAnew is a table of our own with the new name of a type, nil for one that does not name it.
func namedAnew(t *catalog.Table, e *usertype.Type, from, to pgsql.RelationName) (*catalog.Table, error) {
	if !t.Own {
		return nil, nil
	}
	next, changed := t.Clone(), false
	var failed error
	anew := func(sql string) string {
		out, named, err := pgsql.RenameType(sql, from, to)
		failed = cmp.Or(failed, err)
		changed = changed || named
		return out
	}
	for id, text := range t.Defaults {
		setText(&next.Defaults, id, anew(text))
	}
	for id, text := range t.Generated {
		setText(&next.Generated, id, anew(text))
	}
	next.Checks = slices.Clone(t.Checks)
	for i := range next.Checks {
		next.Checks[i].SQL = anew(next.Checks[i].SQL)
	}
	next.Indexes = slices.Clone(t.Indexes)
	for i := range next.Indexes {
		x := &next.Indexes[i]
		x.Predicate, x.Definition = anew(x.Predicate), anew(x.Definition)
		x.Expressions = slices.Clone(x.Expressions)
		for j := range x.Expressions {
			x.Expressions[j].SQL = anew(x.Expressions[j].SQL)
		}
	}
	for _, f := range t.Current.Fields {
		if f.Enum && (f.OID == e.OID() || f.OID == e.ArrayOID()) {
			changed = true
		}
	}
	if failed != nil || !changed {
		return nil, failed
	}
	return next, nameFields(next, e, to)
}

// nameFields gives the columns of a type its name.
func nameFields(t *catalog.Table, e *usertype.Type, to pgsql.RelationName) error {
	a := &alteration{table: t}
	list, key := a.fields()
	for i := range list {
		switch {
		case !list[i].Enum:
		case list[i].OID == e.OID():
			list[i].TypeName = qualifiedName(to.Schema, to.Name)
		case list[i].OID == e.ArrayOID():
			list[i].TypeName = qualifiedName(to.Schema, to.Name) + "[]"
		}
	}
	return a.evolve(list, key)
}
