// Package ddl is the statements of our own: secrets, connections, pipelines, and
// the SHOW forms that list them. It owns their lexer, parser, option registry and
// executor; what they make happen is behind Controller.
//
// Reading order: IsOurs, Parse, the statement types in ast.go, Executor, Controller.
// The grammar follows PostgreSQL's publication and subscription words.
package ddl
