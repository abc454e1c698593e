package deadletter

import (
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
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// retryWorld is a catalog with one table (bigint id, bigint v, and later text later) and
// what was appended.
type retryWorld struct {
	t        *testing.T
	catalog  *catalog.Catalog
	appended []string
	told     []string
	fail     error // of the next append
	// fill is what gives values that were left out.
	fill func(context.Context, *catalog.Table, []*change.Batch) ([]*change.Batch, error)
}

func newRetryWorld(t *testing.T) *retryWorld {
	fake := env.NewFake(time.Unix(1000, 0), 1)
	c, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: fake, IDs: fake, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	w := &retryWorld{t: t, catalog: c}
	fields := []schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, AttNum: 1},
		{Name: "was", Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, AttNum: 2},
	}
	first, err := schema.New(fields, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	initial := "seven"
	fields[1].Name = "v" // renamed since
	fields = append(fields, schema.NewField{
		Name: "later", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1, AttNum: 3, Initial: &initial,
	})
	second, err := schema.Evolve(first, fields, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	w.update(func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "p", Connection: "c"}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		return txn.CreateTable(&catalog.Table{
			Pipeline: p.ID, Schema: "s", Name: "t", Current: second, Versions: []*schema.Table{first, second}, State: catalog.TableReady,
		})
	})
	return w
}

func (w *retryWorld) update(fn func(*catalog.Txn) error) {
	w.t.Helper()
	if err := w.catalog.Update(w.t.Context(), fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *retryWorld) letter(id uint64, version uint32, row string) {
	w.t.Helper()
	w.update(func(txn *catalog.Txn) error {
		return txn.AddDeadLetter(&catalog.DeadLetter{
			Table: 1, DeadLetterRef: catalog.DeadLetterRef{Token: int64(id), ID: id}, SchemaVersion: version, Key: "k", Row: row, Reason: "r",
		})
	})
}

// run retries; values that are not integers are refused.
func (w *retryWorld) run(only map[uint64]bool) (Result, error) {
	r := &Retry{
		Fill:    w.fill,
		Catalog: w.catalog, Pipeline: 1, Only: only, Tell: func(s string) { w.told = append(w.told, s) },
		Decode: func(s *schema.Table, row map[string]*string, columns []array.Builder) error {
			for i, f := range s.Fields {
				text := row[f.Name]
				switch b := columns[i].(type) {
				case *array.Int64Builder:
					if text == nil {
						b.AppendNull()
						continue
					}
					n, err := strconv.ParseInt(*text, 10, 64)
					if err != nil {
						return &RefusedError{Reason: "no number"}
					}
					b.Append(n)
				case *array.StringBuilder:
					if text == nil {
						b.AppendNull()
						continue
					}
					b.Append(*text)
				}
			}
			return nil
		},
		Append: func(_ context.Context, batches []*change.Batch, letters *Records) error {
			if err := w.fail; err != nil {
				return err
			}
			for _, b := range batches {
				w.appended = append(w.appended, fmt.Sprint(b.Record.Column(0), b.Record.Column(1), b.Record.Column(3), b.Record.Column(4), b.Record.Column(5)))
			}
			return w.catalog.Update(w.t.Context(), func(txn *catalog.Txn) error { return letters.Apply(txn, 1) })
		},
	}
	return r.Run(w.t.Context())
}

// TestRetry: rows go in as old as their changes, under the schema of today, once; what
// cannot, or has been superseded, stays.
func TestRetry(t *testing.T) {
	w := newRetryWorld(t)
	w.letter(9, 2, `{"id":"3","v":"30","later":"z"}`)
	w.letter(5, 1, `{"id":"1","was":"10"}`)
	w.letter(6, 1, `{"id":"2","was":null}`)
	w.letter(7, 1, `{"id":"4","was":"infinity"}`)
	w.letter(8, 1, `{"id":"5"}`) // a value that was not sent
	w.letter(10, 1, ``)
	w.letter(11, 1, `{"id":"6","was":"60"}`)
	w.update(func(txn *catalog.Txn) error {
		return txn.CloseDeadLetter(1, catalog.DeadLetterRef{Token: 11, ID: 11}, catalog.DeadLetterSuperseded)
	})
	lost := errors.New("lost")
	w.fail = lost
	if _, err := w.run(nil); !errors.Is(err, lost) {
		t.Fatalf("an append that fails: %v", err)
	}
	w.fail = nil
	if res, err := w.run(map[uint64]bool{5: true, 11: true}); err != nil || res != (Result{Retried: 1, Superseded: 1}) {
		t.Fatalf("%+v, %v", res, err)
	}
	for i, want := range []Result{{Retried: 2, Superseded: 1, Failing: 3}, {Superseded: 1, Failing: 3}} {
		if res, err := w.run(nil); err != nil || res != want {
			t.Fatalf("run %d: %+v, %v", i, res, err)
		}
	}
	want := `["[2] [5] [1] [10] [\"seven\"]" "[2] [6] [2] [(null)] [\"seven\"]" "[2] [9] [3] [30] [\"z\"]"]`
	if got := fmt.Sprintf("%q", w.appended); got != want {
		t.Errorf("appended\n%s\nwant\n%s", got, want)
	}
	done := slices.DeleteFunc(slices.Clone(w.told), func(s string) bool { return !strings.Contains(s, "retried") })
	if len(w.told) != 3*3+2 || !slices.Equal(done, []string{"one dead letter of s.t is retried", "2 dead letters of s.t are retried"}) {
		t.Errorf("told %q", w.told) // what stays, each time, and what was done, twice
	}
}

// TestRetryTells: a letter that stays says why, with its code, and the statement that helps.
func TestRetryTells(t *testing.T) {
	w := newRetryWorld(t)
	add := func(id uint64, code, row string, doubtful bool, version uint32) {
		w.update(func(txn *catalog.Txn) error {
			return txn.AddDeadLetter(&catalog.DeadLetter{
				Table: 1, DeadLetterRef: catalog.DeadLetterRef{Token: int64(id), ID: id}, SchemaVersion: version, Key: "k", Row: row,
				Reason: "r", Code: code, Doubtful: doubtful, Column: "V",
			})
		})
	}
	add(5, CodeRowTooLarge, "", false, 2)
	add(6, CodeEncoding, `{"id":"1"}`, false, 2)
	add(7, CodeNoUTF8, `{"id":"1"}`, false, 2)
	add(8, CodeDateTime, `{"id":"1"}`, true, 2)
	add(9, CodeDateTime, `{"id":"1"}`, false, 77)
	add(10, CodeOutOfRange, `{"id":"x","v":"1","later":"y"}`, false, 2)
	if res, err := w.run(nil); err != nil || res != (Result{Failing: 6}) {
		t.Fatalf("%+v, %v", res, err)
	}
	const again = ". UPDATE the row at the source, or copy its table anew: ALTER PIPELINE p RESYNC TABLE s.t;"
	const text = `. Correct the text at the source, where raw_row says which bytes it has, as \x…; or leave the column out: ALTER PIPELINE p RESYNC TABLE s.t EXCEPT ("V");`
	want := []string{
		"dead letter 5 of s.t stays (54000): its row was not kept: it is longer than 6 MiB, or there was no room for it, or it was not sent whole" + again,
		"dead letter 6 of s.t stays (22021): its text is not UTF-8" + text,
		"dead letter 7 of s.t stays (22P05): its text has no equivalent in UTF-8" + text,
		"dead letter 8 of s.t stays (22008): it may have changed while it was copied, in a transaction that was open for long" + again,
		"dead letter 9 of s.t stays (22008): schema version 77, which its row has, is not known any more" + again,
		"dead letter 10 of s.t stays (22003): no number. Say what becomes of such values, ALTER PIPELINE p SET (out_of_range = 'null'); and run RETRY DEAD LETTERS " +
			"again; or keep them as text: ALTER PIPELINE p RESYNC TABLE s.t (*, \"V\" AS text);",
	}
	if !slices.Equal(w.told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(w.told, "\n"), strings.Join(want, "\n"))
	}
}

// TestCloseMany: a transaction supersedes more letters than a group names, one of which a piece
// of a copy is about to make durable: it comes closed.
func TestCloseMany(t *testing.T) {
	w := newRetryWorld(t)
	var refs []catalog.DeadLetterRef
	for i := range uint64(manyClosed) {
		w.letter(10+i, 2, `{"id":"1"}`)
		refs = append(refs, catalog.DeadLetterRef{Token: int64(10 + i), ID: 10 + i})
	}
	chunk := &Records{Added: []*catalog.DeadLetter{{
		Table: 1, DeadLetterRef: catalog.DeadLetterRef{Token: -5, ID: 3}, SchemaVersion: 2, Copied: true, Key: "other", Row: `{"id":"2"}`, Reason: "r",
	}}}
	stream := &Records{}
	stream.Close(1, append(refs, chunk.Added[0].DeadLetterRef), catalog.DeadLetterSuperseded)
	for _, r := range []*Records{stream, chunk} {
		w.update(func(txn *catalog.Txn) error { return r.Apply(txn, 1) })
	}
	snap := w.catalog.Snapshot()
	defer snap.Close()
	open, err := snap.OpenDeadLetters(1)
	if err != nil || len(open) != 0 || len(stream.Closed) != 1 {
		t.Errorf("%d letters are open after %d ends, %v", len(open), len(stream.Closed), err)
	}
}

// TestRetryWaits: a table that is being copied is left alone.
func TestRetryWaits(t *testing.T) {
	w := newRetryWorld(t)
	w.letter(5, 1, `{"id":"1","was":"10"}`)
	w.update(func(txn *catalog.Txn) error {
		tbl, err := txn.TableByID(1)
		if err != nil {
			return err
		}
		tbl.State = catalog.TableBackfill
		return txn.PutTable(tbl)
	})
	if res, err := w.run(nil); err != nil || res.Failing != 1 || len(w.appended) != 0 {
		t.Errorf("%+v, %v, %q", res, err, w.appended)
	}
}

// TestRetryFills: an update that left values out is applied alone, with what the table has;
// where that is not known its letter stays, and the others are retried.
func TestRetryFills(t *testing.T) {
	w := newRetryWorld(t)
	update := func(id uint64, row string) {
		w.update(func(txn *catalog.Txn) error {
			return txn.AddDeadLetter(&catalog.DeadLetter{
				Table: 1, DeadLetterRef: catalog.DeadLetterRef{Token: int64(id), ID: id}, SchemaVersion: 2, Op: change.Update, Key: "k", Row: row, Reason: "r",
			})
		})
	}
	w.letter(5, 2, `{"id":"1","v":"10","later":"x"}`)
	update(6, `{"id":"2","v":"20"}`)
	update(7, `{"id":"3","later":"y"}`)
	update(8, `{"id":"4"}`)
	if res, err := w.run(nil); err != nil || res != (Result{Retried: 1, Failing: 3}) {
		t.Fatalf("with nothing to fill from: %+v, %v", res, err)
	}
	var asked []string
	w.fill = func(_ context.Context, table *catalog.Table, batches []*change.Batch) ([]*change.Batch, error) {
		if table.Name != "t" || len(batches) != 1 || batches[0].Rows() != 1 {
			t.Fatalf("%d batches of %s", len(batches), table.Name)
		}
		b := batches[0]
		asked = append(asked, fmt.Sprint(b.Record.Column(3), b.Unchanged))
		if len(b.Unchanged) == 2 {
			return nil, &RefusedError{Reason: "the row before is not here"}
		}
		b.Record.Retain()
		return []*change.Batch{{Table: b.Table, SchemaVersion: b.SchemaVersion, Record: b.Record}}, nil
	}
	if res, err := w.run(nil); err != nil || res != (Result{Retried: 2, Failing: 1}) {
		t.Fatalf("%+v, %v", res, err)
	}
	want := "[[2] [{0 2 false}] [3] [{0 1 false}] [4] [{0 1 false} {0 2 false}]]"
	if got := fmt.Sprint(asked); got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	if len(w.appended) != 3 {
		t.Errorf("appended %q", w.appended)
	}
}
