package planner

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/pgwire"
)

var _ ddl.Querier = ddlSession{}

// Query implements ddl.Querier: it runs a query of a statement's own in its session.
func (d ddlSession) Query(ctx context.Context, sql string) ([][]string, error) {
	st, err := d.session.prepare(ctx, sql, nil)
	if err != nil {
		return nil, err
	}
	portal, err := st.Bind(ctx, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	defer portal.Close()
	rows := &textRows{Sink: d.sink}
	if _, _, err := portal.Execute(ctx, rows, 0); err != nil {
		return nil, err
	}
	return rows.all, nil
}

// textRows is a sink that keeps rows; what else is told goes to the client.
type textRows struct {
	pgwire.Sink
	all [][]string
}

// Rows implements pgwire.Sink. A null is an empty text.
func (t *textRows) Rows(messages []byte, n int) error {
	const header = 5 // kind and length
	for range n {
		if len(messages) < header+2 {
			return fmt.Errorf("row of %d bytes", len(messages))
		}
		size := int(binary.BigEndian.Uint32(messages[1:])) + 1
		if size < header+2 || size > len(messages) {
			return fmt.Errorf("row of %d bytes in %d", size, len(messages))
		}
		b := messages[header:size]
		row := make([]string, binary.BigEndian.Uint16(b))
		b = b[2:]
		for i := range row {
			if len(b) < 4 {
				return fmt.Errorf("value of a row is cut short")
			}
			length := int32(binary.BigEndian.Uint32(b))
			if b = b[4:]; length < 0 {
				continue
			}
			if int(length) > len(b) {
				return fmt.Errorf("value of a row is cut short")
			}
			row[i], b = string(b[:length]), b[length:]
		}
		t.all, messages = append(t.all, row), messages[size:]
	}
	return nil
}
