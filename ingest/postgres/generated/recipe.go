package generated

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// Recipe is a query that computes columns of one schema version for many rows at once.
type Recipe struct {
	// Fields are the places of the computed columns in the schema, Inputs those of the
	// columns that their expressions read.
	Fields, Inputs []int
	// SQL takes the number of rows and, for each of Inputs, an array of texts. It returns
	// the number of each row, from 1, and the computed values.
	SQL string
}

// NewRecipe writes the query for the columns of s that are computed and not sent.
func NewRecipe(s *schema.Table) (*Recipe, error) {
	r := &Recipe{}
	var levels []string
	for i, f := range s.Fields {
		if !f.Unsent() {
			continue
		}
		sql, err := r.level(s, f)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", quote.Name(f.Name), err)
		}
		r.Fields, levels = append(r.Fields, i), append(levels, sql)
	}
	args := []string{"pg_catalog.generate_series(1::pg_catalog.int8, $1::pg_catalog.int8)"}
	names := []string{number}
	for i, at := range r.Inputs {
		kind := "pg_catalog.text"
		if in := inputOf(s, at); !in.Cast {
			kind = in.Type
		}
		args = append(args, fmt.Sprintf("pg_catalog.unnest($%d::%s[])", i+2, kind))
		names = append(names, argument(i))
	}
	r.SQL = fmt.Sprintf("SELECT %s, %s FROM ROWS FROM (%s) AS _skippr_r(%s) ORDER BY %[1]s",
		number, strings.Join(levels, ", "), strings.Join(args, ", "), strings.Join(names, ", "))
	return r, nil
}

// number is the column with the number of a row.
const number = "_skippr_n"

func argument(i int) string { return "_skippr_a" + strconv.Itoa(i) }

// level is the expression of one column, over the names that it knows its inputs by.
func (r *Recipe) level(s *schema.Table, f schema.Field) (string, error) {
	columns := make([]string, len(f.Computed.Inputs))
	for i, in := range f.Computed.Inputs {
		at := slices.IndexFunc(s.Fields, func(f schema.Field) bool { return f.AttNum == in.AttNum })
		if at < 0 || s.Fields[at].Unsent() {
			return "", fmt.Errorf("it reads column %s, which is not here", quote.Name(in.Name))
		}
		place := slices.Index(r.Inputs, at)
		if place < 0 {
			place = len(r.Inputs)
			r.Inputs = append(r.Inputs, at)
		}
		columns[i] = argument(place)
		if in.Cast {
			columns[i] += "::" + in.Type
		}
		if in.Collation != "" {
			columns[i] += " COLLATE " + in.Collation
		}
		columns[i] += " AS " + quote.Name(in.Name)
	}
	value := fmt.Sprintf("(%s)::%s", f.Computed.Expr, f.Computed.Type)
	if len(columns) == 0 {
		return value, nil
	}
	return fmt.Sprintf("(SELECT %s FROM (SELECT %s) AS _skippr_v)", value, strings.Join(columns, ", ")), nil
}

// inputOf is what the expressions say of the column at a place.
func inputOf(s *schema.Table, at int) schema.Input {
	for _, f := range s.Fields {
		if !f.Unsent() {
			continue
		}
		for _, in := range f.Computed.Inputs {
			if in.AttNum == s.Fields[at].AttNum {
				return in
			}
		}
	}
	return schema.Input{}
}
