package planner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/setting"
)

// prepareSet prepares SET and RESET.
func (s *session) prepareSet(n *pg.VariableSetStmt) (pgwire.Statement, error) {
	tag := "SET"
	if n.Kind == pg.VariableSetKind_VAR_RESET || n.Kind == pg.VariableSetKind_VAR_RESET_ALL {
		tag = "RESET"
	}
	return &utility{session: s, run: func(_ context.Context, sink pgwire.Sink) (*result, error) {
		return &result{tag: tag}, s.set(n, sink)
	}}, nil
}

func (s *session) set(n *pg.VariableSetStmt, sink pgwire.Sink) error {
	if n.IsLocal && !s.tx.open {
		if err := s.notice(sink, warning(codes.NoActiveSQLTransaction,
			"SET LOCAL can only be used in transaction blocks")); err != nil {
			return err
		}
	}
	switch n.Kind {
	case pg.VariableSetKind_VAR_SET_MULTI:
		return s.setTransaction(n, sink)
	case pg.VariableSetKind_VAR_RESET_ALL:
		s.values.ResetAll()
		return nil
	case pg.VariableSetKind_VAR_RESET, pg.VariableSetKind_VAR_SET_DEFAULT:
		if isIdentity(n.Name) {
			return s.setIdentity(n.Name, "", n.IsLocal)
		}
		return s.values.Reset(n.Name)
	case pg.VariableSetKind_VAR_SET_VALUE:
		value, err := setValue(n)
		if err != nil {
			return err
		}
		if isIdentity(n.Name) {
			return s.setIdentity(n.Name, value, n.IsLocal)
		}
		if strings.EqualFold(n.Name, "transaction_isolation") && s.tx.queried &&
			!strings.EqualFold(value, s.values.Value("transaction_isolation")) {
			return pgerr.New(codes.ActiveSQLTransaction, "SET TRANSACTION ISOLATION LEVEL must be called before any query")
		}
		return s.values.Set(n.Name, value, n.IsLocal || strings.HasPrefix(strings.ToLower(n.Name), "transaction_"))
	}
	return pgerr.New(codes.FeatureNotSupported, "SET %s FROM CURRENT is not supported", n.Name)
}

// setIdentity is SET ROLE and SET SESSION AUTHORIZATION; "" is its default.
func (s *session) setIdentity(name, value string, local bool) error {
	b := s.book()
	switch {
	case strings.EqualFold(name, "session_authorization"):
		if value == "" {
			value = s.startup.User
		}
		r, login := b.Named(value), b.Named(s.startup.User)
		switch {
		case r == nil:
			return noSuchRole(value)
		case value != s.startup.User && (login == nil || login.OID != s.login || !login.Superuser):
			return pgerr.New(codes.InsufficientPrivilege, "permission denied to set session authorization")
		}
		s.become(r)
		s.force("session_authorization", value, local)
		s.force("role", "none", local)
	case value == "" || value == "none":
		s.force("role", "none", local)
	default:
		r := b.Named(value)
		if r == nil {
			return noSuchRole(value)
		}
		if !b.Member(s.who(b).Session, r.OID) {
			return pgerr.New(codes.InsufficientPrivilege, "permission denied to set role \"%s\"", value)
		}
		s.become(r)
		s.force("role", value, local)
	}
	super := "off"
	if b.Superuser(s.who(b).Current) {
		super = "on"
	}
	s.force("is_superuser", super, local)
	return nil
}

// become notes which role a name of the session's is: another that takes the name later is not
// it. The name that it was opened for stays that of its first role.
func (s *session) become(r *right.Role) {
	if r.Name != s.startup.User {
		s.became[r.Name] = r.OID
	}
}

func noSuchRole(name string) error {
	return pgerr.New(codes.InvalidParameterValue, "role \"%s\" does not exist", name)
}

func (s *session) force(name, value string, local bool) {
	if local {
		s.values.ForceLocal(name, value)
	} else {
		s.values.Force(name, value)
	}
}

// roleSetting checks a value for ALTER ROLE … SET.
func (s *session) roleSetting(n *pg.VariableSetStmt) (name, value string, err error) {
	if n.Kind == pg.VariableSetKind_VAR_RESET_ALL {
		return "", "", nil
	}
	st, ok := setting.Lookup(n.Name)
	switch {
	case !ok && !strings.Contains(n.Name, "."):
		return "", "", pgerr.New(codes.UndefinedObject, "unrecognized configuration parameter \"%s\"", n.Name)
	case ok && st.Name == "role":
		return "", "", pgerr.New(codes.CantChangeRuntimeParam, "parameter \"%s\" cannot be set for a role", st.Name)
	case n.Kind == pg.VariableSetKind_VAR_SET_CURRENT:
		value, _ := s.values.Get(n.Name)
		return strings.ToLower(n.Name), value, nil
	case n.Kind != pg.VariableSetKind_VAR_SET_VALUE:
		return strings.ToLower(n.Name), "", nil
	}
	if value, err = setValue(n); err != nil {
		return "", "", err
	}
	probe, err := setting.NewValues(map[string]string{"is_superuser": s.values.Value("is_superuser")}, map[string]string{n.Name: value})
	if err != nil {
		return "", "", err
	}
	return strings.ToLower(n.Name), probe.Value(n.Name), nil
}

// reload is pg_reload_conf().
func (s *session) reload() (bool, error) {
	b := s.book()
	if !b.Superuser(s.who(b).Current) {
		return false, pgerr.New(codes.InsufficientPrivilege, "permission denied for function pg_reload_conf")
	}
	if s.engine.deps.Reload == nil {
		return true, nil
	}
	if err := s.engine.deps.Reload(); err != nil {
		return false, pgerr.New(codes.ConfigFile, "settings were not reloaded: the old ones stay").WithDetail("%s", err)
	}
	return true, nil
}

// setConfig is set_config(), and returns the value that there is then.
func (s *session) setConfig(name, value *string, local bool) (string, error) {
	if name == nil {
		return "", pgerr.New(codes.NullValueNotAllowed, "SET requires parameter name")
	}
	var err error
	switch identity := isIdentity(*name); {
	case identity && value == nil:
		err = s.setIdentity(*name, "", local)
	case identity:
		err = s.setIdentity(*name, *value, local)
	case value != nil:
		err = s.values.Set(*name, *value, local)
	case local:
		err = s.values.ResetLocal(*name)
	default:
		err = s.values.Reset(*name)
	}
	return s.values.Value(*name), err
}

// setConfigWith is setConfig with the arguments of a call as texts, nil for a null, and its
// result as SQL.
func (s *session) setConfigWith(args []*string) (string, error) {
	value, err := s.setConfig(args[0], args[1], args[2] != nil && *args[2] == "true")
	return quote.Text(value), err
}

// noticeRanks are the values of client_min_messages, from what says most.
var noticeRanks = []string{"debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"}

// notice tells the client something, unless client_min_messages asks for graver things alone.
func (s *session) notice(sink pgwire.Sink, e *pgerr.Error) error {
	rank := slices.Index(noticeRanks, strings.ToLower(e.Severity))
	if rank >= 0 && rank < slices.Index(noticeRanks, strings.ToLower(s.values.Value("client_min_messages"))) {
		return nil
	}
	return sink.Notice(e)
}

// isIdentity says whether a setting is a role of the session.
func isIdentity(name string) bool {
	return strings.EqualFold(name, "role") || strings.EqualFold(name, "session_authorization")
}

// setValue renders the arguments of SET as the one text of the value.
func setValue(n *pg.VariableSetStmt) (string, error) {
	var parts []string
	list := false
	if st, ok := setting.Lookup(n.Name); ok {
		list = st.List
	}
	if len(n.Args) > 1 && !list {
		return "", pgerr.New(codes.InvalidParameterValue, "SET %s takes only one argument", n.Name)
	}
	for _, a := range n.Args {
		c := a.GetAConst()
		if tc := a.GetTypeCast(); tc != nil { // SET TIME ZONE INTERVAL '…'
			c = tc.Arg.GetAConst()
		}
		if c == nil {
			return "", pgerr.New(codes.FeatureNotSupported, "this kind of value in SET is not supported")
		}
		switch v := c.Val.(type) {
		case *pg.A_Const_Ival:
			parts = append(parts, strconv.Itoa(int(v.Ival.Ival)))
		case *pg.A_Const_Fval:
			parts = append(parts, v.Fval.Fval)
		case *pg.A_Const_Boolval:
			parts = append(parts, strconv.FormatBool(v.Boolval.Boolval))
		case *pg.A_Const_Sval:
			s := v.Sval.Sval
			if n.Name == "search_path" {
				s = quote.NameIfNeeded(s)
			}
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", "), nil
}

// examines is the error of who may not look at a setting.
func (s *session) examines(name string) error {
	if !setting.Examined(name) {
		return nil
	}
	b := s.book()
	if b.HasRole(s.who(b).Current, right.ReadAllSettings) {
		return nil
	}
	return pgerr.New(codes.InsufficientPrivilege, "must be superuser or have privileges of pg_read_all_settings to examine \"%s\"", name)
}

// prepareShow prepares SHOW.
func (s *session) prepareShow(n *pg.VariableShowStmt) (pgwire.Statement, error) {
	if strings.EqualFold(n.Name, "all") {
		cols := []pgwire.Column{
			column("name", pgsql.OIDText), column("setting", pgsql.OIDText),
			column("description", pgsql.OIDText),
		}
		return &utility{session: s, columns: cols, run: func(context.Context, pgwire.Sink) (*result, error) {
			r := &result{tag: "SHOW"}
			for _, v := range s.values.All() {
				if s.examines(v.Name) != nil {
					continue
				}
				r.rows = append(r.rows, []any{v.Name, v.Value, v.Description})
			}
			return r, nil
		}}, nil
	}
	name := n.Name
	if st, ok := setting.Lookup(name); ok {
		name = st.Name
	} else if _, ok := s.values.Get(name); !ok {
		return nil, pgerr.New(codes.UndefinedObject, "unrecognized configuration parameter \"%s\"", n.Name)
	}
	return &utility{
		session: s, columns: []pgwire.Column{column(name, pgsql.OIDText)},
		run: func(context.Context, pgwire.Sink) (*result, error) {
			if err := s.examines(name); err != nil {
				return nil, err
			}
			v, ok := s.values.Get(name)
			if !ok {
				return nil, pgerr.New(codes.UndefinedObject, "unrecognized configuration parameter \"%s\"", name)
			}
			return &result{tag: "SHOW", rows: [][]any{{v}}}, nil
		},
	}, nil
}

// prepareDiscard prepares DISCARD.
func (s *session) prepareDiscard(n *pg.DiscardStmt) (pgwire.Statement, error) {
	word := strings.TrimPrefix(n.Target.String(), "DISCARD_")
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		if n.Target == pg.DiscardMode_DISCARD_ALL {
			if s.tx.open {
				return nil, pgerr.New(codes.ActiveSQLTransaction, "DISCARD ALL cannot run inside a transaction block")
			}
			s.values.ResetAll()
			if err := s.setIdentity("session_authorization", "", false); err != nil {
				return nil, err
			}
			s.closeCursors(true)
			s.prepared.DropNamed()
			s.notes.OnCommit("", false)
			s.locks.UnlockAll()
		}
		if n.Target != pg.DiscardMode_DISCARD_PLANS && n.Target != pg.DiscardMode_DISCARD_SEQUENCES && s.temp != nil {
			if err := s.discardTemp(ctx); err != nil {
				return nil, err
			}
		}
		return &result{tag: fmt.Sprintf("DISCARD %s", word)}, nil
	}}, nil
}
