package generated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/postgres/literal"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// Querier asks the server. Parameters and values are texts, nil for null; values are valid
// during the call of row, whose error ends the query.
type Querier interface {
	Query(ctx context.Context, sql string, params [][]byte, row func(values [][]byte) error) error
}

// ErrDefinition means that the server does not know what an expression names, or that the
// role may not use it: no row can be computed.
var ErrDefinition = errors.New("expression cannot be evaluated")

// Refused is a row that has a value which cannot be taken in.
type Refused struct {
	Row    int
	Column string
	Err    *value.Error
}

// BytesMax bounds the values of a row, and of the rows that are asked for at once.
const BytesMax = 64 << 20

// errTooMuch means that rows have more values than are to be held at once.
var errTooMuch = errors.New("values are too large")

// tooLarge refuses a row whose values are.
var tooLarge = &value.Error{Class: "is larger than can be made durable at once"}

// Values computes the columns of r for the rows of a batch, system columns first, at
// schema version s; decode gives the decoder of a field's text. The arrays, in the order of
// r.Fields, are the caller's. Rows that delete by a key have nulls, and so have those that
// are refused. It wraps ErrDefinition.
func (r *Recipe) Values(ctx context.Context, q Querier, s *schema.Table, rec arrow.RecordBatch,
	decode func(schema.Field) (value.Decoder, error),
) ([]arrow.Array, []Refused, error) {
	v := &values{recipe: r, ask: q, schema: s, record: rec, texts: make([][]*string, rec.NumRows())}
	ops := rec.Column(0).(*array.Uint8)
	var rows []int
	for i := range ops.Len() {
		if change.Op(ops.Value(i)) != change.Delete || s.WholeRow {
			rows = append(rows, i)
		}
	}
	if err := v.compute(ctx, rows); err != nil {
		return nil, nil, err
	}
	out := make([]arrow.Array, 0, len(r.Fields))
	for n, at := range r.Fields {
		d, err := decode(s.Fields[at])
		if err != nil {
			release(out)
			return nil, nil, fmt.Errorf("column %s: %w", quote.Name(s.Fields[at].Name), err)
		}
		a, err := v.column(n, s.Fields[at], d)
		if err != nil {
			release(out)
			return nil, nil, err
		}
		out = append(out, a)
	}
	return out, v.refused, nil
}

func release(all []arrow.Array) {
	for _, a := range all {
		a.Release()
	}
}

// values are those of one record.
type values struct {
	recipe  *Recipe
	ask     Querier
	schema  *schema.Table
	record  arrow.RecordBatch
	texts   [][]*string // by row; nil: it is refused, or has none
	refused []Refused
}

// compute asks for rows: all together, and in halves where that fails because of one.
func (v *values) compute(ctx context.Context, rows []int) error {
	if len(rows) == 0 {
		return nil
	}
	err := v.query(ctx, rows)
	class, server := classOf(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTooMuch) && len(rows) == 1:
		v.refuse(rows[0], tooLarge)
		return nil
	case !errors.Is(err, errTooMuch) && !server:
		return err
	case server && aboutDefinition(class):
		return fmt.Errorf("%w: %w", ErrDefinition, err)
	case len(rows) == 1:
		v.refuse(rows[0], &value.Error{Class: "cannot be computed again: the source says SQLSTATE " + sqlState(err)})
		return nil
	}
	half := len(rows) / 2
	if err := v.compute(ctx, rows[:half]); err != nil {
		return err
	}
	return v.compute(ctx, rows[half:])
}

// classOf is the class of a server's error that is about the query and what it reads, not
// about the connection or the server's state.
func classOf(err error) (class string, ok bool) {
	state := sqlState(err)
	if len(state) != 5 {
		return "", false
	}
	switch class = state[:2]; class {
	case "08", "25", "40", "53", "55", "57", "58", "XX":
		return class, false
	}
	return class, true
}

// aboutDefinition says of a class of errors that it is about names and rights.
func aboutDefinition(class string) bool { return class == "42" || class == "0A" || class == "3F" }

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

func (v *values) refuse(row int, why *value.Error) {
	v.refused = append(v.refused, Refused{Row: row, Column: v.schema.Fields[v.recipe.Fields[0]].Name, Err: why})
}

// query asks for the values of rows and keeps their texts.
func (v *values) query(ctx context.Context, rows []int) error {
	params := [][]byte{strconv.AppendInt(nil, int64(len(rows)), 10)}
	for _, at := range v.recipe.Inputs {
		text, err := literal.Some(v.record.Column(change.SystemColumns+at), rows)
		if err != nil {
			return fmt.Errorf("column %s: %w", quote.Name(v.schema.Fields[at].Name), err)
		}
		params = append(params, []byte(text))
	}
	n, bytes := 0, 0
	err := v.ask.Query(ctx, v.recipe.SQL, params, func(got [][]byte) error {
		if len(got) != len(v.recipe.Fields)+1 || n >= len(rows) || string(got[0]) != strconv.Itoa(n+1) {
			return fmt.Errorf("row %d of %d: %w", n+1, len(rows), errAnswer)
		}
		texts := make([]*string, len(got)-1)
		for i, b := range got[1:] {
			if b == nil {
				continue
			}
			if bytes += len(b); bytes > BytesMax {
				return errTooMuch
			}
			text := string(b)
			texts[i] = &text
		}
		v.texts[rows[n]] = texts
		n++
		return nil
	})
	if err == nil && n != len(rows) {
		err = fmt.Errorf("%d of %d rows: %w", n, len(rows), errAnswer)
	}
	return err
}

var errAnswer = errors.New("the server's answer has other rows than were asked for")

// column is a computed column.
func (v *values) column(n int, f schema.Field, decode value.Decoder) (arrow.Array, error) {
	b := array.NewBuilder(memory.DefaultAllocator, schema.ArrowType(f.Type))
	defer b.Release()
	b.Reserve(len(v.texts))
	for row, texts := range v.texts {
		if texts == nil || texts[n] == nil || v.isRefused(row) {
			b.AppendNull()
			continue
		}
		err := decode(b, []byte(*texts[n]))
		var why *value.Error
		if errors.As(err, &why) {
			if b.Len() == row {
				b.AppendNull()
			}
			v.refused = append(v.refused, Refused{Row: row, Column: f.Name, Err: why})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", quote.Name(f.Name), err)
		}
	}
	return b.NewArray(), nil
}

func (v *values) isRefused(row int) bool {
	return slices.ContainsFunc(v.refused, func(r Refused) bool { return r.Row == row })
}

// Explain says what is wrong with an expression, from an error that wraps ErrDefinition.
func Explain(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.TrimSuffix(pg.Message, ".")
	}
	return err.Error()
}
