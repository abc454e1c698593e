package define

import (
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// How PostgreSQL is to keep and find rows is said by dumps and migrations. It changes no answer,
// and rows are kept otherwise here: it is taken, with a notice.

// checkTablespace refuses all but the one that there is.
func checkTablespace(name string) error {
	if name != "" && name != "pg_default" {
		return pgerr.New(codes.UndefinedObject, "tablespace \"%s\" does not exist", name)
	}
	return nil
}

func storageNotice(what string) *pgerr.Error {
	return notice(codes.SuccessfulCompletion, "%s has no effect: rows are kept in the log and the lake", what)
}

// storageWords are the commands of ALTER TABLE that say how rows are kept.
var storageWords = map[pg.AlterTableType]string{
	pg.AlterTableType_AT_SetStatistics: "SET STATISTICS", pg.AlterTableType_AT_SetStorage: "SET STORAGE",
	pg.AlterTableType_AT_SetCompression: "SET COMPRESSION", pg.AlterTableType_AT_SetOptions: "SET of options of a column",
	pg.AlterTableType_AT_ResetOptions: "RESET of options of a column", pg.AlterTableType_AT_ClusterOn: "CLUSTER ON",
	pg.AlterTableType_AT_DropCluster: "SET WITHOUT CLUSTER", pg.AlterTableType_AT_ReplicaIdentity: "REPLICA IDENTITY",
	pg.AlterTableType_AT_SetLogged: "SET LOGGED", pg.AlterTableType_AT_SetUnLogged: "SET UNLOGGED",
	pg.AlterTableType_AT_SetTableSpace: "SET TABLESPACE", pg.AlterTableType_AT_DropOids: "SET WITHOUT OIDS",
}

// storage does a command of ALTER TABLE that says how rows are kept; known is false for any
// other.
func (a *alteration) storage(n *pg.AlterTableCmd) (known bool, err error) {
	switch n.Subtype {
	case pg.AlterTableType_AT_EnableTrigAll:
		return true, a.check(true)
	case pg.AlterTableType_AT_DisableTrigAll:
		return true, a.check(false)
	}
	word, known := storageWords[n.Subtype]
	if !known {
		return idle[n.Subtype], nil
	}
	index := ""
	switch n.Subtype {
	case pg.AlterTableType_AT_SetStatistics, pg.AlterTableType_AT_SetStorage, pg.AlterTableType_AT_SetCompression,
		pg.AlterTableType_AT_SetOptions, pg.AlterTableType_AT_ResetOptions:
		_, err = a.find(n.Name)
	case pg.AlterTableType_AT_SetTableSpace:
		err = checkTablespace(n.Name)
	case pg.AlterTableType_AT_ClusterOn:
		index = n.Name
	case pg.AlterTableType_AT_ReplicaIdentity:
		index = n.Def.GetReplicaIdentityStmt().GetName()
	}
	has := func(x catalog.Index) bool { return x.Name == index }
	if index != "" && !slices.ContainsFunc(a.table.Indexes, has) && (len(a.table.Current.Key) == 0 || index != a.table.PrimaryKey()) {
		err = pgerr.New(codes.UndefinedObject, "index \"%s\" for table \"%s\" does not exist", index, a.table.Name)
	}
	for _, x := range a.table.Indexes {
		switch {
		case x.Name != index || n.Subtype != pg.AlterTableType_AT_ReplicaIdentity:
		case x.Deferrable:
			err = pgerr.New(codes.FeatureNotSupported, "cannot use non-immediate index \"%s\" as replica identity", index)
		case x.Unique && len(x.Expressions) > 0:
			err = pgerr.New(codes.FeatureNotSupported, "cannot use expression index \"%s\" as replica identity", index)
		case x.Unique && x.Partial():
			err = pgerr.New(codes.FeatureNotSupported, "cannot use partial index \"%s\" as replica identity", index)
		}
	}
	if err == nil {
		a.out.Notices = append(a.out.Notices, storageNotice(word))
	}
	return true, err
}

// rowSecurity are the commands of ALTER TABLE that keep rows from roles.
var rowSecurity = map[pg.AlterTableType]bool{pg.AlterTableType_AT_EnableRowSecurity: true, pg.AlterTableType_AT_ForceRowSecurity: true}

// idle are those that turn on or off what no table has.
var idle = map[pg.AlterTableType]bool{
	pg.AlterTableType_AT_DisableRowSecurity: true, pg.AlterTableType_AT_NoForceRowSecurity: true,
	pg.AlterTableType_AT_EnableTrigUser: true, pg.AlterTableType_AT_DisableTrigUser: true,
}

// check is ENABLE and DISABLE TRIGGER ALL: the only triggers are those that look at foreign keys, which
// are the system's.
func (a *alteration) check(on bool) error {
	if of := append(slices.Clone(a.rel.Foreign), a.rel.Referenced...); len(of) > 0 && !a.context.Superuser() {
		return pgerr.New(codes.InsufficientPrivilege, "permission denied: \"RI_ConstraintTrigger_c_%d\" is a system trigger", of[0].ID)
	}
	a.table.Unchecked = !on
	return nil
}

// reindexOptions are those of REINDEX.
var reindexOptions = map[string]bool{"verbose": true, "concurrently": true, "tablespace": true}

// reindex answers REINDEX: there is no index to make anew.
func (c *Context) reindex(n *pg.ReindexStmt) (*Change, error) {
	concurrently := false
	for _, p := range n.Params {
		name := p.GetDefElem().GetDefname()
		if !reindexOptions[name] {
			return nil, pgerr.New(codes.Syntax, "unrecognized REINDEX option \"%s\"", name)
		}
		concurrently = concurrently || name == "concurrently"
	}
	out := &Change{Tag: "REINDEX"}
	switch n.Kind {
	case pg.ReindexObjectType_REINDEX_OBJECT_INDEX:
		if _, x := c.findIndex(n.Relation); x != nil || c.keyIndex(n.Relation) != nil {
			return out, nil
		}
		if _, err := pgsql.FindRelation(n.Relation, c.Env); err != nil {
			return nil, err
		}
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not an index", n.Relation.Relname)
	case pg.ReindexObjectType_REINDEX_OBJECT_TABLE:
		rel, err := c.withRows(n.Relation)
		if err == nil && rel.System && concurrently {
			err = unsupported("cannot reindex system catalogs concurrently")
		}
		return out, err
	case pg.ReindexObjectType_REINDEX_OBJECT_SCHEMA:
		if !c.Env.Resolver.HasSchema(n.Name) {
			return nil, pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", n.Name)
		}
	default:
		if n.Name != "" && n.Name != c.Env.Database {
			return nil, unsupported("can only reindex the currently open database")
		}
	}
	return out, nil
}

// cluster answers CLUSTER: rows are in the order of their key in the lake, whatever an index says. No
// table is remembered as clustered.
func (c *Context) cluster(n *pg.ClusterStmt) (*Change, error) {
	out := &Change{Tag: "CLUSTER"}
	if n.Relation == nil {
		return out, nil
	}
	rel, err := c.withRows(n.Relation)
	switch {
	case err != nil:
		return nil, err
	case n.Indexname == "":
		return nil, pgerr.New(codes.UndefinedObject, "there is no previously clustered index for table \"%s\"", rel.Name)
	}
	r := &pg.RangeVar{Schemaname: rel.Schema, Relname: n.Indexname}
	if t, x := c.findIndex(r); x != nil && t.Name == rel.Name {
		return out, nil
	}
	if t := c.keyIndex(r); t != nil && t.Name == rel.Name {
		return out, nil
	}
	return nil, pgerr.New(codes.UndefinedObject, "index \"%s\" for table \"%s\" does not exist", n.Indexname, rel.Name)
}

// withRows finds a table or materialized view.
func (c *Context) withRows(r *pg.RangeVar) (*pgsql.Relation, error) {
	rel, err := pgsql.FindRelation(r, c.Env)
	if err != nil {
		return nil, err
	}
	if rel.View != "" || rel.Sequence {
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a table or materialized view", rel.Name)
	}
	return rel, nil
}
