package faultstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
	"github.com/skipprd/skipprd/wal/objstore/storetest"
)

// Without hooks, and with hooks that say nothing, it is the store behind it.
func TestStore(t *testing.T) {
	for name, hooks := range map[string]faultstore.Hooks{
		"none": {},
		"silent": {
			Before: func(context.Context, faultstore.Op) faultstore.Fault { return faultstore.Fault{} },
			After:  func(context.Context, faultstore.Op, error) faultstore.Fault { return faultstore.Fault{} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(*testing.T) objstore.Store { return faultstore.New(memstore.New(), hooks) })
		})
	}
}

// next is a hook that gives each fault once, in order.
func next(faults ...faultstore.Fault) func(context.Context, faultstore.Op) faultstore.Fault {
	return func(context.Context, faultstore.Op) faultstore.Fault {
		if len(faults) == 0 {
			return faultstore.Fault{}
		}
		f := faults[0]
		faults = faults[1:]
		return f
	}
}

func contents(m *memstore.Store) string {
	var out []string
	for key, body := range m.All() {
		out = append(out, fmt.Sprintf("%s=%s", key, body))
	}
	return strings.Join(out, " ")
}

// fill makes a store with objects "key=body".
func fill(t *testing.T, objects ...string) *memstore.Store {
	t.Helper()
	m := memstore.New()
	for _, o := range objects {
		key, body, _ := strings.Cut(o, "=")
		if _, err := m.Put(t.Context(), key, []byte(body), objstore.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

var errDead = errors.New("the machine has died")

func TestPutFaults(t *testing.T) {
	for _, c := range []struct {
		fault     faultstore.Fault
		cond      objstore.Condition
		err       error
		after     string // what the store holds
		delivered string // what it holds when all that is under way has arrived
	}{
		{faultstore.Fault{}, objstore.IfAbsent(), nil, "k=new", "k=new"},
		{faultstore.Fault{Kind: faultstore.Refused}, objstore.IfAbsent(), objstore.ErrUnavailable, "", ""},
		{faultstore.Fault{Kind: faultstore.Conflicted}, objstore.IfAbsent(), objstore.ErrConflict, "", ""},
		{faultstore.Fault{Kind: faultstore.Conflicted}, objstore.Condition{}, nil, "k=new", "k=new"},
		{faultstore.Fault{Kind: faultstore.LostRequest}, objstore.IfAbsent(), objstore.ErrUnknown, "", ""},
		{faultstore.Fault{Kind: faultstore.LostReply}, objstore.IfAbsent(), objstore.ErrUnknown, "k=new", "k=new"},
		{faultstore.Fault{Kind: faultstore.Late}, objstore.IfAbsent(), objstore.ErrUnknown, "", "k=new"},
		{faultstore.Fault{Kind: faultstore.Duplicated}, objstore.IfAbsent(), nil, "k=new", "k=new"},
		{faultstore.Fault{Kind: faultstore.Repeated}, objstore.IfAbsent(), objstore.ErrPrecondition, "k=new", "k=new"},
		{faultstore.Fault{Kind: faultstore.Repeated}, objstore.Condition{}, nil, "k=new", "k=new"},
		{faultstore.Fault{Kind: faultstore.Failed, Err: errDead}, objstore.IfAbsent(), errDead, "", ""},
		// Those that befall only other requests do nothing here.
		{faultstore.Fault{Kind: faultstore.Torn}, objstore.IfAbsent(), nil, "k=new", "k=new"},
		{faultstore.Fault{Kind: faultstore.Partly, N: 1}, objstore.IfAbsent(), nil, "k=new", "k=new"},
		{faultstore.Fault{Kind: 200}, objstore.IfAbsent(), nil, "k=new", "k=new"},
	} {
		m := memstore.New()
		s := faultstore.New(m, faultstore.Hooks{Before: next(c.fault)})
		_, err := s.Put(t.Context(), "k", []byte("new"), c.cond)
		if !errors.Is(err, c.err) {
			t.Errorf("%s %s: %v, want %v", c.fault.Kind, c.cond, err, c.err)
		}
		if got := contents(m); got != c.after {
			t.Errorf("%s %s: the store holds %q, want %q", c.fault.Kind, c.cond, got, c.after)
		}
		for len(s.Late()) > 0 {
			_, _ = s.Deliver(t.Context(), 0) // its answer is nobody's
		}
		if got := contents(m); got != c.delivered {
			t.Errorf("%s %s: after delivery the store holds %q, want %q", c.fault.Kind, c.cond, got, c.delivered)
		}
	}
}

// A write that is late is judged when it arrives: conditions hold it back, and without
// one it overwrites what came after it.
func TestLateWrites(t *testing.T) {
	m := fill(t, "c=1")
	v, err := m.Get(t.Context(), "c", objstore.Range{})
	if err != nil {
		t.Fatal(err)
	}
	late := faultstore.Fault{Kind: faultstore.Late}
	s := faultstore.New(m, faultstore.Hooks{Before: next(late, late, late, late)})
	_, _ = s.Put(t.Context(), "c", []byte("late"), objstore.IfMatch(v.Version))
	_, _ = s.Put(t.Context(), "n", []byte("late"), objstore.IfAbsent())
	_, _ = s.Put(t.Context(), "u", []byte("late"), objstore.Condition{})
	_ = s.Delete(t.Context(), []string{"d"})
	for _, key := range []string{"c", "n", "u", "d"} {
		if _, err := s.Put(t.Context(), key, []byte("2"), objstore.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	want := []error{objstore.ErrPrecondition, objstore.ErrPrecondition, nil, nil}
	for i, op := range s.Late() {
		got, err := s.Deliver(t.Context(), 0)
		if got.String() != op.String() || !errors.Is(err, want[i]) {
			t.Errorf("delivered %s, want %s: %v, want %v", got, op, err, want[i])
		}
	}
	if got := contents(m); got != "c=2 n=2 u=late" {
		t.Errorf("the store holds %q", got)
	}
	if len(s.Late()) != 0 {
		t.Errorf("%v is still under way", s.Late())
	}
}

func TestDeleteFaults(t *testing.T) {
	for _, c := range []struct {
		fault  faultstore.Fault
		err    error
		failed string
		after  string
	}{
		{faultstore.Fault{}, nil, "", ""},
		{faultstore.Fault{Kind: faultstore.Refused}, objstore.ErrUnavailable, "", "a=1 b=1 c=1"},
		{faultstore.Fault{Kind: faultstore.LostReply}, objstore.ErrUnknown, "", ""},
		{faultstore.Fault{Kind: faultstore.LostRequest}, objstore.ErrUnknown, "", "a=1 b=1 c=1"},
		{faultstore.Fault{Kind: faultstore.Repeated}, nil, "", ""},
		{faultstore.Fault{Kind: faultstore.Partly, N: 0b101}, objstore.ErrUnavailable, "a c", "a=1 c=1"},
		{faultstore.Fault{Kind: faultstore.PartlyUnknown, N: 0b010}, objstore.ErrUnknown, "b", ""},
		{faultstore.Fault{Kind: faultstore.Partly, N: 0}, nil, "", ""},
		{faultstore.Fault{Kind: faultstore.Conflicted}, nil, "", ""},
	} {
		m := fill(t, "a=1", "b=1", "c=1")
		s := faultstore.New(m, faultstore.Hooks{Before: next(c.fault)})
		err := s.Delete(t.Context(), []string{"a", "b", "c"})
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.fault.Kind, err, c.err)
		}
		var failed []string
		if d := (*objstore.DeleteError)(nil); errors.As(err, &d) {
			for _, f := range d.Failed {
				failed = append(failed, f.Key)
			}
		}
		if got := strings.Join(failed, " "); got != c.failed {
			t.Errorf("%s: failed %q, want %q", c.fault.Kind, got, c.failed)
		}
		if got := contents(m); got != c.after {
			t.Errorf("%s: the store holds %q, want %q", c.fault.Kind, got, c.after)
		}
	}
}

func TestGetFaults(t *testing.T) {
	const body = "0123456789"
	for _, c := range []struct {
		fault faultstore.Fault
		rng   objstore.Range
		data  string
		err   error
	}{
		{faultstore.Fault{}, objstore.Range{}, body, nil},
		{faultstore.Fault{Kind: faultstore.Refused}, objstore.Range{}, "", objstore.ErrUnavailable},
		{faultstore.Fault{Kind: faultstore.LostRequest}, objstore.Range{}, "", objstore.ErrUnavailable},
		{faultstore.Fault{Kind: faultstore.LostReply}, objstore.Range{}, "", objstore.ErrUnavailable},
		{faultstore.Fault{Kind: faultstore.Damaged}, objstore.Range{}, "", objstore.ErrDamaged},
		{faultstore.Fault{Kind: faultstore.Torn, N: 3}, objstore.Range{}, "012", nil},
		{faultstore.Fault{Kind: faultstore.Torn, N: 99}, objstore.Range{}, body, nil},
		{faultstore.Fault{Kind: faultstore.Flipped, N: 1}, objstore.Range{}, "2123456789", nil},
		{faultstore.Fault{Kind: faultstore.Flipped, N: 8 * 13}, objstore.Range{}, "0122456789", nil},
		{faultstore.Fault{Kind: faultstore.Flipped, N: 0}, objstore.Range{Start: 4, End: 6}, "55", nil},
		{faultstore.Fault{Kind: faultstore.Misdirected, Key: "other"}, objstore.Range{Start: 1, End: 3}, "th", nil},
		{faultstore.Fault{Kind: faultstore.Misdirected, Key: "none"}, objstore.Range{}, body, nil},
	} {
		m := fill(t, "k="+body, "other=other")
		s := faultstore.New(m, faultstore.Hooks{Before: next(c.fault)})
		o, err := s.Get(t.Context(), "k", c.rng)
		if !errors.Is(err, c.err) || string(o.Data) != c.data {
			t.Errorf("%s: %q %v, want %q %v", c.fault.Kind, o.Data, err, c.data, c.err)
		}
		if got := contents(m); got != "k="+body+" other=other" {
			t.Errorf("%s damaged the store: %q", c.fault.Kind, got)
		}
	}
}

// Bytes with a version from before them cannot be the ground of a swap.
func TestStaleVersion(t *testing.T) {
	s := faultstore.New(fill(t, "k=1"), faultstore.Hooks{Before: next(faultstore.Fault{Kind: faultstore.StaleVersion})})
	stale, err := s.Get(t.Context(), "k", objstore.Range{})
	if err != nil || string(stale.Data) != "1" {
		t.Fatalf("get: %q, %v", stale.Data, err)
	}
	if _, err := s.Put(t.Context(), "k", []byte("2"), objstore.IfMatch(stale.Version)); !errors.Is(err, objstore.ErrPrecondition) {
		t.Errorf("put: %v", err)
	}
}

func TestListFaults(t *testing.T) {
	for _, c := range []struct {
		fault faultstore.Fault
		keys  string
		more  bool
		err   error
	}{
		{faultstore.Fault{Kind: faultstore.ShortPage, N: 2}, "a b", true, nil},
		{faultstore.Fault{Kind: faultstore.ShortPage, N: 0}, "a", true, nil},
		{faultstore.Fault{Kind: faultstore.ShortPage, N: 3}, "a b c", false, nil},
		{faultstore.Fault{Kind: faultstore.ShortPage, N: 1 << 63}, "a b c", false, nil},
		{faultstore.Fault{Kind: faultstore.LostReply}, "", false, objstore.ErrUnavailable},
	} {
		s := faultstore.New(fill(t, "a=1", "b=1", "c=1"), faultstore.Hooks{Before: next(c.fault)})
		page, err := s.List(t.Context(), "", "", 10)
		var keys []string
		for _, o := range page.Objects {
			keys = append(keys, o.Key)
		}
		if got := strings.Join(keys, " "); got != c.keys || page.More != c.more || !errors.Is(err, c.err) {
			t.Errorf("%s %d: %q more %t %v", c.fault.Kind, c.fault.N, got, page.More, err)
		}
	}
}

// After sees what happened, and may lose the answer.
func TestAfter(t *testing.T) {
	m := memstore.New()
	var seen []string
	answers := []faultstore.Fault{{}, {Kind: faultstore.LostReply}, {Kind: faultstore.LostReply, Err: errDead}, {Kind: faultstore.Refused}}
	s := faultstore.New(m, faultstore.Hooks{
		Before: next(faultstore.Fault{Kind: faultstore.Refused}),
		After: func(_ context.Context, op faultstore.Op, err error) faultstore.Fault {
			seen = append(seen, fmt.Sprintf("%s: %t", op, errors.Is(err, objstore.ErrPrecondition)))
			f := answers[0]
			answers = answers[1:]
			return f
		},
	})
	for i, want := range []error{objstore.ErrUnavailable, nil, objstore.ErrUnknown, errDead, objstore.ErrPrecondition} {
		if _, err := s.Put(t.Context(), fmt.Sprint("k", min(i, 3)), []byte("x"), objstore.IfAbsent()); !errors.Is(err, want) {
			t.Errorf("put %d: %v, want %v", i, err, want)
		}
	}
	want := "put k1 if absent, 1 bytes: false;put k2 if absent, 1 bytes: false;put k3 if absent, 1 bytes: false;put k3 if absent, 1 bytes: true"
	if got := strings.Join(seen, ";"); got != want {
		t.Errorf("seen %s, want %s", got, want)
	}
	if got := contents(m); got != "k1=x k2=x k3=x" {
		t.Errorf("the store holds %q", got)
	}
}

// A hook that lets another request run first decides their order.
func TestHookYields(t *testing.T) {
	m := memstore.New()
	var s *faultstore.Store
	inner := false
	s = faultstore.New(m, faultstore.Hooks{Before: func(ctx context.Context, op faultstore.Op) faultstore.Fault {
		if !inner {
			inner = true
			if _, err := s.Put(ctx, "k", []byte("overtook"), objstore.IfAbsent()); err != nil {
				t.Error(err)
			}
		}
		return faultstore.Fault{}
	}})
	if _, err := s.Put(t.Context(), "k", []byte("slow"), objstore.IfAbsent()); !errors.Is(err, objstore.ErrPrecondition) {
		t.Errorf("the slow put: %v", err)
	}
	if got := contents(m); got != "k=overtook" {
		t.Errorf("the store holds %q", got)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for k := faultstore.None; k <= faultstore.StaleVersion; k++ {
		if name := k.String(); name == "" || seen[name] {
			t.Errorf("kind %d is called %q", k, name)
		}
		seen[k.String()] = true
	}
	if got := faultstore.Kind(99).String(); got != "kind 99" {
		t.Error(got)
	}
	for want, op := range map[string]faultstore.Op{
		"put k if absent, 2 bytes": {Verb: faultstore.Put, Key: "k", Body: []byte("xx"), Cond: objstore.IfAbsent()},
		"get k":                    {Verb: faultstore.Get, Key: "k"},
		"get k [1, 2)":             {Verb: faultstore.Get, Key: "k", Range: objstore.Range{Start: 1, End: 2}},
		"delete k":                 {Verb: faultstore.Delete, Keys: []string{"k"}},
		"delete 2 keys":            {Verb: faultstore.Delete, Keys: []string{"k", "l"}},
		"list p/ after \"a\", 10":  {Verb: faultstore.List, Key: "p/", After: "a", Limit: 10},
	} {
		if got := op.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
