package watch_test

import (
	"reflect"
	"testing"

	"github.com/skipprd/skipprd/ingest/watch"
)

func TestDecide(t *testing.T) {
	orders := watch.Here{ID: 1, OID: 10, Schema: "public", Name: "orders"}
	there := watch.There{OID: 10, Schema: "public", Name: "orders"}
	anew := watch.There{OID: 20, Schema: "public", Name: "orders"}
	renamed := watch.There{OID: 10, Schema: "public", Name: "archive"}
	known := func(all ...watch.There) map[uint32]watch.There {
		out := map[uint32]watch.There{}
		for _, t := range all {
			out[t.OID] = t
		}
		return out
	}
	with := func(h watch.Here, change func(*watch.Here)) watch.Here {
		change(&h)
		return h
	}
	parts := func(oids ...uint32) watch.Here {
		return with(orders, func(h *watch.Here) {
			h.Parts = oids
			for _, oid := range oids {
				h.Marks = append(h.Marks, uint64(10*oid))
			}
		})
	}
	root := func(all ...watch.Part) watch.There {
		t := there
		t.Parts = all
		return t
	}
	born, attached := func(oid uint32) watch.Part { return watch.Part{OID: oid, Born: true, Mark: uint64(10 * oid)} },
		func(oid uint32) watch.Part { return watch.Part{OID: oid, Mark: uint64(10 * oid)} }
	marked := func(oid uint32, mark uint64, same bool) watch.Part {
		return watch.Part{OID: oid, Mark: mark, Same: same}
	}
	asPart := with(orders, func(h *watch.Here) { h.Away = watch.AsPart })
	for _, c := range []struct {
		name  string
		here  []watch.Here
		found []watch.There
		known map[uint32]watch.There
		want  []watch.Action
	}{
		{"nothing", []watch.Here{orders}, []watch.There{there}, known(there), nil},
		{"made", nil, []watch.There{there}, nil, []watch.Action{{Kind: watch.Made}}},
		{
			"dropped",
			[]watch.Here{orders},
			nil, nil,
			[]watch.Action{{Kind: watch.Left, Table: 1, Reason: watch.Dropped}},
		},
		{"dropped before", []watch.Here{with(orders, func(h *watch.Here) { h.Away = watch.Dropped })}, nil, nil, nil},
		{
			"dropped and made anew",
			[]watch.Here{orders},
			[]watch.There{anew},
			nil,
			[]watch.Action{{Kind: watch.Remade, Table: 1}},
		},
		{
			"made anew later",
			[]watch.Here{with(orders, func(h *watch.Here) { h.Away = watch.Dropped })},
			[]watch.There{anew},
			nil,
			[]watch.Action{{Kind: watch.Remade, Table: 1}},
		},
		{
			"made anew, being copied",
			[]watch.Here{with(orders, func(h *watch.Here) { h.Copy = 20 })},
			[]watch.There{anew},
			nil, nil,
		},
		{
			"made anew again while it is copied",
			[]watch.Here{with(orders, func(h *watch.Here) { h.Copy = 15 })},
			[]watch.There{anew},
			nil,
			[]watch.Action{{Kind: watch.Remade, Table: 1}},
		},
		{
			"renamed",
			[]watch.Here{orders},
			nil, known(renamed),
			[]watch.Action{{Kind: watch.Renamed, Table: 1, Schema: "public", Name: "archive"}},
		},
		{
			"renamed, and another under the old name",
			[]watch.Here{orders},
			[]watch.There{anew},
			known(renamed),
			[]watch.Action{{Kind: watch.Renamed, Table: 1, Schema: "public", Name: "archive"}, {Kind: watch.Made}},
		},
		{
			"parts are not known",
			[]watch.Here{orders},
			nil, known(root(attached(8), born(7))),
			[]watch.Action{{Kind: watch.Noted, Table: 1, Parts: []uint32{7, 8}, Marks: []uint64{70, 80}}},
		},
		{"same parts", []watch.Here{parts(7, 8)}, nil, known(root(attached(8), born(7))), nil},
		{
			"new part",
			[]watch.Here{parts(7)},
			nil, known(root(attached(7), born(8))),
			[]watch.Action{{Kind: watch.Noted, Table: 1, Parts: []uint32{7, 8}, Marks: []uint64{70, 80}}},
		},
		{
			"attached",
			[]watch.Here{parts(7)},
			nil, known(root(born(7), attached(8))),
			[]watch.Action{{Kind: watch.Repartitioned, Table: 1, Parts: []uint32{7, 8}, Marks: []uint64{70, 80}, Attached: 1}},
		},
		{
			"detached",
			[]watch.Here{parts(7, 8)},
			nil, known(root(born(7))),
			[]watch.Action{{Kind: watch.Repartitioned, Table: 1, Parts: []uint32{7}, Marks: []uint64{70}, Detached: 1}},
		},
		{
			"exchanged",
			[]watch.Here{parts(7, 8)},
			nil, known(root(born(7), attached(9))),
			[]watch.Action{{Kind: watch.Repartitioned, Table: 1, Parts: []uint32{7, 9}, Marks: []uint64{70, 90}, Attached: 1, Detached: 1}},
		},
		{
			"truncated, or attached again",
			[]watch.Here{parts(7, 8)},
			nil, known(root(marked(8, 81, false), born(7))),
			[]watch.Action{{Kind: watch.Repartitioned, Table: 1, Parts: []uint32{7, 8}, Marks: []uint64{70, 81}, Refilled: 1}},
		},
		{
			"rewritten",
			[]watch.Here{parts(7, 8)},
			nil, known(root(born(7), marked(8, 81, true))),
			[]watch.Action{{Kind: watch.Noted, Table: 1, Parts: []uint32{7, 8}, Marks: []uint64{70, 81}}},
		},
		{
			"marks are not known",
			[]watch.Here{with(parts(7), func(h *watch.Here) { h.Marks = nil })},
			nil, known(root(marked(7, 71, false))),
			[]watch.Action{{Kind: watch.Noted, Table: 1, Parts: []uint32{7}, Marks: []uint64{71}}},
		},
		{"a partition still", []watch.Here{asPart, {ID: 2, OID: 30}}, nil, known(watch.There{OID: 10, Root: 30}, watch.There{OID: 30}), nil},
		{"no partition any more", []watch.Here{asPart}, []watch.There{there}, known(there), []watch.Action{{Kind: watch.Remade, Table: 1}}},
		{"no partition any more, and not wanted", []watch.Here{asPart}, nil, known(there), nil},
		{
			"no partition any more, being copied",
			[]watch.Here{with(asPart, func(h *watch.Here) { h.Copy = 10 })},
			[]watch.There{there},
			known(there), nil,
		},
		{
			"while it is copied",
			[]watch.Here{with(parts(7), func(h *watch.Here) { h.Copy = 10 })},
			nil,
			known(root(born(7), attached(8))), nil,
		},
		{
			"taken as a partition",
			[]watch.Here{orders, {ID: 2, OID: 30, Schema: "public", Name: "all_orders", Parts: []uint32{}}},
			nil, known(watch.There{OID: 10, Root: 30}, watch.There{OID: 30, Schema: "public", Name: "all_orders", Parts: []watch.Part{attached(10)}}),
			[]watch.Action{
				{Kind: watch.Left, Table: 1, Reason: watch.AsPart},
				{Kind: watch.Repartitioned, Table: 2, Parts: []uint32{10}, Marks: []uint64{100}, Attached: 1},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := watch.Decide(c.here, c.found, c.known); !reflect.DeepEqual(got, c.want) {
				t.Errorf("\n got %+v\nwant %+v", got, c.want)
			}
		})
	}
}
