package block

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Step is one of a block's: exactly one of its fields is set.
type Step struct {
	// Run is a statement, which must give no rows.
	Run string
	// Perform is a query, whose rows nobody sees.
	Perform string
	// If are conditions with what is done for the first that holds.
	If []Branch
	// Block is a block within it.
	Block *Block
	// Line is where the step is, as PostgreSQL counts, from 1.
	Line int
}

// Branch is what is done where a condition holds, an expression; "" always does.
type Branch struct {
	Condition string
	Steps     []Step
}

// Block is what is done as a whole: where one of its steps fails, and a handler is for
// the error, all that they did is undone, and the handler's steps are run.
type Block struct {
	Steps    []Step
	Handlers []Handler
}

// Handler is for errors that have one of its codes: of five characters, of which "000" at
// the end stands for the whole class, or "others" for all that a client has not asked for.
type Handler struct {
	Codes []string
	Steps []Step
}

// For says that the handler is for an error.
func (h *Handler) For(code string) bool {
	for _, c := range h.Codes {
		switch {
		case c == code,
			c == others && code != string(codes.QueryCanceled) && code != string(codes.AssertFailure),
			strings.HasSuffix(c, "000") && c[:2] == code[:2]:
			return true
		}
	}
	return false
}

const others = "others"

// Parse reads a DO statement.
func Parse(sql string) (*Block, error) {
	text, err := pg.ParsePlPgSqlToJSON(sql)
	if err != nil {
		code := codes.Syntax
		if strings.HasPrefix(err.Error(), "unrecognized exception condition") {
			code = codes.UndefinedObject
		}
		return nil, pgerr.New(code, "%s", err)
	}
	var all []struct {
		F function `json:"PLpgSQL_function"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("read a block: %w", err)
	}
	if len(all) != 1 {
		return nil, errors.New("not one block")
	}
	for _, d := range all[0].F.Datums {
		if !d.given() {
			return nil, refused("variables")
		}
	}
	step, err := one(all[0].F.Action)
	if err != nil {
		return nil, err
	}
	return step.Block, nil
}

func refused(what string) error {
	return pgerr.New(codes.FeatureNotSupported, "%s are not supported in DO", what).
		WithHint("A block has statements, IF and EXCEPTION. Send the statements themselves, in a transaction.")
}

// What the parser gives, as far as it is looked at.
type (
	function struct {
		Datums []datum `json:"datums"`
		Action node    `json:"action"`
	}
	node  map[string]json.RawMessage
	datum map[string]struct {
		Name string `json:"refname"`
	}
	query struct {
		E struct {
			Query string `json:"query"`
		} `json:"PLpgSQL_expr"`
	}
	statement struct {
		Line       int             `json:"lineno"`
		Body       []node          `json:"body"`
		Label      string          `json:"label"`
		Exceptions json.RawMessage `json:"exceptions"`
		SQL        query           `json:"sqlstmt"`
		Into       bool            `json:"into"`
		Expr       *query          `json:"expr"`
		Cond       query           `json:"cond"`
		Then       []node          `json:"then_body"`
		Elsif      []struct {
			E struct {
				Cond  query  `json:"cond"`
				Steps []node `json:"stmts"`
			} `json:"PLpgSQL_if_elsif"`
		} `json:"elsif_list"`
		Else []node `json:"else_body"`
	}
)

// given says that a variable is one of those that all blocks have.
func (d datum) given() bool {
	v, ok := d["PLpgSQL_var"]
	return ok && (v.Name == "found" || v.Name == "sqlstate" || v.Name == "sqlerrm")
}

func steps(list []node) ([]Step, error) {
	var out []Step
	for _, n := range list {
		s, err := one(n)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, *s)
		}
	}
	return out, nil
}

// one reads a step, nil for the RETURN that ends each block.
func one(n node) (*Step, error) {
	for kind, raw := range n {
		var s statement
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("read a statement of a block: %w", err)
		}
		var err error
		out := &Step{Line: s.Line}
		switch kind {
		case "PLpgSQL_stmt_block":
			out.Block, err = s.block()
		case "PLpgSQL_stmt_if":
			out.If, err = s.branches()
		case "PLpgSQL_stmt_perform":
			out.Perform = s.Expr.E.Query
		case "PLpgSQL_stmt_execsql":
			if out.Run = s.SQL.E.Query; s.Into {
				err = refused("variables")
			}
		case "PLpgSQL_stmt_return":
			if s.Expr == nil {
				return nil, nil
			}
			err = pgerr.New(codes.DatatypeMismatch, "RETURN cannot have a parameter in function returning void")
		case "PLpgSQL_stmt_raise":
			err = refused("RAISE and ASSERT")
		case "PLpgSQL_stmt_dynexecute":
			err = refused("EXECUTE and its kin")
		default:
			err = refused("statements of PL/pgSQL other than IF, PERFORM and NULL")
		}
		return out, err
	}
	return nil, errors.New("a statement of a block that is none")
}

func (s *statement) block() (*Block, error) {
	body, err := steps(s.Body)
	if err != nil || s.Exceptions == nil {
		return &Block{Steps: body}, err
	}
	var x struct {
		E struct {
			List []struct {
				H struct {
					Conditions []struct {
						C struct {
							Name string `json:"condname"`
						} `json:"PLpgSQL_condition"`
					} `json:"conditions"`
					Action []node `json:"action"`
				} `json:"PLpgSQL_exception"`
			} `json:"exc_list"`
		} `json:"PLpgSQL_exception_block"`
	}
	if err := json.Unmarshal(s.Exceptions, &x); err != nil {
		return nil, fmt.Errorf("read the handlers of a block: %w", err)
	}
	b := &Block{Steps: body}
	for _, e := range x.E.List {
		var h Handler
		for _, c := range e.H.Conditions {
			h.Codes = append(h.Codes, codesOf(c.C.Name)...)
		}
		if h.Steps, err = steps(e.H.Action); err != nil {
			return nil, err
		}
		b.Handlers = append(b.Handlers, h)
	}
	return b, nil
}

func (s *statement) branches() ([]Branch, error) {
	var out []Branch
	add := func(condition string, list []node) error {
		done, err := steps(list)
		out = append(out, Branch{Condition: condition, Steps: done})
		return err
	}
	if err := add(s.Cond.E.Query, s.Then); err != nil {
		return nil, err
	}
	for _, e := range s.Elsif {
		if err := add(e.E.Cond.E.Query, e.E.Steps); err != nil {
			return nil, err
		}
	}
	return out, add("", s.Else)
}
