// Package block reads the blocks of DO: statements one after another, conditions, and
// what becomes of errors. It is not PL/pgSQL: a block has no variables, loops or
// functions, and what it cannot do without them is refused. It runs nothing.
package block
