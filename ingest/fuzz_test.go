package ingest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/env"
)

// Whatever a group's state is, reading and applying it ends, with an error or without; and
// what can be read is written so that it reads the same.
func FuzzGroupState(f *testing.F) {
	for _, s := range []string{
		`{"v":1,"stops":[{"table":1,"at":"x","reason":"r","hint":"h","voids":true}]}`,
		`{"v":1,"progress":[{"table":1,"at":"x"}],"reached":[1]}`,
		`{"v":1,"chunk":{"table":1,"generation":1,"chunk":0,"rows":3,"bytes":9,"consistent":true}}`,
		`{"v":2,"part":"s-1"}`, `{"v":2,"completes":{"txn":"s-1","parts":3,"first":9}}`, `{"v":2,"voids":true}`,
		`{"v":2,"schemas":[{"table":1,"schema":{}}]}`,
	} {
		f.Add([]byte(s))
	}
	fake := env.NewFake(time.Unix(1000, 0), 1)
	c, err := catalog.Open(context.Background(), memkv.New(), catalog.Deps{Clock: fake, IDs: fake, Key: make([]byte, 32)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Close() })
	err = c.Update(context.Background(), func(txn *catalog.Txn) error {
		if err := txn.CreateConnection(&catalog.Connection{Name: "c", Kind: "generate"}); err != nil {
			return err
		}
		if err := txn.CreatePipeline(&catalog.Pipeline{Name: "p", Connection: "c", TargetSchema: "public"}); err != nil {
			return err
		}
		return txn.CreateTable(&catalog.Table{
			Pipeline: 1, Schema: "public", Name: "t", Generation: 1, Current: &schema.Table{Version: 1},
			State: catalog.TableBackfill, Backfill: catalog.BackfillProgress{Plan: []string{"0", "1"}, Done: make([]bool, 2)},
		})
	})
	if err != nil {
		f.Fatal(err)
	}
	errDone := errors.New("not kept")
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeGroupState(b)
		if err != nil {
			return
		}
		if again, err := s.encode(); err == nil && again != nil {
			if back, err := decodeGroupState(again); err != nil || !reflect.DeepEqual(s.Stops, back.Stops) || back.Part != s.Part {
				t.Errorf("%s became %s, %v", b, again, err)
			}
		}
		_ = c.Update(context.Background(), func(txn *catalog.Txn) error {
			_ = ApplyState(txn, 1, b) // an error is an answer
			return errDone
		})
	})
}
