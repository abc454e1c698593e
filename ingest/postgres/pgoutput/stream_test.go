package pgoutput_test

import (
	"errors"
	"testing"

	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
)

// The messages of protocol version 2, and none that is shorter or longer.
func TestStreamMessages(t *testing.T) {
	start := message{}.u8('S').u32(7).u8(1)
	stop := message{}.u8('E')
	commit := message{}.u8('c').u32(7).u8(0).u64(1).u64(2).u64(3)
	abort := message{}.u8('A').u32(7).u32(9)
	if m, err := pgoutput.ParseStreamStart(start); err != nil || m != (pgoutput.StreamStart{XID: 7, First: true}) {
		t.Fatalf("%+v, %v", m, err)
	}
	if err := pgoutput.ParseStreamStop(stop); err != nil {
		t.Fatal(err)
	}
	want := pgoutput.StreamCommit{XID: 7, Commit: pgoutput.Commit{CommitLSN: 1, EndLSN: 2, CommittedAt: 3}}
	if m, err := pgoutput.ParseStreamCommit(commit); err != nil || m != want {
		t.Fatalf("%+v, %v", m, err)
	}
	if m, err := pgoutput.ParseStreamAbort(abort); err != nil || m != (pgoutput.StreamAbort{XID: 7, SubXID: 9}) {
		t.Fatalf("%+v, %v", m, err)
	}
	parsers := map[string]struct {
		in    message
		parse func([]byte) error
	}{
		"start":  {start, func(b []byte) error { _, err := pgoutput.ParseStreamStart(b); return err }},
		"stop":   {stop, pgoutput.ParseStreamStop},
		"commit": {commit, func(b []byte) error { _, err := pgoutput.ParseStreamCommit(b); return err }},
		"abort":  {abort, func(b []byte) error { _, err := pgoutput.ParseStreamAbort(b); return err }},
	}
	for name, p := range parsers {
		for n := range len(p.in) {
			if err := p.parse(p.in[:n]); !errors.Is(err, pgoutput.ErrMalformed) {
				t.Errorf("%s of %d bytes: %v", name, n, err)
			}
		}
		if err := p.parse(p.in.u8(0)); !errors.Is(err, pgoutput.ErrMalformed) {
			t.Errorf("%s too long: %v", name, err)
		}
	}
}

// A change of a block is, without its subtransaction, a change.
func TestStreamed(t *testing.T) {
	in := message{}.u8('I').u32(99).u32(7).u8('N').tuple("1", "-")
	kind, sub, rest, err := pgoutput.Streamed(in)
	if err != nil || kind != 'I' || sub != 99 {
		t.Fatalf("%q of %d, %v", kind, sub, err)
	}
	if oid, err := pgoutput.RelationOf(rest); err != nil || oid != 7 {
		t.Fatalf("relation %d, %v", oid, err)
	}
	var row pgoutput.Row
	if err := pgoutput.ParseRow(append([]byte{kind}, rest...), &row); err != nil || row.Relation != 7 {
		t.Fatalf("%+v, %v", row, err)
	}
	for n := range 5 {
		if _, _, _, err := pgoutput.Streamed(in[:n]); !errors.Is(err, pgoutput.ErrMalformed) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, err := pgoutput.RelationOf(rest[:3]); !errors.Is(err, pgoutput.ErrMalformed) {
		t.Fatal(err)
	}
}

// Whatever the bytes, nothing panics.
func FuzzStream(f *testing.F) {
	f.Add([]byte(message{}.u8('S').u32(7).u8(1)))
	f.Add([]byte(message{}.u8('c').u32(7).u8(0).u64(1).u64(2).u64(3)))
	f.Add([]byte(message{}.u8('A').u32(7).u32(9)))
	f.Add([]byte(message{}.u8('I').u32(99).u32(7).u8('N').tuple("1", "-")))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = pgoutput.ParseStreamStart(b)
		_ = pgoutput.ParseStreamStop(b)
		_, _ = pgoutput.ParseStreamCommit(b)
		_, _ = pgoutput.ParseStreamAbort(b)
		if _, _, rest, err := pgoutput.Streamed(b); err == nil {
			_, _ = pgoutput.RelationOf(rest)
		}
	})
}
