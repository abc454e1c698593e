package lake

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog/schema"
)

// Column is what field f of a later schema version has in rows written as version from:
// the column with its id, widened, whatever its name was; or, when the rows are older
// than the field, its initial value. own are the rows' columns, in the order of
// from.Fields. The caller releases the result. It wraps ErrNoWidening.
func Column(own []arrow.Array, rows int, from *schema.Table, f schema.Field) (arrow.Array, error) {
	i := from.Index(f.ID)
	if i < 0 {
		c, err := schema.InitialColumn(f, rows)
		if err != nil {
			return nil, fmt.Errorf("initial value: %w", err)
		}
		return c, nil
	}
	if i >= len(own) {
		return nil, fmt.Errorf("column %q: rows of schema version %d have %d columns, want %d", f.Name, from.Version,
			len(own), len(from.Fields))
	}
	c, err := Widen(own[i], schema.ArrowType(f.Type))
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", f.Name, err)
	}
	return c, nil
}
