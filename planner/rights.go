package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/allow"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/grant"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/temp"
	"github.com/skipprd/skipprd/wal/change"
)

// book is the roles and rights as the session sees them: the newest, whatever the moment that
// its transaction reads, with what the transaction has changed.
func (s *session) book() *right.Book {
	if s.temp != nil || len(s.tx.defined)+len(s.tx.rights) > 0 {
		snap, release := s.now()
		defer release()
		return snap.Rights()
	}
	return s.engine.deps.Catalog.Rights()
}

// authorized is the role that the session acts for unless SET ROLE says otherwise.
func (s *session) authorized() string { return s.values.Value("session_authorization") }

// user is the role whose rights the session has.
func (s *session) user() string {
	if s.acts != 0 {
		return s.book().Name(s.acts)
	}
	if r := s.values.Value("role"); r != "none" && r != "" {
		return r
	}
	return s.authorized()
}

// nobody is no role's id: it has the rights of PUBLIC alone.
const nobody = ^uint32(0)

// who are the session's roles, by their ids in a book.
func (s *session) who(b *right.Book) grant.Who {
	id := func(name string) uint32 {
		r := b.Named(name)
		if r == nil || s.became[name] != r.OID { // or another of that name
			return nobody
		}
		return r.OID
	}
	if s.acts != 0 {
		return grant.Who{Session: id(s.authorized()), Current: s.acts}
	}
	return grant.Who{Session: id(s.authorized()), Current: id(s.user())}
}

// mayRead refuses a query of what the session's role may not read. It asks each time that the
// query runs: rights change.
func (s *session) mayRead(a *pgsql.Analysis) error {
	for _, u := range a.Uses {
		if u.Relation.Unpopulated {
			return pgerr.New(codes.ObjectNotInPrerequisiteState, "materialized view \"%s\" has not been populated", u.Relation.Name).
				WithHint("Use the REFRESH MATERIALIZED VIEW command.")
		}
	}
	if len(a.Views) > 0 && strings.Contains(s.values.Value("restrict_nonsystem_relation_kind"), "view") { // as pg_dump asks
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "access to non-system view \"%s\" is restricted", a.Views[0].Relation.Name)
	}
	b := s.book()
	role := s.who(b).Current
	if b.Superuser(role) && len(a.Views) == 0 {
		return nil
	}
	of := func(via uint32) uint32 {
		return allow.ActsFor(b, role, via, slices.ContainsFunc(a.Views, func(v *pgsql.ViewUse) bool { return v.Relation.OID == via && v.Relation.SecurityInvoker }))
	}
	for _, v := range a.Views {
		if r := of(v.Via); !b.Superuser(r) {
			if err := s.mayUseView(b, r, v); err != nil {
				return err
			}
		}
	}
	for _, u := range a.Uses {
		if r := of(u.Via); !b.Superuser(r) {
			if err := s.mayUse(b, r, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayUseView refuses one use of a view. That a view's owner may enter the schemas of what it
// names was asked when it was made.
func (s *session) mayUseView(b *right.Book, role uint32, v *pgsql.ViewUse) error {
	if v.Via == 0 {
		if err := s.mayEnter(b, role, v.Relation.Schema); err != nil {
			return err
		}
	}
	o, denied := allow.Object(v.Relation), allow.Denied(v.Relation)
	if len(v.Columns) == 0 && !v.Target && !b.HasAnyColumn(role, o, right.Select) {
		return denied
	}
	return allow.Columns(b, role, v.Relation, right.Select, v.Columns)
}

// firstViewOID is where PostgreSQL's own views are numbered from, behind its tables.
const firstViewOID = 12000

// mayUse refuses one use of a relation.
func (s *session) mayUse(b *right.Book, role uint32, u *pgsql.Use) error {
	rel := u.Relation
	function, isFunction := strings.CutSuffix(rel.Name, "()")
	hidden := rel.System && !u.Inner && rel.Schema == "pg_catalog" && right.HiddenRelation(function)
	if hidden && isFunction {
		return pgerr.New(codes.InsufficientPrivilege, "permission denied for function %s", function)
	}
	if rel.OID == 0 || rel.Schema == "" { // rows that the statement itself brings
		return nil
	}
	if rel.System {
		switch {
		case !hidden || b.Has(role, allow.Object(rel), right.Select) != 0:
		case rel.OID >= firstViewOID:
			return pgerr.New(codes.InsufficientPrivilege, "permission denied for view %s", rel.Name)
		default:
			return allow.Denied(rel)
		}
		return nil
	}
	if u.Via == 0 {
		if err := s.mayEnter(b, role, rel.Schema); err != nil {
			return err
		}
	}
	columns := u.Reads
	if !u.Target {
		columns = nil
		for _, c := range u.Columns {
			if !c.Added {
				columns = append(columns, c.Index)
			}
		}
	}
	o := allow.Object(rel)
	if len(columns) == 0 && !u.Target && !b.HasAnyColumn(role, o, right.Select) {
		return allow.Denied(rel)
	}
	return allow.Columns(b, role, rel, right.Select, columns)
}

// mayEnter refuses a schema that the role may not use.
func (s *session) mayEnter(b *right.Book, role uint32, schema string) error {
	if s.temp != nil && schema == temp.SchemaName(s.startup.PID) { // it is the session's
		return nil
	}
	if oid, ok := s.schemaOID(schema); ok && b.Has(role, right.Object{Class: right.Schema, ID: oid}, right.Usage) == 0 {
		return pgerr.New(codes.InsufficientPrivilege, "permission denied for schema %s", schema)
	}
	return nil
}

// mayWrite refuses a statement that writes what the session's role may not, or, through a view,
// what the view's owner may not.
func (s *session) mayWrite(w *pgsql.Write, word string) error {
	b := s.book()
	role := s.who(b).Current
	if b.Superuser(role) && len(w.Through) == 0 {
		return nil
	}
	if err := s.mayEnter(b, role, w.Named().Schema); err != nil {
		return err
	}
	err := allow.Write(b, role, w, word)
	if c := w.Conflict; c != nil && err == nil && c.Update != nil {
		err = s.mayRead(c.Update)
	}
	for _, a := range []*pgsql.Analysis{w.Rows, w.Returning} {
		if a != nil && err == nil {
			err = s.mayRead(a)
		}
	}
	if w.CheckOption != nil && err == nil {
		err = s.mayRead(w.CheckOption.Rows)
	}
	return err
}

// mayTable refuses a table that the role does not have a privilege on.
func (s *session) mayTable(rel *pgsql.Relation, want right.Set) error {
	b := s.book()
	role := s.who(b).Current
	if err := s.mayEnter(b, role, rel.Schema); err != nil {
		return err
	}
	if b.Has(role, right.Object{Class: right.Relation, ID: rel.OID}, want) != want {
		return allow.Denied(rel)
	}
	return nil
}

// mayLock refuses LOCK TABLE in a mode, as PostgreSQL numbers them: who may not change a table
// must not keep others from it.
func (s *session) mayLock(rel *pgsql.Relation, mode int32) error {
	b := s.book()
	role := s.who(b).Current
	if err := s.mayEnter(b, role, rel.Schema); err != nil {
		return err
	}
	may := right.Update | right.Delete | right.Truncate
	switch mode {
	case 1: // ACCESS SHARE
		may = right.Select
	case 3: // ROW EXCLUSIVE
		may |= right.Insert
	}
	if b.Has(role, right.Object{Class: right.Relation, ID: rel.OID}, may) == 0 {
		return allow.Denied(rel)
	}
	return nil
}

// schemaOID finds a schema, system schemas too.
func (s *session) schemaOID(name string) (uint32, bool) {
	snap, release := s.now()
	defer release()
	return SchemaOID(snap, name)
}

// SchemaOID is the pg_namespace oid of a schema.
func SchemaOID(snap *catalog.Snapshot, name string) (uint32, bool) {
	if oid, ok := systemSchemas[name]; ok {
		return oid, true
	}
	sc, err := snap.Schema(name)
	if err != nil {
		return 0, false
	}
	return sc.OID, true
}

// systemSchemas are those that the server fills itself.
var systemSchemas = map[string]uint32{"pg_catalog": 11, "information_schema": 13000, "skippr": 13001}

// prepareRights prepares a statement on roles and rights; nil when it is none.
func (s *session) prepareRights(n *pg.Node) pgwire.Statement {
	p, ok := s.world().Prepare(n)
	if !ok {
		return nil
	}
	return &utility{session: s, run: func(_ context.Context, sink pgwire.Sink) (*result, error) {
		op, err := p.Resolve()
		if err != nil {
			return nil, err
		}
		return &result{tag: p.Tag}, s.changeRights(op, sink)
	}}
}

// changeRights makes a change of rights part of the transaction.
func (s *session) changeRights(op grant.Op, sink pgwire.Sink) error {
	switch {
	case s.values.Value("transaction_read_only") == "on":
		return pgerr.New(codes.ReadOnlySQLTransaction, "cannot change roles and privileges in a read-only transaction")
	}
	editor := s.book().Edit()
	who := s.who(editor.Book)
	bound := func(e *right.Editor, _ grant.Who, notice func(*pgerr.Error)) error { return op(e, who, notice) }
	var told error
	if err := bound(editor, who, func(e *pgerr.Error) { told = errors.Join(told, s.notice(sink, e)) }); err != nil {
		return err
	}
	s.tx.rights = append(slices.Clip(s.tx.rights), bound)
	s.redefined()
	return told
}

// applyRights makes the transaction's changes of rights, all of them or none, on what there is.
func (t *transaction) applyRights(txn *catalog.Txn) error {
	if len(t.rights) == 0 {
		return nil
	}
	e := txn.Rights().Edit()
	for _, op := range t.rights {
		if err := op(e, grant.Who{}, nil); err != nil {
			return err
		}
	}
	return txn.PutRights(e)
}

// commitRights makes the changes of a transaction that defines nothing durable: they are made
// anew on what others have committed since.
func (s *session) commitRights(ctx context.Context) error {
	switch {
	case len(s.tx.rights) == 0:
		return nil
	case s.tx.changes != nil && !s.tx.changes.Empty(), s.tx.defines(): // which commits them with it
		return nil
	}
	err := s.engine.deps.Catalog.Update(ctx, s.tx.applyRights)
	if _, ok := pgerr.As(err); err != nil && !ok {
		err = fmt.Errorf("commit roles and privileges: %w", err)
	}
	return err
}

// as has a change of definitions done within the rights of the session's role, whose what it
// makes is.
func (s *session) as(c *define.Change) {
	role := s.who(s.book()).Current
	within := func(apply func(*catalog.Txn) error) func(*catalog.Txn) error {
		if apply == nil {
			return nil
		}
		return func(txn *catalog.Txn) error {
			txn.As(role)
			defer txn.As(0)
			err := apply(txn)
			var denied *catalog.DeniedError
			if errors.As(err, &denied) {
				return pgerr.New(codes.InsufficientPrivilege, "%s", denied.Message)
			}
			return err
		}
	}
	c.Apply, c.Session = within(c.Apply), within(c.Session)
}

// world finds what statements on rights name.
func (s *session) world() grant.World {
	d := &s.engine.deps
	return grant.World{
		Database: d.Database, Verifier: d.Catalog.NewSCRAMVerifier,
		NextOID: func() (oid uint32, err error) {
			err = d.Catalog.Update(context.Background(), func(t *catalog.Txn) error {
				oid = t.NextOID()
				return nil
			})
			return oid, err
		},
		Relation: s.grantRelation, Relations: s.relationsIn,
		Schema: func(name string) (uint32, error) {
			oid, ok := s.schemaOID(name)
			if !ok {
				return 0, pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", name)
			}
			return oid, nil
		},
		Describe: s.describe, Setting: s.roleSetting, Type: s.grantType,
	}
}

// grantType finds a type for statements on rights.
func (s *session) grantType(names []*pg.Node) (grant.Target, error) {
	t, err := s.typeOf(&pg.TypeName{Names: slices.Clone(names), Typemod: -1, Location: -1})
	if err != nil {
		return grant.Target{}, err
	}
	if t.User == nil {
		return grant.Target{}, pgerr.New(codes.FeatureNotSupported, "privileges and owners of type %s are not supported", t.Name())
	}
	return grant.Target{Object: right.Object{Class: right.Type, ID: t.OID}, Name: t.User.Name}, nil
}

func (s *session) grantRelation(n *pg.RangeVar) (grant.Relation, error) {
	snap, release := s.now()
	defer release()
	names := s.namesOf(snap)
	rel, err := pgsql.FindRelation(n, s.env(names))
	if err != nil {
		return grant.Relation{}, hintElsewhere(err, names)
	}
	if names.temp != "" && rel.Schema == names.temp {
		return grant.Relation{}, pgerr.New(codes.FeatureNotSupported, "privileges and owners of temporary relations are not supported").
			WithDetail("Other sessions do not see \"%s\".", rel.Name)
	}
	out := grantable(rel)
	for _, q := range snap.Sequences() {
		switch t, err := snap.TableByFace(q.Table); {
		case err != nil || q.Table == 0:
		case right.SequenceOf(uint32(q.ID)) == out.Object:
			out.Linked = t.Name
		case right.Table(uint32(t.Face())) == out.Object:
			out.Owned = append(out.Owned, right.SequenceOf(uint32(q.ID)))
		}
	}
	return out, nil
}

// grantable describes a relation to statements on rights.
func grantable(rel *pgsql.Relation) grant.Relation {
	out := grant.Relation{
		Object: allow.Object(rel), Name: rel.Name, System: rel.System, View: rel.View != "",
		Columns: map[string]int32{},
	}
	for i, c := range rel.Columns {
		out.Columns[c.Name] = c.FieldID
		if rel.System {
			out.Columns[c.Name] = int32(i + 1)
		}
	}
	return out
}

func (s *session) relationsIn(schema uint32) (out []grant.Relation) {
	snap, release := s.now()
	defer release()
	for key, rel := range s.namesOf(snap).tables {
		if oid, ok := SchemaOID(snap, key[0]); ok && oid == schema {
			out = append(out, grantable(rel))
		}
	}
	slices.SortFunc(out, func(a, b grant.Relation) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// prepareOwnRights prepares GRANT, REVOKE and OWNER TO of pipelines, connections and secrets;
// nil for any other statement.
func (s *session) prepareOwnRights(st ddl.Statement) (pgwire.Statement, error) {
	var resolve func() (grant.Op, error)
	switch st := st.(type) {
	case *ddl.Grant:
		p, err := pgsql.Parse(st.SQL)
		if err != nil {
			return nil, err
		}
		n := p.Node.GetGrantStmt()
		if n == nil || n.Targtype != pg.GrantTargetType_ACL_TARGET_OBJECT {
			return nil, pgerr.New(codes.Syntax, "GRANT and REVOKE are on named objects")
		}
		resolve = func() (grant.Op, error) { return s.grantOnOwn(st.Object, n) }
	case *ddl.SetOwner:
		resolve = func() (grant.Op, error) { return s.ownOwner(st) }
	default:
		return nil, nil
	}
	return &utility{session: s, run: func(_ context.Context, sink pgwire.Sink) (*result, error) {
		op, err := resolve()
		if err != nil {
			return nil, err
		}
		return &result{tag: st.Tag()}, s.changeRights(op, sink)
	}}, nil
}

// ownObject finds a pipeline, connection or secret.
func ownObject(snap *catalog.Snapshot, kind, name string) (right.Object, error) {
	var err error
	o := right.Object{Class: right.Secret, Name: name}
	switch kind {
	case "pipeline":
		var p *catalog.Pipeline
		if p, err = snap.Pipeline(name); err == nil {
			return right.Object{Class: right.Pipeline, ID: uint32(p.ID)}, nil
		}
	case "connection":
		o.Class = right.Connection
		_, err = snap.Connection(name)
	default:
		_, err = snap.Secret(name)
	}
	if err != nil {
		return o, pgerr.New(codes.UndefinedObject, "%s \"%s\" does not exist", kind, name)
	}
	return o, nil
}

func (s *session) grantOnOwn(kind string, n *pg.GrantStmt) (grant.Op, error) {
	snap, release := s.now()
	defer release()
	r := grant.Request{
		Grant: n.IsGrant, Option: n.GrantOption, Cascade: n.Behavior == pg.DropBehavior_DROP_CASCADE, Grantees: n.Grantees, Grantor: n.Grantor,
	}
	for _, item := range n.Objects {
		name := item.GetString_().GetSval()
		o, err := ownObject(snap, kind, name)
		if err != nil {
			return nil, err
		}
		r.Targets = append(r.Targets, grant.Target{Object: o, Name: name})
	}
	if err := r.SetPrivileges(r.Targets[0].Object.Class, n.Privileges); err != nil {
		return nil, err
	}
	return r.Op(), nil
}

// ownOwner is OWNER TO: of a pipeline also of its tables and their schemas, as far as they
// are its owner's.
func (s *session) ownOwner(st *ddl.SetOwner) (grant.Op, error) {
	snap, release := s.now()
	defer release()
	o, err := ownObject(snap, strings.ToLower(st.Object), st.Name)
	if err != nil {
		return nil, err
	}
	to := &pg.RoleSpec{Roletype: pg.RoleSpecType_ROLESPEC_CSTRING, Rolename: st.To}
	switch {
	case st.Quoted:
	case st.To == "current_user", st.To == "current_role":
		to.Roletype = pg.RoleSpecType_ROLESPEC_CURRENT_USER
	case st.To == "session_user":
		to.Roletype = pg.RoleSpecType_ROLESPEC_SESSION_USER
	}
	var with []right.Object
	if o.Class == right.Pipeline {
		for _, t := range snap.Tables(change.PipelineID(o.ID)) {
			with = append(with, right.Table(uint32(t.Face())))
			if oid, ok := SchemaOID(snap, t.Schema); ok {
				with = append(with, right.Object{Class: right.Schema, ID: oid})
			}
		}
	}
	own := grant.SetOwner(o, st.Name, to)
	return func(e *right.Editor, who grant.Who, notice func(*pgerr.Error)) error {
		before := e.Owner(o)
		if err := own(e, who, notice); err != nil {
			return err
		}
		for _, x := range with {
			if e.Owner(x) == before {
				e.SetOwner(x, e.Owner(o))
			}
		}
		return nil
	}, nil
}

// mayInclude refuses a change that include would refuse, before proofs tell of rows. One with a new key
// can be included only once these are in the lake.
func (s *session) mayInclude(c *define.Change) error {
	if len(c.Proofs) == 0 || c.Rekeyed != 0 {
		return nil
	}
	draft, err := s.engine.deps.Catalog.Draft(func(txn *catalog.Txn) error {
		if err := s.draft(txn); err != nil {
			return err
		}
		return c.Draft(txn)
	})
	if err == nil {
		draft.Close()
	}
	return err
}
