package define

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// optionInvoker is that of views which are read with the rights of who reads them. What
// security_barrier keeps rows from, functions of users, there is not.
const optionInvoker = "security_invoker"

// optionCheck is that of views through which no rows are written that they do not show.
const optionCheck = "check_option"

// viewOptions are the options of a view after SET of some.
func viewOptions(old []string, list []*pg.Node) ([]string, error) {
	out := slices.Clone(old)
	var given []string
	for _, n := range list {
		d := n.GetDefElem()
		switch d.Defname {
		case optionInvoker, optionCheck, "security_barrier":
		default:
			return nil, pgerr.New(codes.InvalidParameterValue, "unrecognized parameter \"%s\"", d.Defname)
		}
		if slices.Contains(given, d.Defname) {
			return nil, pgerr.New(codes.InvalidParameterValue, "parameter \"%s\" specified more than once", d.Defname)
		}
		given = append(given, d.Defname)
		value := storageValue(d.Arg)
		if value = strings.ToLower(value); d.Defname == optionCheck && value != pgsql.CheckLocal && value != pgsql.CheckCascaded {
			return nil, pgerr.New(codes.InvalidParameterValue, "invalid value for enum option \"check_option\": %s", storageValue(d.Arg)).
				WithDetail("Valid values are \"local\" and \"cascaded\".")
		}
		value = storageValue(d.Arg)
		if _, ok := optionBool(value); !ok && d.Defname != optionCheck {
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

// CheckOption is the check option of a view, as pgsql.Relation has it.
func CheckOption(v *catalog.View) string {
	for _, o := range v.Options {
		if text, ok := strings.CutPrefix(o, optionCheck+"="); ok {
			return strings.ToLower(text)
		}
	}
	return ""
}

// checkable refuses a check option of a view that is not one table's rows.
func (c *Context) checkable(v *catalog.View) error {
	if CheckOption(v) == "" {
		return nil
	}
	if why := pgsql.NotUpdatable(v.SQL, c.Env.Resolver); why != "" {
		return unsupported("WITH CHECK OPTION is supported only on automatically updatable views").WithHint("%s", why)
	}
	return nil
}

// checkOptionOf are the options of CREATE VIEW, with that of WITH CHECK OPTION.
func checkOptionOf(n *pg.ViewStmt) []*pg.Node {
	value := ""
	switch n.WithCheckOption {
	case pg.ViewCheckOption_LOCAL_CHECK_OPTION:
		value = pgsql.CheckLocal
	case pg.ViewCheckOption_CASCADED_CHECK_OPTION:
		value = pgsql.CheckCascaded
	default:
		return n.Options
	}
	arg := &pg.Node{Node: &pg.Node_String_{String_: &pg.String{Sval: value}}}
	return append(slices.Clip(n.Options), &pg.Node{Node: &pg.Node_DefElem{DefElem: &pg.DefElem{Defname: optionCheck, Arg: arg}}})
}

// ofViews says whether commands of ALTER TABLE are such as views take, too.
func ofViews(cmds []*pg.Node) bool {
	return !slices.ContainsFunc(cmds, func(n *pg.Node) bool {
		switch n.GetAlterTableCmd().GetSubtype() {
		case pg.AlterTableType_AT_SetRelOptions, pg.AlterTableType_AT_ResetRelOptions, pg.AlterTableType_AT_ColumnDefault:
			return false
		}
		return true
	})
}

// viewDefault is what a column of a view has by default.
func (c *Context) viewDefault(v *catalog.View, n *pg.AlterTableCmd) error {
	i := slices.IndexFunc(v.Columns, func(x catalog.ViewColumn) bool { return x.Name == n.Name })
	if i < 0 {
		return pgerr.New(codes.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", n.Name, v.Name)
	}
	text := ""
	if n.Def != nil {
		var err error
		if text, err = c.viewDefaultText(v.Columns[i], n.Def); err != nil {
			return err
		}
	}
	v.Columns[i].Default = text
	return nil
}

// viewDefaultText is the default of a view's column, checked.
func (c *Context) viewDefaultText(x catalog.ViewColumn, n *pg.Node) (string, error) {
	names, err := pgsql.DefaultSequences(n, c.Env)
	if err != nil {
		return "", err
	}
	if len(names) > 0 {
		return "", unsupported("a default of a view's column that draws from a sequence is not supported").WithHint("Let the table's column have it.")
	}
	dims := 0
	if pgsql.ElemOf(x.OID) != 0 {
		dims = 1
	}
	lake, _ := schema.FromPostgres(x.OID, x.TypMod, dims)
	col := pgsql.RelationColumn{Name: x.Name, Type: c.Env.TypeOf(x.OID, x.TypMod), Engine: schema.EngineType(lake)}
	text, err := pgsql.SettleDefault(n, col, c.Env)
	if err != nil {
		return "", err
	}
	return text, pgsql.CheckDefault(text, col, c.Env)
}

// alterView plans ALTER VIEW … SET and RESET of options, and of defaults of columns; ALTER TABLE may say it, too.
func (c *Context) alterView(n *pg.AlterTableStmt) (*Change, error) {
	out := &Change{Tag: "ALTER " + strings.TrimPrefix(n.Objtype.String(), "OBJECT_")}
	old, err := c.view(n.Relation)
	if e, ok := pgerr.As(err); ok && n.MissingOk && e.Code == codes.UndefinedTable {
		out.Notices = append(out.Notices, notice(codes.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", n.Relation.Relname))
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	view := old.Clone()
	for _, node := range n.Cmds {
		cmd := node.GetAlterTableCmd()
		list := cmd.GetDef().GetList().GetItems()
		switch cmd.Subtype {
		case pg.AlterTableType_AT_SetRelOptions:
			view.Options, err = viewOptions(view.Options, list)
		case pg.AlterTableType_AT_ResetRelOptions:
			view.Options = resetStorage(view.Options, list)
		case pg.AlterTableType_AT_ColumnDefault:
			err = c.viewDefault(view, cmd)
		default:
			err = unsupported("this kind of ALTER VIEW is not supported")
		}
		if err == nil {
			err = c.checkable(view)
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
		next.Options = view.Options
		for i, x := range view.Columns { // columns come behind others, and get other names
			if i < len(next.Columns) {
				next.Columns[i].Default = x.Default
			}
		}
		return txn.PutView(next)
	}), nil
}
