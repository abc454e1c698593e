package pgsql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Piece is one statement of a string.
type Piece struct {
	SQL string
	// Offset is where it starts in the string, in characters.
	Offset int32
}

// Parsed is one parsed statement.
type Parsed struct {
	SQL  string
	Node *pg.Node // nil for an empty statement
}

// maxStatementBytes bounds what the parser is given.
const maxStatementBytes = 16 << 20

// Parse parses exactly one statement. A syntax error is a *pgerr.Error 42601 with
// its position; several statements are an error too.
func Parse(sql string) (*Parsed, error) {
	if len(sql) > maxStatementBytes {
		return nil, unsupported("statement is longer than %d bytes", maxStatementBytes)
	}
	if !strings.Contains(sql, "\x00") {
		tree, err := pg.Parse(sql)
		if err != nil {
			return nil, syntaxError(sql, err)
		}
		switch len(tree.Stmts) {
		case 0:
			return &Parsed{SQL: sql}, nil
		case 1:
			return &Parsed{SQL: sql, Node: tree.Stmts[0].Stmt}, nil
		}
		return nil, errMultiple
	}
	return nil, errNul
}

// Split cuts a string into its statements and checks the syntax of each that is
// not ours. ours says that a statement belongs to another grammar.
func Split(sql string, ours func(string) bool) ([]Piece, error) {
	if strings.Contains(sql, "\x00") {
		return nil, errNul
	}
	tree, err := pg.Parse(sql)
	if err == nil {
		var out []Piece
		for _, st := range tree.Stmts {
			start, n := int(st.StmtLocation), int(st.StmtLen)
			if n == 0 {
				n = len(sql) - start
			}
			out = append(out, piece(sql, start, start+n))
		}
		return out, nil
	}
	whole := syntaxError(sql, err)
	cuts, serr := cut(sql)
	if serr != nil {
		return nil, whole
	}
	var out []Piece
	for _, p := range cuts {
		if !ours(p.SQL) {
			if _, err := Parse(p.SQL); err != nil {
				return nil, shift(err, p.Offset)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// piece trims blanks around a statement; comments stay, they are part of its text.
func piece(sql string, start, end int) Piece {
	for start < end && strings.IndexByte(" \t\r\n", sql[start]) >= 0 {
		start++
	}
	for end > start && strings.IndexByte(" \t\r\n", sql[end-1]) >= 0 {
		end--
	}
	return Piece{SQL: sql[start:end], Offset: charPosition(sql, int32(start)) - 1}
}

// cut splits at the semicolons that the scanner sees outside of parentheses.
func cut(sql string) ([]Piece, error) {
	scan, err := pg.Scan(sql)
	if err != nil {
		return nil, err
	}
	var out []Piece
	start, depth, seen := 0, 0, false
	flush := func(end int) {
		if seen {
			out = append(out, piece(sql, start, end))
		}
		seen = false
	}
	for _, t := range scan.Tokens {
		switch t.Token {
		case pg.Token_ASCII_40:
			depth++
			seen = true
		case pg.Token_ASCII_41:
			depth--
			seen = true
		case pg.Token_ASCII_59:
			if depth <= 0 {
				flush(int(t.Start))
				start = int(t.End)
			}
		case pg.Token_SQL_COMMENT, pg.Token_C_COMMENT:
		default:
			seen = true
		}
	}
	flush(len(sql))
	return out, nil
}

// NodeKind is the name of a statement's node: "InsertStmt".
func NodeKind(n *pg.Node) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", n.GetNode()), "*pg_query.Node_")
}
