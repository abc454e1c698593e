package ingest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/change"
)

// act is a description of the scripted table followed by rows of it, upserts of "id|…" or
// deletes of "-id".
type act struct {
	columns string
	rows    []string
}

// script is the history of a source with one table: a transaction per position.
var script = [][]act{
	{{"id int4 1, v text 2", []string{"1|a", "2|b"}}},
	{{"id int4 1, v text 2, n int4 3 = 7", []string{"3|c|30"}}},
	{{"id int4 1, v text 2, n int4 3 = 7", []string{"1|a|10"}}},
	{
		{"id int4 1, v text 2, n int4 3 = 7", []string{"4|d|40"}},
		{"id int8 1, n text 2, v int8 3", []string{"5|e|50"}}, // swapped and widened, in one transaction
		{"id int8 1, n text 2", []string{"6|f"}},              // and dropped
	},
	{{"id int8 1, n text 2, v text 4", []string{"2|bb|x", "-3"}}}, // another under the old name
	{{"key int8 1, n text 2, v text 4", []string{"7|g|y"}}},
	{{"key int8 1, v text 4, n text 2", []string{"8|z|h"}}},
	{{"key int8 1, v text 4, n text 2, w text 5 = ww", nil}, {"key int8 1, v text 4, n text 2, w text 5", []string{"-4"}}},
	{{"key int8 1, v text 4, n text 2, w text 5", []string{"1|1|1|1"}}},
}

// What the catalog must have at the end: the versions of the history, however often it
// was cut short, and the rows. Their numbers may leave out those of transactions in parts
// that were given up.
var (
	scriptVersions = []string{
		"1 id, 2 v", "1 id, 2 v, 3 n=7", "1 id, 2 n, 3 v=7", "1 id, 2 n", "1 id, 2 n, 4 v",
		"1 key, 2 n, 4 v", "1 key, 4 v, 2 n", "1 key, 4 v, 2 n, 5 w=ww",
	}
	scriptRows = []string{"1|1|1|1", "2|x|bb|ww", "5|NULL|e|ww", "6|NULL|f|ww", "7|y|g|ww", "8|z|h|ww"}
)

// scripted is a source of the script.
type scripted struct {
	ended chan struct{}
}

func parseColumns(text string) (cols []ingest.SourceColumn, key []string) {
	for one := range strings.SplitSeq(text, ", ") {
		one, initial, has := strings.Cut(one, " = ")
		f := strings.Fields(one)
		c := ingest.SourceColumn{Name: f[0], TypMod: -1}
		switch f[1] {
		case "int4":
			c.OID, c.Type = schema.OIDInt4, schema.Type{Kind: schema.Int32}
		case "int8":
			c.OID, c.Type = schema.OIDInt8, schema.Type{Kind: schema.Int64}
		case "text":
			c.OID, c.Type = schema.OIDText, schema.Type{Kind: schema.String}
		}
		n, err := strconv.ParseInt(f[2], 10, 16)
		if err != nil {
			panic(err)
		}
		c.AttNum = int16(n)
		if has {
			c.Initial = &initial
		}
		cols = append(cols, c)
	}
	return cols, []string{cols[0].Name}
}

func (s *scripted) Discover(context.Context, catalog.TableSelection) ([]ingest.SourceTable, error) {
	cols, key := parseColumns(script[0][0].columns)
	return []ingest.SourceTable{{Schema: "s", Name: "t", OID: 1, Columns: cols, Key: key}}, nil
}

func (s *scripted) Setup(_ context.Context, state []byte, _ []ingest.SourceTable) (ingest.SetupResult, error) {
	return ingest.SetupResult{State: []byte("{}"), Created: len(state) == 0, Start: "0"}, nil
}

func (s *scripted) Backfill(context.Context) (ingest.Backfill, error) { return noRows{}, nil }

// noRows is the copy of an empty table.
type noRows struct{}

func (noRows) Horizon() change.Position                                   { return "0" }
func (noRows) Exact() bool                                                { return true }
func (noRows) Plan(context.Context, ingest.SourceTable) ([]string, error) { return nil, nil }
func (noRows) Parallel() int                                              { return 1 }
func (noRows) Close() error                                               { return nil }
func (noRows) Describe(context.Context, map[uint32]catalog.SelectedTable, bool) (map[uint32]ingest.SourceTable, error) {
	return nil, nil
}

func (noRows) Read(context.Context, ingest.SourceTable, *schema.Table, string, int64, func(*change.Batch) error) error {
	return errors.New("there is nothing to read")
}

func (s *scripted) Stream(ctx context.Context, from change.Position, tables []ingest.StreamTable, sink ingest.Sink) error {
	version := tables[0].Schema
	described := ""
	for i := number(from); i < int64(len(script)); i++ {
		if err := sink.Begin(i+1, time.Unix(1000, 0)); err != nil {
			return err
		}
		ordinal := int32(0)
		for _, a := range script[i] {
			if a.columns != described { // as a source describes a table before its first change
				cols, key := parseColumns(a.columns)
				var err error
				if version, err = sink.Evolve(tables[0].ID, ingest.SchemaChange{Columns: cols, Key: key}); err != nil {
					return err
				}
				described = a.columns
			}
			b, err := sink.Builder(tables[0].ID)
			if err != nil {
				return err
			}
			for _, r := range a.rows {
				addRow(b, version, r, i+1, ordinal)
				ordinal++
			}
		}
		if err := sink.Commit(change.Position(strconv.FormatInt(i+1, 10))); err != nil {
			return err
		}
	}
	close(s.ended)
	<-ctx.Done()
	return context.Cause(ctx)
}

func addRow(b *change.Builder, s *schema.Table, row string, token int64, ordinal int32) {
	op, values := change.Update, strings.Split(row, "|")
	if strings.HasPrefix(row, "-") {
		op, values = change.Delete, []string{row[1:]}
	}
	b.Add(op, token, ordinal)
	for i := range s.Fields {
		if i >= len(values) {
			b.Column(i).AppendNull()
		} else if err := b.Column(i).AppendValueFromString(values[i]); err != nil {
			panic(err)
		}
	}
}

func (s *scripted) Ack(change.Position)              {}
func (s *scripted) Compare(a, b change.Position) int { return int(number(a) - number(b)) }
func (s *scripted) Close() error                     { return nil }
func (s *scripted) Status(context.Context) (ingest.SourceStatus, error) {
	return ingest.SourceStatus{}, nil
}

func (s *scripted) Teardown(context.Context, []byte) ([]string, error) { return nil, nil }

// TestEvolveKill ends the server at each instant of each append of a history full of
// schema changes: the versions and field ids are those of a history without a crash (S1),
// and every row is read under the last version (D2).
func TestEvolveKill(t *testing.T) {
	for _, kill := range []killPoint{never, beforeDurable, beforePublish, beforeReturn} {
		for after := range 9 {
			if kill == never && after > 0 {
				continue
			}
			t.Run(fmt.Sprintf("%d/%d", kill, after), func(t *testing.T) {
				t.Parallel()
				testEvolveKill(t, kill, after)
			})
		}
	}
}

func testEvolveKill(t *testing.T, kill killPoint, after int) {
	factory := func(context.Context, ingest.ResolvedConnection, *catalog.Pipeline, ingest.SourceDeps) (ingest.Source, error) {
		return &scripted{ended: make(chan struct{})}, nil
	}
	w := newWorldAs(t, func(w *world) { w.factory, w.group = factory, 1 }) // each transaction is a group
	if kill != never {
		died := w.disk.killAt(kill, after)
		w.startDoomed()
		w.untilDeath(died, change.Position(strconv.Itoa(len(script))))
		w.stop()
		w.disk.revive()
		w.boot()
	}
	w.start()
	w.awaitReady(change.Position(strconv.Itoa(len(script))))
	table := w.table("t")
	if got := versionTexts(table); !slices.Equal(got, scriptVersions) {
		t.Errorf("versions\n got %q\nwant %q", got, scriptVersions)
	}
	ascending := func(a, b *schema.Table) int { return cmp.Compare(a.Version, b.Version) }
	if !slices.IsSortedFunc(table.Versions, ascending) || table.Current != table.Versions[len(table.Versions)-1] {
		t.Errorf("version %d in force of %q", table.Current.Version, versionTexts(table))
	}
	w.same("t", w.foldVersions(table), scriptRows)
}

// untilDeath waits until died, or until the pipeline is at its end: how many appends
// there are is not certain, since an idle position may go with a group.
func (w *world) untilDeath(died <-chan struct{}, end change.Position) {
	for {
		changed := w.catalog.Changed()
		snap := w.catalog.Snapshot()
		ended := w.position(snap) == end && allIn(snap, catalog.TableReady)
		snap.Close()
		if ended {
			return
		}
		select {
		case <-died:
			return
		case <-changed:
		}
	}
}

func versionTexts(t *catalog.Table) []string {
	var out []string
	for _, v := range t.Versions {
		words := make([]string, len(v.Fields))
		for i, f := range v.Fields {
			words[i] = fmt.Sprintf("%d %s", f.ID, f.Name)
			if f.Initial != nil {
				words[i] += "=" + *f.Initial
			}
		}
		out = append(out, strings.Join(words, ", "))
	}
	return out
}

// foldVersions is fold for slices of several versions, read as the current one.
func (w *world) foldVersions(t *catalog.Table) []string {
	w.t.Helper()
	snap := w.catalog.Snapshot()
	defer snap.Close()
	live, err := snap.LiveSlices(t.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	last := map[string]string{}
	for _, s := range live {
		rec := w.disk.read(s.Ref).Record
		i := slices.IndexFunc(t.Versions, func(v *schema.Table) bool { return v.Version == s.SchemaVersion })
		if i < 0 {
			w.t.Fatalf("slice %s has the unknown version %d", s.Ref, s.SchemaVersion)
		}
		words := make([][]string, rec.NumRows())
		for _, f := range t.Current.Fields {
			col, err := lake.Column(rec.Columns()[change.SystemColumns:], int(rec.NumRows()), t.Versions[i], f)
			if err != nil {
				w.t.Fatal(err)
			}
			for r := range words {
				words[r] = append(words[r], text(col, r))
			}
		}
		for r, row := range words {
			last[row[0]] = strings.Join(row, "|")
			if change.Op(rec.Column(0).(*array.Uint8).Value(r)) == change.Delete {
				delete(last, row[0])
			}
		}
	}
	var rows []string
	for _, row := range last {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	return rows
}
