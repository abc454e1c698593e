package grant

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Target is an object that privileges are granted on.
type Target struct {
	Object right.Object
	Name   string
	// Columns are the field ids of a relation's columns, by name.
	Columns map[string]int32
}

// Request is a GRANT or REVOKE on objects.
type Request struct {
	Grant bool
	// Privileges are on the objects; of Columns, by name, on columns.
	Privileges right.Set
	Columns    map[string]right.Set
	// All says that it named ALL, which leaves out what the grantor may not grant silently.
	All      bool
	Option   bool // WITH GRANT OPTION, or GRANT OPTION FOR
	Cascade  bool
	Grantees []*pg.Node
	Grantor  *pg.RoleSpec
	Targets  []Target
}

// objectWords name classes in errors.
var objectWords = map[right.Class]string{
	right.Relation: "table", right.Sequence: "sequence", right.Schema: "schema", right.Database: "database", right.Pipeline: "pipeline",
	right.Connection: "connection", right.Secret: "secret", right.Type: "type",
}

// SetPrivileges reads a privilege list into the request: names of privileges, each with
// columns or none; no list is ALL.
func (r *Request) SetPrivileges(class right.Class, list []*pg.Node) error {
	if len(list) == 0 {
		r.All, r.Privileges = true, class.All()
		return nil
	}
	for _, n := range list {
		p := n.GetAccessPriv()
		of := class.All()
		if len(p.Cols) > 0 {
			of = right.ColumnPrivileges
		}
		set := of
		if p.PrivName != "" {
			one, ok := right.SetOf(strings.ToUpper(p.PrivName))
			switch {
			case !ok:
				return pgerr.New(codes.Syntax, "unrecognized privilege type \"%s\"", p.PrivName)
			case len(p.Cols) > 0 && one&of == 0:
				return pgerr.New(codes.InvalidGrantOperation, "invalid privilege type %s for column", strings.ToUpper(p.PrivName))
			case one&of == 0:
				return pgerr.New(codes.InvalidGrantOperation, "invalid privilege type %s for %s", strings.ToUpper(p.PrivName), objectWords[class])
			}
			set = one
		}
		if len(p.Cols) == 0 {
			r.Privileges |= set
			continue
		}
		if class != right.Relation {
			return pgerr.New(codes.InvalidGrantOperation, "column privileges are only valid for relations")
		}
		for _, c := range p.Cols {
			if r.Columns == nil {
				r.Columns = map[string]right.Set{}
			}
			r.Columns[c.GetString_().GetSval()] |= set
		}
	}
	return nil
}

// grant is GRANT and REVOKE on objects.
func (w World) grant(n *pg.GrantStmt) (Op, error) {
	r := Request{
		Grant: n.IsGrant, Option: n.GrantOption, Cascade: n.Behavior == pg.DropBehavior_DROP_CASCADE, Grantees: n.Grantees, Grantor: n.Grantor,
	}
	class, err := w.targets(n, &r)
	if err != nil {
		return nil, err
	}
	if class == 0 { // kinds of objects that there are none of
		return func(*right.Editor, Who, func(*pgerr.Error)) error { return nil }, nil
	}
	if err := r.SetPrivileges(class, n.Privileges); err != nil {
		return nil, err
	}
	for _, t := range r.Targets {
		for c := range r.Columns {
			if _, ok := t.Columns[c]; !ok {
				return nil, pgerr.New(codes.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", c, t.Name)
			}
		}
	}
	return r.Op(), nil
}

// targets finds the objects of a GRANT.
func (w World) targets(n *pg.GrantStmt, r *Request) (right.Class, error) {
	if n.Targtype == pg.GrantTargetType_ACL_TARGET_ALL_IN_SCHEMA {
		class := map[pg.ObjectType]right.Class{pg.ObjectType_OBJECT_TABLE: right.Relation, pg.ObjectType_OBJECT_SEQUENCE: right.Sequence}[n.Objtype]
		for _, s := range n.Objects {
			oid, err := w.Schema(s.GetString_().GetSval())
			if err != nil {
				return 0, err
			}
			for _, rel := range w.Relations(oid) {
				if rel.Object.Class == class {
					r.Targets = append(r.Targets, Target(rel.target()))
				}
			}
		}
		return class, nil
	}
	for _, o := range n.Objects {
		switch n.Objtype {
		case pg.ObjectType_OBJECT_TABLE:
			rel, err := w.Relation(o.GetRangeVar())
			if err != nil {
				return 0, err
			}
			r.Targets = append(r.Targets, rel.target())
		case pg.ObjectType_OBJECT_SCHEMA:
			oid, err := w.Schema(o.GetString_().GetSval())
			if err != nil {
				return 0, err
			}
			r.Targets = append(r.Targets, Target{Object: right.Object{Class: right.Schema, ID: oid}, Name: o.GetString_().GetSval()})
		case pg.ObjectType_OBJECT_DATABASE:
			name := o.GetString_().GetSval()
			if name != w.Database {
				return 0, pgerr.New(codes.InvalidCatalogName, "database \"%s\" does not exist", name)
			}
			r.Targets = append(r.Targets, Target{Object: right.Object{Class: right.Database}, Name: name})
		case pg.ObjectType_OBJECT_TYPE:
			t, err := w.Type(o.GetList().GetItems())
			if err != nil {
				return 0, err
			}
			r.Targets = append(r.Targets, t)
		case pg.ObjectType_OBJECT_SEQUENCE:
			rel, err := w.Relation(o.GetRangeVar())
			if err != nil {
				return 0, err
			}
			if rel.Object.Class != right.Sequence {
				return 0, pgerr.New(codes.WrongObjectType, "\"%s\" is not a sequence", rel.Name)
			}
			r.Targets = append(r.Targets, rel.target())
		default:
			kind := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(n.Objtype.String(), "OBJECT_"), "_", " "))
			return 0, pgerr.New(codes.FeatureNotSupported, "GRANT and REVOKE on a %s are not supported", kind)
		}
	}
	return r.Targets[0].Object.Class, nil
}

func (r Relation) target() Target { return Target{Object: r.Object, Name: r.Name, Columns: r.Columns} }

// Op is the change that the request asks for.
func (r Request) Op() Op {
	return func(e *right.Editor, who Who, notice func(*pgerr.Error)) error {
		grantees, err := rolesOf(e, who, r.Grantees, true)
		if err != nil {
			return err
		}
		if r.Grantor != nil {
			by, err := roleOf(e, who, r.Grantor, false)
			if err != nil {
				return err
			}
			if by != who.Current {
				return pgerr.New(codes.FeatureNotSupported, "grantor must be current user")
			}
		}
		if r.Grant && r.Option && slices.Contains(grantees, right.Public) {
			return pgerr.New(codes.InvalidGrantOperation, "grant options can only be granted to roles")
		}
		for _, t := range r.Targets {
			if err := r.on(e, who, notice, t, grantees); err != nil {
				return err
			}
		}
		return nil
	}
}

// on changes the rights on one object.
func (r Request) on(e *right.Editor, who Who, notice func(*pgerr.Error), t Target, grantees []uint32) error {
	owner := e.Owner(t.Object)
	if r.Privileges != 0 {
		list := e.ACL(t.Object)
		grantor, may := e.Grantor(who.Current, owner, list, r.Privileges)
		if err := r.tell(e, who, notice, t, offer{may: may, want: r.Privileges}); err != nil {
			return err
		}
		list, err := r.apply(list, grantor, owner, may, grantees)
		if err != nil {
			return err
		}
		e.Change(t.Object, func(x *right.Entry) { x.Set, x.ACL = true, list })
	}
	columns := map[int32]right.Set{}
	for name, set := range r.Columns {
		columns[t.Columns[name]] |= set
	}
	if !r.Grant && t.Object.Class == right.Relation && r.Privileges&right.ColumnPrivileges != 0 {
		if x := e.Entry(t.Object); x != nil { // what the relation loses, its columns lose too
			for id := range x.Columns {
				columns[id] |= r.Privileges & right.ColumnPrivileges
			}
		}
	}
	return r.onColumns(e, who, notice, t, columns, grantees)
}

func (r Request) onColumns(e *right.Editor, who Who, notice func(*pgerr.Error), t Target, columns map[int32]right.Set, grantees []uint32) error {
	owner := e.Owner(t.Object)
	whole := e.ACL(t.Object)
	for id, set := range columns {
		list := e.ColumnACL(t.Object, id)
		both := append(slices.Clone(list), whole...)
		grantor, may := e.Grantor(who.Current, owner, both, set)
		if set&r.Privileges == 0 {
			if err := r.tell(e, who, notice, t, offer{may, set, nameOf(t.Columns, id)}); err != nil {
				return err
			}
		}
		list, err := r.apply(list, grantor, owner, may, grantees)
		if err != nil {
			return err
		}
		e.Change(t.Object, func(x *right.Entry) { x.Columns[id] = list })
	}
	return nil
}

func nameOf(columns map[string]int32, id int32) string {
	for name, x := range columns {
		if x == id {
			return name
		}
	}
	return ""
}

// offer is what the grantor may grant of what it wants to, on the object or a column.
type offer struct {
	may, want right.Set
	column    string
}

// tell refuses who may not grant at all, and says what is not granted.
func (r Request) tell(e *right.Editor, who Who, notice func(*pgerr.Error), t Target, o offer) error {
	may, want, column := o.may, o.want, o.column
	if may == 0 {
		some := e.Has(who.Current, t.Object, t.Object.Class.All()) != 0
		if column != "" {
			some = some || e.HasAnyColumn(who.Current, t.Object, right.Select) || e.HasAnyColumn(who.Current, t.Object, right.Insert) ||
				e.HasAnyColumn(who.Current, t.Object, right.Update)
		}
		if !some {
			return denied("permission denied for %s %s", objectWords[t.Object.Class], t.Name)
		}
	}
	name := t.Name
	if column != "" {
		name = column
	}
	code, word, none := codes.WarningPrivilegeNotGranted, "granted", "no privileges were granted for \"%s\""
	if !r.Grant {
		code, word, none = codes.WarningPrivilegeNotRevoked, "revoked", "no privileges could be revoked for \"%s\""
	}
	switch {
	case may == 0 && column != "":
		say(notice, "WARNING", code, strings.Replace(none, "\"%s\"", "column \"%s\" of relation \"%s\"", 1), column, t.Name)
	case may == 0:
		say(notice, "WARNING", code, none, name)
	case may != want && !r.All && r.Grant:
		say(notice, "WARNING", code, "not all privileges were %s for \"%s\"", word, name)
	case may != want && !r.All:
		say(notice, "WARNING", code, "not all privileges could be %s for \"%s\"", word, name)
	}
	return nil
}

// apply changes a list.
func (r Request) apply(list right.ACL, grantor, owner uint32, may right.Set, grantees []uint32) (right.ACL, error) {
	for _, g := range grantees {
		if may == 0 {
			break
		}
		if r.Grant {
			options := right.Set(0)
			if r.Option && g != owner {
				options = may
			}
			list = list.Grant(g, grantor, may, options)
			continue
		}
		if g == owner && r.Option {
			continue
		}
		next, ok := list.Revoke(g, grantor, owner, may, r.Option, r.Cascade)
		if !ok {
			return nil, pgerr.New(codes.DependentObjectsStillExist, "dependent privileges exist").
				WithHint("Use CASCADE to revoke them too.")
		}
		list = next
	}
	return list, nil
}
