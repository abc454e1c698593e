package duckdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/lake/duckdb/driver"
	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// Rows are sent in frames of about this many bytes; the first one sooner, for a quick
// first row.
const (
	frameRowsBytes      = 1 << 20
	frameRowsBytesFirst = 16 << 10
)

var errCanceled = errors.New("canceled")

// session answers the requests of one connection, one at a time, on one engine
// connection of its own.
type session struct {
	conn    *driver.Conn
	live    *liveCache
	deleted *deletedCache
	encoder EncoderFactory
	// settings are those in force on conn, beyond sessionDefaults.
	settings map[string]string
	out      []byte
}

// sessionDefaults make the engine answer as Postgres would, on every connection.
var sessionDefaults = map[string]string{"TimeZone": "UTC", "integer_division": "true"}

func newSession(w *worker) (*session, error) {
	conn, err := w.db.Connect()
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, live: w.live, deleted: w.deleted, encoder: w.encoder, settings: map[string]string{}}
	if err := s.apply(sessionDefaults); err != nil {
		conn.Close()
		return nil, err
	}
	clear(s.settings)
	return s, nil
}

func (s *session) close() { s.conn.Close() }

// describe prepares a plan over empty relations: no file or slice is touched.
func (s *session) describe(p *Plan) (*Description, error) {
	if err := s.apply(p.Settings); err != nil {
		return nil, err
	}
	texts := make(map[string]string, len(p.Relations))
	for i := range p.Relations {
		texts[p.Relations[i].Name] = emptySubquery(&p.Relations[i])
	}
	sql, err := rewrite(p.SQL, texts, nil)
	if err != nil {
		return nil, err
	}
	columns, params, err := s.conn.Describe(sql)
	if err != nil {
		return nil, err
	}
	d := &Description{Params: params}
	for _, c := range columns {
		d.Columns = append(d.Columns, DescribedColumn(c))
	}
	return d, nil
}

// query runs a plan and sends its rows to m.
func (s *session) query(ctx context.Context, p *Plan, m *messages) error {
	if err := s.apply(p.Settings); err != nil {
		return err
	}
	texts, release, err := s.relations(ctx, p)
	defer release()
	if err != nil {
		return err
	}
	params := p.Params
	if params == nil {
		params = []*string{}
	}
	sql, err := rewrite(p.SQL, texts, params)
	if err != nil {
		return err
	}
	err = s.run(ctx, sql, p.Output, m)
	if isInterrupt(err) && ctx.Err() == nil {
		return s.cause(ctx, sql)
	}
	return err
}

func (s *session) run(ctx context.Context, sql string, o Output, m *messages) error {
	stream, err := s.conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer stream.Close()
	return s.send(stream, o, m)
}

func isInterrupt(err error) bool {
	var e *EngineError
	return errors.As(err, &e) && e.Kind == KindInterrupted
}

// causeTries is how often a query is run again for its error.
const causeTries = 5

// cause finds the error of a query that ended with an interrupt nobody asked for: one
// of the engine's threads met the error, and another one answered. It runs the query
// again, for its error only.
func (s *session) cause(ctx context.Context, sql string) error {
	for range causeTries {
		err := s.drain(ctx, sql)
		if err != nil && (ctx.Err() != nil || !isInterrupt(err)) {
			return err
		}
	}
	return &EngineError{Kind: KindInternal, Message: "the query ended without saying why"}
}

func (s *session) drain(ctx context.Context, sql string) error {
	stream, err := s.conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		if chunk, err := stream.Next(); err != nil || chunk == nil {
			return err
		}
	}
}

// apply brings the connection's settings to want, over the defaults.
func (s *session) apply(want map[string]string) error {
	for name := range s.settings {
		if _, ok := want[name]; !ok {
			if err := s.set(name, ""); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if now, ok := s.settings[name]; ok && now == want[name] {
			continue
		}
		if err := s.set(name, want[name]); err != nil {
			return err
		}
	}
	return nil
}

// set sets one setting, or takes it back to the default when value is empty.
func (s *session) set(name, value string) error {
	for i := range len(name) {
		if !isWord(name[i]) {
			return fmt.Errorf("setting %q: %w", name, ErrPlan)
		}
	}
	text := fmt.Sprintf("SET SESSION %s = %s", name, quote.Text(value))
	if value == "" {
		text = "RESET SESSION " + name
		if d, ok := sessionDefaults[name]; ok {
			text = fmt.Sprintf("SET SESSION %s = %s", name, quote.Text(d))
		}
	}
	if err := s.conn.Exec(text); err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	if value == "" {
		delete(s.settings, name)
	} else {
		s.settings[name] = value
	}
	return nil
}

// relations makes the text of every relation. release frees what the texts name, after
// the stream was closed; it is never nil.
func (s *session) relations(ctx context.Context, p *Plan) (texts map[string]string, release func(), err error) {
	var releases []func()
	release = func() {
		for _, f := range releases {
			f()
		}
	}
	texts = make(map[string]string, len(p.Relations))
	for i := range p.Relations {
		r := &p.Relations[i]
		if len(r.Inline) > 0 {
			source, err := inlineSource(r.Inline, len(r.Columns))
			if err != nil {
				return nil, release, fmt.Errorf("relation %q: %w", r.Name, err)
			}
			releases = append(releases, source.Close)
			texts[r.Name] = inlineSubquery(r, source)
			continue
		}
		var view *liveView
		if r.Live != nil && len(r.Live.Slices) > 0 {
			if view, err = s.live.view(ctx, r); err != nil {
				return nil, release, err
			}
			releases = append(releases, view.release)
		}
		gone, leave, err := s.deleted.of(ctx, s.conn, r)
		releases = append(releases, leave)
		if err != nil {
			return nil, release, err
		}
		if texts[r.Name], err = subquery(r, view, gone); err != nil {
			return nil, release, err
		}
		if r.Own != nil {
			close, err := s.own(r, texts)
			releases = append(releases, close)
			if err != nil {
				return nil, release, fmt.Errorf("relation %q: %w", r.Name, err)
			}
		}
	}
	return texts, release, nil
}

// inlineSource publishes rows that came with the plan, of so many columns.
func inlineSource(rows []byte, columns int) (*driver.Source, error) {
	reader, err := ipc.NewReader(bytes.NewReader(rows))
	if err != nil {
		return nil, fmt.Errorf("read inline rows: %w", err)
	}
	defer reader.Release()
	given := reader.Schema()
	if given.NumFields() != columns {
		return nil, fmt.Errorf("%d inline columns for %d: %w", given.NumFields(), columns, ErrPlan)
	}
	fields := make([]arrow.Field, given.NumFields())
	for i := range fields {
		fields[i] = arrow.Field{Name: systemColumn(i), Type: given.Field(i).Type, Nullable: true}
	}
	var parts []driver.Part
	defer func() {
		for _, p := range parts {
			p.Block.Release()
		}
	}()
	for reader.Next() {
		block, err := driver.NewBlock(reader.RecordBatch())
		if err != nil {
			return nil, err
		}
		parts = append(parts, driver.Part{Block: block, All: true})
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("read inline rows: %w", err)
	}
	return driver.NewSource(arrow.NewSchema(fields, nil), parts)
}

func inlineSubquery(r *Relation, source *driver.Source) string {
	columns := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		columns[i] = fmt.Sprintf("CAST(%s AS %s) AS %s", systemColumn(i), c.EngineType, quote.Name(c.Name))
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + source.SQL()
}

// send encodes and sends the rows of a stream.
func (s *session) send(stream *driver.Stream, o Output, m *messages) error {
	encoder, err := s.encoderOf(stream.Columns(), o)
	if err != nil {
		return err
	}
	s.out = append(s.out[:0], make([]byte, rowsHeader)...)
	if header := encoder.Header(s.out); header != nil {
		s.out = header
	}
	rows, limit := 0, frameRowsBytesFirst
	for {
		chunk, err := stream.Next()
		if err != nil {
			return err
		}
		if chunk == nil {
			break
		}
		if s.out, err = encoder.Chunk(s.out, chunk); err != nil {
			return fmt.Errorf("encode rows: %w", err)
		}
		rows += chunk.Rows
		if len(s.out) >= limit {
			if err := m.sendRows(s.out, rows); err != nil {
				return err
			}
			s.out, rows, limit = s.out[:rowsHeader], 0, frameRowsBytes
		}
	}
	s.out = encoder.Trailer(s.out)
	if len(s.out) > rowsHeader || rows > 0 {
		if err := m.sendRows(s.out, rows); err != nil {
			return err
		}
	}
	if cap(s.out) > 2*frameRowsBytes {
		s.out = nil
	}
	return nil
}

func (s *session) encoderOf(columns []driver.Column, o Output) (RowEncoder, error) {
	if o.Kind == OutputArrow {
		return newArrowEncoder(columns)
	}
	if len(o.Columns) != len(columns) && (len(o.Columns) > 0 || len(columns) != 1) {
		return nil, fmt.Errorf("%d output columns for %d: %w", len(o.Columns), len(columns), ErrPlan)
	}
	if s.encoder == nil {
		return nil, fmt.Errorf("output %d without an encoder: %w", o.Kind, ErrPlan)
	}
	types := make([]vector.Type, len(columns))
	for i, c := range columns {
		types[i] = c.Type
	}
	encoder, err := s.encoder(o, types)
	if err != nil {
		return nil, fmt.Errorf("encoder: %w", err)
	}
	return encoder, nil
}
