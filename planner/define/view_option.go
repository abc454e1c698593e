package define

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

var errCheckOption = unsupported("WITH CHECK OPTION is not supported").WithHint("Rows are not changed through views here.")

// optionInvoker is that of views which are read with the rights of who reads them. What
// security_barrier keeps rows from, functions of users, there is not.
const optionInvoker = "security_invoker"

// viewOptions are the options of a view after SET of some.
func viewOptions(old []string, list []*pg.Node) ([]string, error) {
	out := slices.Clone(old)
	var given []string
	for _, n := range list {
		d := n.GetDefElem()
		switch d.Defname {
		case "check_option":
			return nil, errCheckOption
		case optionInvoker, "security_barrier":
		default:
			return nil, pgerr.New(codes.InvalidParameterValue, "unrecognized parameter \"%s\"", d.Defname)
		}
		if slices.Contains(given, d.Defname) {
			return nil, pgerr.New(codes.InvalidParameterValue, "parameter \"%s\" specified more than once", d.Defname)
		}
		given = append(given, d.Defname)
		value := storageValue(d.Arg)
		if _, ok := optionBool(value); !ok {
			return nil, pgerr.New(codes.InvalidParameterValue, "invalid value for boolean option \"%s\": %s", d.Defname, value)
		}
		out = append(withoutStorage(out, d.Defname), d.Defname+"="+value)
	}
	return out, nil
}

// optionBool reads a boolean as PostgreSQL does: a word may be cut short.
func optionBool(v string) (value, ok bool) {
	v = strings.ToLower(v)
	for word, is := range map[string]bool{"true": true, "yes": true, "on": true, "1": true, "false": false, "no": false, "off": false, "0": false} {
		if v != "" && v != "o" && strings.HasPrefix(word, v) {
			return is, true
		}
	}
	return false, false
}

func securityInvoker(v *catalog.View) bool {
	for _, o := range v.Options {
		if text, ok := strings.CutPrefix(o, optionInvoker+"="); ok {
			on, _ := optionBool(text)
			return on
		}
	}
	return false
}

// alterView plans ALTER VIEW … SET and RESET of options.
func (c *Context) alterView(n *pg.AlterTableStmt) (*Change, error) {
	out := &Change{Tag: "ALTER VIEW"}
	old, err := c.view(n.Relation)
	if e, ok := pgerr.As(err); ok && n.MissingOk && e.Code == codes.UndefinedTable {
		out.Notices = append(out.Notices, notice(codes.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", n.Relation.Relname))
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	options := old.Options
	for _, node := range n.Cmds {
		cmd := node.GetAlterTableCmd()
		list := cmd.GetDef().GetList().GetItems()
		switch cmd.Subtype {
		case pg.AlterTableType_AT_SetRelOptions:
			options, err = viewOptions(options, list)
		case pg.AlterTableType_AT_ResetRelOptions:
			options = resetStorage(options, list)
		default:
			err = unsupported("this kind of ALTER VIEW is not supported")
		}
		if err != nil {
			return nil, err
		}
	}
	return out.do(c.isTemp(old.Schema), func(txn *catalog.Txn) error {
		found, err := txn.ViewByName(old.Schema, old.Name)
		if err == nil && found.ID != old.ID {
			err = catalog.ErrTableNotFound
		}
		if err != nil {
			return gone(err, "view", old.Name)
		}
		next := found.Clone()
		next.Options = options
		return txn.PutView(next)
	}), nil
}
