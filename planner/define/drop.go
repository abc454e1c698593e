package define

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// droppable are the kinds of objects that DROP drops, as messages name them.
var droppable = map[pg.ObjectType]string{
	pg.ObjectType_OBJECT_SEQUENCE: "sequence", pg.ObjectType_OBJECT_INDEX: "index",
	pg.ObjectType_OBJECT_MATVIEW: materialized, pg.ObjectType_OBJECT_TABLE: "table", pg.ObjectType_OBJECT_VIEW: "view", pg.ObjectType_OBJECT_SCHEMA: "schema",
}

// object is a table, view or schema that goes.
type object struct {
	kind string
	// schema and name are its; of a schema, schema is "".
	schema, name string
	id           change.TableID // of a table, view or sequence
	// column is that whose default goes, in the table id; of a constraint its name, and key its number.
	column string
	field  int32
	key    change.TableID
}

// removal is a DROP being planned.
type removal struct {
	context *Context
	named   []object
	// others go with them, or would; why says for each on what it depends.
	others []object
	why    []string
}

// drop plans DROP TABLE, VIEW and SCHEMA.
func (c *Context) drop(n *pg.DropStmt) (*Change, error) {
	switch n.RemoveType {
	case pg.ObjectType_OBJECT_INDEX:
		return c.dropIndexes(n)
	case pg.ObjectType_OBJECT_TYPE:
		return c.dropTypes(n)
	}
	kind := droppable[n.RemoveType]
	out := &Change{Tag: "DROP " + strings.ToUpper(kind)}
	d := &removal{context: c}
	for _, o := range n.Objects {
		found, err := c.droppedObject(kind, o)
		e, ok := pgerr.As(err)
		if ok && n.MissingOk && (e.Code == codes.UndefinedTable || e.Code == codes.InvalidSchemaName) {
			skipped := notice(codes.SuccessfulCompletion, "%s, skipping", e.Message)
			out.Notices = append(out.Notices, skipped)
			continue
		}
		if err != nil {
			return nil, err
		}
		if !d.goes(found) {
			d.named = append(d.named, found)
		}
	}
	d.gather()
	if len(d.others) > 0 && n.Behavior != pg.DropBehavior_DROP_CASCADE {
		return nil, d.refuse()
	}
	out.Notices = append(out.Notices, d.told()...)
	all := append(slices.Clone(d.named), d.others...)
	slices.SortStableFunc(all, func(a, b object) int { return cmp.Compare(dropOrder[a.kind], dropOrder[b.kind]) })
	var temp, kept []object
	for _, o := range all {
		switch {
		case c.isTemp(o.schema):
			temp = append(temp, o)
			continue
		case o.kind == "table", o.kind == "default", o.kind == materialized, o.kind == "constraint":
			out.Alters = append(out.Alters, o.id)
		}
		kept = append(kept, o)
	}
	out.Session, out.Apply = dropAll(temp), dropAll(kept)
	return out, nil
}

// dropAll drops objects; nil for none.
func dropAll(all []object) func(*catalog.Txn) error {
	if len(all) == 0 {
		return nil
	}
	return func(txn *catalog.Txn) error {
		if err := unreadByOthers(txn, all); err != nil {
			return err
		}
		for _, o := range all {
			if err := o.drop(txn); err != nil {
				return err
			}
		}
		return nil
	}
}

// DropTemp drops all temporary tables and views of the session, as DISCARD TEMP does.
func (c *Context) DropTemp(tag string) *Change {
	var all []object
	for _, v := range c.Snapshot.Views() {
		if c.isTemp(v.Schema) {
			all = append(all, object{kind: "view", schema: v.Schema, name: v.Name, id: v.ID})
		}
	}
	for _, t := range c.Snapshot.AllTables() {
		if t.Temp != "" {
			all = append(all, object{kind: "table", schema: t.Schema, name: t.Name, id: t.Face()})
		}
	}
	return &Change{Tag: tag, Session: dropAll(all)}
}

// unreadByOthers refuses to drop what views read that do not go with it: others may have made
// some meanwhile.
func unreadByOthers(txn *catalog.Txn, all []object) error {
	for _, v := range txn.Queries() {
		if slices.ContainsFunc(all, func(o object) bool { return o.id == v.ID }) {
			continue
		}
		for _, o := range all {
			if o.id != 0 && slices.Contains(v.Reads, o.id) {
				return pgerr.New(codes.DependentObjectsStillExist, "cannot drop %s %s because other objects depend on it", o.kind, o.name).
					WithDetail("%s %s depends on %s %s", viewObject(v).kind, v.Schema+"."+v.Name, o.kind, o.name)
			}
		}
	}
	return nil
}

// dropOrder is that in which objects are dropped: a schema goes with its last table.
var dropOrder = map[string]int{"default": 0, "constraint": 0, "view": 1, materialized: 2, "table": 2, "sequence": 3, "type": 3, "schema": 4}

// drop drops an object; what it had is checked no more.
func (o object) drop(txn *catalog.Txn) error {
	switch o.kind {
	case "view":
		return gone(txn.DeleteView(o.schema, o.name), "view", o.name)
	case "type":
		return dropEnum(txn, o.schema, o.name)
	case "sequence":
		return gone(txn.DeleteSequence(o.schema, o.name), "sequence", o.name)
	case "default":
		t, err := txn.TableByFace(o.id)
		if err != nil {
			return gone(err, "table", o.name)
		}
		next := t.Clone()
		setText(&next.Defaults, o.field, "")
		return txn.PutTable(next)
	case "constraint":
		return dropForeign(txn, o.id, o.key)
	case "table", materialized:
		t, err := txn.TableByFace(o.id)
		if err != nil {
			return gone(err, "table", o.name)
		}
		return errors.Join(dropOwned(txn, o.id, 0), txn.DeleteTable(t.ID), txn.LeaveLake(t.ID), tell(txn, t, "table dropped"))
	}
	for _, t := range txn.EveryTable() {
		if t.Schema == o.name {
			return pgerr.New(codes.DependentObjectsStillExist, "cannot drop schema %s because other objects depend on it", o.name).
				WithDetail("table %s depends on schema %s", t.Schema+"."+t.Name, o.name)
		}
	}
	for _, v := range txn.Views() {
		if v.Schema == o.name {
			return pgerr.New(codes.DependentObjectsStillExist, "cannot drop schema %s because other objects depend on it", o.name).
				WithDetail("view %s depends on schema %s", v.Schema+"."+v.Name, o.name)
		}
	}
	err := txn.DeleteSchema(o.name)
	if errors.Is(err, catalog.ErrSchemaNotFound) {
		return nil // it went with its last table
	}
	return err
}

// droppedObject finds what a DROP names.
func (c *Context) droppedObject(kind string, n *pg.Node) (object, error) {
	if kind == "schema" {
		name := n.GetString_().GetSval()
		switch {
		case systemSchemas[name]:
			return object{}, pgerr.New(codes.InsufficientPrivilege, "permission denied for schema %s", name)
		case name == "public":
			return object{}, unsupported("dropping schema public is not supported")
		case !c.Env.Resolver.HasSchema(name):
			return object{}, pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", name)
		}
		return object{kind: kind, name: name}, nil
	}
	r := rangeVar(n)
	if r.Schemaname != "" && !c.isTemp(r.Schemaname) && !c.Env.Resolver.HasSchema(r.Schemaname) {
		return object{}, pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", r.Schemaname)
	}
	rel, err := pgsql.FindRelation(r, c.Env)
	if err != nil {
		e, ok := pgerr.As(err)
		if !ok || e.Code != codes.UndefinedTable {
			return object{}, err
		}
		name := r.Relname
		if r.Schemaname != "" {
			name = r.Schemaname + "." + name
		}
		return object{}, pgerr.New(codes.UndefinedTable, "%s \"%s\" does not exist", kind, name)
	}
	switch {
	case rel.Materialized && kind != materialized && kind != "sequence":
		return object{}, pgerr.New(codes.WrongObjectType, "\"%s\" is not a %s", rel.Name, kind).
			WithHint("Use DROP MATERIALIZED VIEW to remove a materialized view.")
	case kind == materialized && !rel.Materialized && rel.View != "":
		return object{}, pgerr.New(codes.WrongObjectType, "\"%s\" is not a materialized view", rel.Name).WithHint("Use DROP VIEW to remove a view.")
	case kind == materialized && !rel.Materialized && !rel.Sequence:
		return object{}, pgerr.New(codes.WrongObjectType, "\"%s\" is not a materialized view", rel.Name).WithHint("Use DROP TABLE to remove a table.")
	case kind == "table" && rel.View != "":
		return object{}, pgerr.New(codes.WrongObjectType, "\"%s\" is not a table", rel.Name).WithHint("Use DROP VIEW to remove a view.")
	case kind == "sequence" && !rel.Sequence:
		return object{}, pgerr.New(codes.WrongObjectType, "\"%s\" is not a sequence", rel.Name)
	case kind != "sequence" && rel.Sequence:
		return object{}, pgerr.New(codes.WrongObjectType, "\"%s\" is not a %s", rel.Name, kind).WithHint("Use DROP SEQUENCE to remove a sequence.")
	case rel.Sequence:
		return c.droppedSequence(rel)
	case kind == "view" && rel.View == "" && !rel.System:
		return object{}, pgerr.New(codes.WrongObjectType, "\"%s\" is not a view", rel.Name).WithHint("Use DROP TABLE to remove a table.")
	case kind == "view" && rel.View != "":
		v, err := c.Snapshot.ViewByName(rel.Schema, rel.Name)
		if err != nil {
			return object{}, err
		}
		return object{kind: kind, schema: v.Schema, name: v.Name, id: v.ID}, nil
	}
	t, _, err := c.stored(r)
	if err != nil {
		return object{}, err
	}
	return object{kind: kind, schema: t.Schema, name: t.Name, id: t.Face()}, nil
}

func (d *removal) goes(o object) bool {
	return slices.Contains(d.named, o) || slices.Contains(d.others, o)
}

func (d *removal) add(o object, on object) {
	if d.goes(o) {
		return
	}
	d.others = append(d.others, o)
	d.why = append(d.why, fmt.Sprintf("%s depends on %s", d.show(o), d.show(on)))
}

// gather adds what depends on what goes.
func (d *removal) gather() {
	snap := d.context.Snapshot
	for i := 0; i < len(d.named)+len(d.others); i++ {
		o := object{}
		if i < len(d.named) {
			o = d.named[i]
		} else {
			o = d.others[i-len(d.named)]
		}
		d.addSequences(o)
		if o.kind == "schema" {
			for _, t := range snap.AllTables() {
				if t.Schema == o.name {
					d.add(tableObject(t), o)
				}
			}
			for _, e := range snap.Types() {
				if e.Schema == o.name {
					d.add(object{kind: "type", schema: e.Schema, name: e.Name, id: e.ID}, o)
				}
			}
			for _, v := range snap.Views() {
				if v.Schema == o.name {
					d.add(object{kind: "view", schema: v.Schema, name: v.Name, id: v.ID}, o)
				}
			}
			continue
		}
		if o.kind == "table" {
			d.addForeign(o)
		}
		for _, v := range d.context.readers(o.id) {
			d.add(viewObject(v), o)
		}
	}
}

// addForeign adds the foreign keys of tables that stay which refer to one that goes.
func (d *removal) addForeign(o object) {
	for _, r := range d.context.referrers(o.id, func(catalog.ForeignKey) bool { return true }) {
		t := object{kind: "table", schema: r.table.Schema, name: r.table.Name, id: r.table.Face()}
		in := object{kind: "schema", name: t.schema}
		if !d.goes(t) && !d.goes(in) {
			d.add(object{kind: "constraint", schema: t.schema, name: t.name, id: t.id, column: r.key.Name, key: r.key.ID}, o)
		}
	}
}

func (d *removal) show(o object) string {
	if o.kind == "schema" {
		return "schema " + o.name
	}
	if o.kind == "constraint" {
		return "constraint " + o.column + " on table " + shownName(o.schema, o.name, d.context.Env)
	}
	if o.kind == "default" {
		return "default value for column " + o.column + " of table " + shownName(o.schema, o.name, d.context.Env)
	}
	return o.kind + " " + shownName(o.schema, o.name, d.context.Env)
}

func (d *removal) refuse() error {
	message := "cannot drop desired object(s) because other objects depend on them"
	if len(d.named) == 1 {
		message = fmt.Sprintf("cannot drop %s because other objects depend on it", d.show(d.named[0]))
	}
	return pgerr.New(codes.DependentObjectsStillExist, "%s", message).WithDetail("%s", strings.Join(d.why, "\n")).
		WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
}

// told are the notices of what goes with the rest.
func (d *removal) told() []*pgerr.Error {
	switch len(d.others) {
	case 0:
		return nil
	case 1:
		return []*pgerr.Error{notice(codes.SuccessfulCompletion, "drop cascades to %s", d.show(d.others[0]))}
	}
	var list []string
	for _, o := range d.others {
		list = append(list, "drop cascades to "+d.show(o))
	}
	return []*pgerr.Error{notice(codes.SuccessfulCompletion, "drop cascades to %d other objects", len(d.others)).
		WithDetail("%s", strings.Join(list, "\n"))}
}
