package pgsql

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// tableSample analyses TABLESAMPLE: each row is taken by chance, with SYSTEM too.
func (a *analyzer) tableSample(n *pg.RangeTableSample, s *scope) (*source, error) {
	src, err := a.fromNode(n.Relation, s)
	if err != nil {
		return nil, err
	}
	method := n.Method[len(n.Method)-1].GetString_().GetSval()
	switch {
	case len(src.items) != 1 || src.items[0].use == nil:
		return nil, a.errAt(n.Location, pgerr.New(codes.WrongObjectType, "TABLESAMPLE clause can only be applied to tables and materialized views"))
	case method != "bernoulli" && method != "system":
		return nil, a.errAt(n.Location, pgerr.New(codes.UndefinedObject, "tablesample method %s does not exist", method))
	case n.Repeatable != nil:
		return nil, a.errAt(n.Location, unsupported("TABLESAMPLE … REPEATABLE is not supported"))
	case len(n.Args) != 1:
		return nil, a.errAt(n.Location, pgerr.New("2202H", "tablesample method %s requires 1 argument, not %d", method, len(n.Args)))
	}
	e, err := a.expr(n.Args[0], &scope{parent: s.parent, noAgg: inFrom})
	if err != nil {
		return nil, err
	}
	if e, err = a.coerce(e, plain(OIDFloat4), assignment); err != nil {
		return nil, err
	}
	share := "CASE WHEN " + e.sql + " BETWEEN 0 AND 100 THEN " + e.sql + " ELSE error('2202H: sample percentage must be between 0 and 100') END"
	relation, alias, _ := strings.Cut(src.sql, " AS ")
	src.sql = "(SELECT * FROM " + relation + " WHERE random() * 100 < " + share + ") AS " + alias
	return src, nil
}
