package define

import (
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
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
