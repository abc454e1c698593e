package generated

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// evaluatorOf is a query for the role that evaluates the expressions of a table: its owner,
// as in PostgreSQL's own maintenance commands, where the session's role may act as the
// owner. It has no row when there is no such table.
func evaluatorOf(oid string) string {
	return `SELECT CASE WHEN pg_catalog.pg_has_role(r.oid,
         CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 160000 THEN 'SET' ELSE 'MEMBER' END)
         THEN r.rolname::pg_catalog.text ELSE current_user::pg_catalog.text END AS role
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_roles r ON r.oid = c.relowner WHERE c.oid = ` + oid
}

// asEvaluator takes that role until the transaction ends. Of a table that is gone nobody
// knows the owner: a superuser then is a role with next to no rights.
var asEvaluator = `SELECT pg_catalog.set_config('role', coalesce(
  (SELECT e.role FROM (` + evaluatorOf("$1::pg_catalog.oid") + `) e),
  (SELECT 'pg_read_all_settings' FROM pg_catalog.pg_roles s WHERE s.rolname = current_user AND s.rolsuper), current_user::pg_catalog.text), true)`

// Session implements Querier for the table with an OID: queries are evaluated by the
// table's owner where the session's role may act as it, and by that role elsewhere. They
// leave nothing behind in the session, whatever functions do. In a transaction of the
// caller's there must be a savepoint, which the caller rolls back to.
type Session struct {
	Conn  *pgconn.PgConn
	Table uint32
}

// Query implements Querier. Unless the session is in a transaction, it is in a read-only one
// of its own, all in one round trip.
func (s Session) Query(ctx context.Context, sql string, params [][]byte, row func([][]byte) error) error {
	own := s.Conn.TxStatus() == 'I'
	b := &pgconn.Batch{}
	if own {
		b.ExecParams("BEGIN READ ONLY", nil, nil, nil, nil)
	}
	b.ExecParams(asEvaluator, [][]byte{strconv.AppendUint(nil, uint64(s.Table), 10)}, nil, nil, nil)
	b.ExecParams(sql, params, nil, nil, nil)
	asked := 1
	if own {
		b.ExecParams("ROLLBACK", nil, nil, nil, nil)
		asked++
	}
	results := s.Conn.ExecBatch(ctx, b)
	var failed error
	for n := 0; results.NextResult(); n++ {
		r := results.ResultReader()
		for r.NextRow() {
			if n == asked && failed == nil { // the rest is read, so that the session can go on
				failed = row(r.Values())
			}
		}
		_, _ = r.Close() // its error is that of all
	}
	err := results.Close()
	if own && err != nil && !s.Conn.IsClosed() && s.Conn.TxStatus() != 'I' {
		if _, ended := s.Conn.Exec(ctx, "ROLLBACK").ReadAll(); ended != nil {
			return fmt.Errorf("end transaction: %w", ended)
		}
	}
	return errors.Join(failed, err)
}
