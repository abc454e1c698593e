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
	// Row is what WHERE CURRENT OF stands for in AnalyzeWrite; nil: it is refused.
	Row *CurrentRow
}

// AtRow is the statement with WHERE CURRENT OF allowed: it stands for no row as yet.
func (p *Parsed) AtRow() *Parsed { return &Parsed{SQL: p.SQL, Node: p.Node, Row: &CurrentRow{}} }

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

// words name the nodes whose names do not say what they are in SQL: statements, and expressions.
var words = map[string]string{
	"AlterEnumStmt": "ALTER TYPE", "AlterTSConfigurationStmt": "ALTER TEXT SEARCH CONFIGURATION",
	"AlterTSDictionaryStmt": "ALTER TEXT SEARCH DICTIONARY", "AlterTableMoveAllStmt": "ALTER TABLE ALL", "AlterTableSpaceOptionsStmt": "ALTER TABLESPACE",
	"AlterFdwStmt": "ALTER FOREIGN DATA WRAPPER", "AlterForeignServerStmt": "ALTER SERVER", "AlterOpFamilyStmt": "ALTER OPERATOR FAMILY",
	"AlterSeqStmt": "ALTER SEQUENCE", "AlterStatsStmt": "ALTER STATISTICS", "AlterExtensionContentsStmt": "ALTER EXTENSION",
	"AlterDatabaseSetStmt": "ALTER DATABASE … SET", "CheckPointStmt": "CHECKPOINT", "CompositeTypeStmt": "CREATE TYPE",
	"CreateAmStmt": "CREATE ACCESS METHOD", "CreateEnumStmt": "CREATE TYPE", "CreateFdwStmt": "CREATE FOREIGN DATA WRAPPER",
	"CreateForeignServerStmt": "CREATE SERVER", "CreateOpClassStmt": "CREATE OPERATOR CLASS", "CreateOpFamilyStmt": "CREATE OPERATOR FAMILY",
	"CreatePlangStmt": "CREATE LANGUAGE", "CreateRangeStmt": "CREATE TYPE", "CreateSeqStmt": "CREATE SEQUENCE", "CreateStatsStmt": "CREATE STATISTICS",
	"CreateTableSpaceStmt": "CREATE TABLESPACE", "CreateTrigStmt": "CREATE TRIGGER", "CreateEventTrigStmt": "CREATE EVENT TRIGGER",
	"CreatedbStmt": "CREATE DATABASE", "DropdbStmt": "DROP DATABASE", "DropTableSpaceStmt": "DROP TABLESPACE",
	"IndexStmt": "CREATE INDEX", "RefreshMatViewStmt": "REFRESH MATERIALIZED VIEW", "RuleStmt": "CREATE RULE", "SecLabelStmt": "SECURITY LABEL",
	"ViewStmt": "CREATE VIEW", "CurrentOfExpr": "WHERE CURRENT OF", "MultiAssignRef": "assignment of a subquery to several columns",
	"NamedArgExpr": "a named argument", "XmlExpr": "XML", "XmlSerialize": "XMLSERIALIZE",
}

// Word is what a node is in SQL, for errors: "CREATE TRIGGER".
func Word(n *pg.Node) string {
	kind := NodeKind(n)
	object := func(o pg.ObjectType) string {
		word := strings.ReplaceAll(strings.TrimPrefix(o.String(), "OBJECT_"), "_", " ")
		return strings.NewReplacer("MATVIEW", "MATERIALIZED VIEW", "TABCONSTRAINT", "CONSTRAINT", "DOMCONSTRAINT", "CONSTRAINT", "FDW", "FOREIGN DATA WRAPPER",
			"TSCONFIGURATION", "TEXT SEARCH CONFIGURATION", "TSDICTIONARY", "TEXT SEARCH DICTIONARY").Replace(word)
	}
	switch v := n.GetNode().(type) {
	case *pg.Node_CreateTableAsStmt:
		if v.CreateTableAsStmt.Objtype == pg.ObjectType_OBJECT_MATVIEW {
			return "CREATE MATERIALIZED VIEW"
		}
		return "CREATE TABLE AS"
	case *pg.Node_DefineStmt:
		return "CREATE " + object(v.DefineStmt.Kind)
	case *pg.Node_CommentStmt:
		return "COMMENT ON " + object(v.CommentStmt.Objtype)
	case *pg.Node_RenameStmt:
		return "ALTER " + object(v.RenameStmt.RenameType) + " … RENAME"
	case *pg.Node_AlterOwnerStmt:
		return "ALTER " + object(v.AlterOwnerStmt.ObjectType) + " … OWNER TO"
	case *pg.Node_AlterObjectSchemaStmt:
		return "ALTER " + object(v.AlterObjectSchemaStmt.ObjectType) + " … SET SCHEMA"
	case *pg.Node_AlterObjectDependsStmt:
		return "ALTER " + object(v.AlterObjectDependsStmt.ObjectType) + " … DEPENDS ON"
	case *pg.Node_AlterTableStmt:
		return "ALTER " + object(v.AlterTableStmt.Objtype)
	case *pg.Node_DropStmt:
		return "DROP " + object(v.DropStmt.RemoveType)
	}
	if word, ok := words[kind]; ok {
		return word
	}
	var b strings.Builder // CreatePolicyStmt
	for i, r := range strings.TrimSuffix(kind, "Stmt") {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
