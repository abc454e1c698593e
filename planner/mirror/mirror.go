// Package mirror reads whole tables at a moment of their source as the text that our wire
// has for them: our side of a comparison with the source.
package mirror

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/verify"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/change"
)

// Mirror is a pin of tables at a moment. Used by one goroutine.
type Mirror struct {
	runner planner.Runner
	pin    map[change.TableID]*planner.TablesPin
	tables map[change.TableID]*catalog.Table
}

var _ verify.Here = (*Mirror)(nil)

// Reader makes mirrors. Safe for concurrent use.
type Reader struct {
	Pinner *planner.Pinner
	Runner planner.Runner
}

var _ verify.Mirror = (*Reader)(nil)

// Pin implements verify.Mirror. The caller releases the mirror; keeping the log meanwhile is
// its business, too.
func (r *Reader) Pin(ctx context.Context, snap *catalog.Snapshot, tables []*verify.Table, at verify.Moment) (verify.Pinned, error) {
	m := &Mirror{runner: r.Runner, pin: map[change.TableID]*planner.TablesPin{}, tables: map[change.TableID]*catalog.Table{}}
	moment := planner.Moment{Before: at.Before, Known: at.Known}
	for _, v := range tables {
		if v.Skip != "" {
			continue
		}
		t, err := snap.TableByID(v.ID)
		if err != nil {
			v.Skip = "it was dropped meanwhile"
			continue
		}
		use := planner.WholeTable(t)
		use.Moment = &moment
		pin, err := r.Pinner.Plan(ctx, snap, []planner.TableUse{use})
		switch {
		case errors.Is(err, planner.ErrTruncatedSince):
			v.Skip = verify.SkipTruncated
			continue
		case err != nil:
			m.Release()
			return nil, fmt.Errorf("pin table %s: %w", v.Name, err)
		}
		m.pin[v.ID], m.tables[v.ID] = pin, t
	}
	return m, nil
}

// Release lets go of the lake's snapshots; it may be called again.
func (m *Mirror) Release() {
	for _, p := range m.pin {
		p.Release()
	}
}

// format is that of the sessions that read sources.
var format = duckdb.Format{
	TimeZone: "UTC", DateStyle: "ISO, MDY", IntervalStyle: "postgres", ByteaOutput: "hex", ExtraFloatDigits: 1,
}

// Rows implements verify.Here.
func (m *Mirror) Rows(ctx context.Context, v *verify.Table, emit func(row verify.Cells) error) error {
	t, pin := m.tables[v.ID], m.pin[v.ID]
	r := pin.Relations[0]
	plan := &duckdb.Plan{
		Relations: pin.Relations, Settings: map[string]string{"TimeZone": "UTC"},
		Output: duckdb.Output{Kind: duckdb.OutputRows, Format: format},
	}
	var list []string
	for _, name := range v.Columns {
		for _, f := range t.Current.Fields {
			if f.Name == name {
				list = append(list, "r."+quote.Name(name))
				kind := planner.AnnouncedType(f)
				plan.Output.Columns = append(plan.Output.Columns, duckdb.OutputColumn{Name: name, TypeOID: kind.OID, TypMod: kind.Mod})
			}
		}
	}
	if len(list) != len(v.Columns) {
		return &verify.SkipError{Reason: "its columns have changed meanwhile: run it again"}
	}
	plan.SQL = "SELECT " + strings.Join(list, ", ") + " FROM " + quote.Name(r.Name) + " AS r"
	rows, err := m.runner.Query(ctx, plan)
	if err != nil {
		return lost(err)
	}
	defer rows.Close()
	cells := make(verify.Cells, len(list))
	for {
		frame, err := rows.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return lost(err)
		}
		if err := each(frame.Data, cells, emit); err != nil {
			return err
		}
	}
}

// lost tells apart the end of the log that the pin needs.
func lost(err error) error {
	if errors.Is(err, duckdb.ErrSliceLost) {
		return &verify.SkipError{Reason: "the log was kept for as long as it may be, and is gone: compare fewer tables, or ALTER PIPELINE … COMPACT first"}
	}
	return err
}

var errMessage = errors.New("the engine sent a row that cannot be read")

// each reads DataRow messages.
func each(data []byte, cells verify.Cells, emit func(verify.Cells) error) error {
	const head = 1 + 4 + 2
	for len(data) > 0 {
		if len(data) < head || data[0] != 'D' {
			return errMessage
		}
		n := 1 + int(binary.BigEndian.Uint32(data[1:]))
		if n < head || n > len(data) || int(binary.BigEndian.Uint16(data[5:])) != len(cells) {
			return errMessage
		}
		body := data[head:n]
		for i := range cells {
			if len(body) < 4 {
				return errMessage
			}
			size := int32(binary.BigEndian.Uint32(body))
			body = body[4:]
			if size < 0 {
				cells[i] = nil
				continue
			}
			if int(size) > len(body) {
				return errMessage
			}
			cells[i], body = body[:size:size], body[size:]
		}
		if err := emit(cells); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
