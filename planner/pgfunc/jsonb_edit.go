package pgfunc

import (
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// concat is ||.
func (n *jsonNode) concat(m *jsonNode) *jsonNode {
	if n.kind == jsonObject && m.kind == jsonObject {
		out := &jsonNode{
			kind:  jsonObject,
			names: append(slices.Clone(n.names), m.names...), items: append(slices.Clone(n.items), m.items...),
		}
		out.sort()
		return out
	}
	items := func(x *jsonNode) []*jsonNode {
		if x.kind == jsonArray {
			return x.items
		}
		return []*jsonNode{x}
	}
	return &jsonNode{kind: jsonArray, items: append(slices.Clone(items(n)), items(m)...)}
}

// without leaves out the members, or the strings of an array, that have a name.
func (n *jsonNode) without(names ...string) (*jsonNode, error) {
	if n.scalar() {
		return nil, pgerr.New(codes.InvalidParameterValue, "cannot delete from scalar")
	}
	out := &jsonNode{kind: n.kind}
	for i, item := range n.items {
		if n.kind == jsonObject {
			if !slices.Contains(names, n.names[i]) {
				out.names, out.items = append(out.names, n.names[i]), append(out.items, item)
			}
			continue
		}
		if item.kind != jsonString || !slices.Contains(names, item.text) {
			out.items = append(out.items, item)
		}
	}
	return out, nil
}

// withoutIndex leaves out an element.
func (n *jsonNode) withoutIndex(i int64) (*jsonNode, error) {
	switch {
	case n.scalar():
		return nil, pgerr.New(codes.InvalidParameterValue, "cannot delete from scalar")
	case n.kind == jsonObject:
		return nil, pgerr.New(codes.InvalidParameterValue, "cannot delete from object using integer index")
	}
	if i < 0 {
		i += int64(len(n.items))
	}
	if i < 0 || i >= int64(len(n.items)) {
		return n, nil
	}
	return &jsonNode{kind: jsonArray, items: slices.Delete(slices.Clone(n.items), int(i), int(i)+1)}, nil
}

// edit says what happens to the value at the end of a path.
type edit uint8

const (
	editDelete edit = iota
	editReplace
	editSet // replace, or add
	editInsert
	editInsertAfter
)

// change applies an edit at a path.
func (n *jsonNode) change(path []*string, what edit, v *jsonNode) (*jsonNode, error) {
	switch {
	case n.scalar() && what == editDelete:
		return nil, pgerr.New(codes.InvalidParameterValue, "cannot delete path in scalar")
	case n.scalar():
		return nil, pgerr.New(codes.InvalidParameterValue, "cannot set path in scalar")
	case len(n.items) == 0 && (what == editDelete || what == editReplace), len(path) == 0:
		return n, nil
	}
	return n.changeAt(path, 0, what, v)
}

func (n *jsonNode) changeAt(path []*string, depth int, what edit, v *jsonNode) (*jsonNode, error) {
	if path[depth] == nil {
		return nil, pgerr.New(codes.NullValueNotAllowed, "path element at position %d is null", depth+1)
	}
	switch n.kind {
	case jsonObject:
		return n.changeMember(path, depth, what, v)
	case jsonArray:
		return n.changeElement(path, depth, what, v)
	}
	return n, nil
}

func (n *jsonNode) changeMember(path []*string, depth int, what edit, v *jsonNode) (*jsonNode, error) {
	name, last := *path[depth], depth == len(path)-1
	at := slices.Index(n.names, name)
	out := &jsonNode{kind: jsonObject, names: slices.Clone(n.names), items: slices.Clone(n.items)}
	switch {
	case at < 0:
		if last && (what == editSet || what == editInsert || what == editInsertAfter) {
			out.names, out.items = append(out.names, name), append(out.items, v)
			out.sort()
		}
	case !last:
		item, err := n.items[at].changeAt(path, depth+1, what, v)
		if err != nil {
			return nil, err
		}
		out.items[at] = item
	case what == editDelete:
		out.names, out.items = slices.Delete(out.names, at, at+1), slices.Delete(out.items, at, at+1)
	case what == editInsert || what == editInsertAfter:
		return nil, pgerr.New(codes.InvalidParameterValue, "cannot replace existing key").
			WithHint("Try using the function jsonb_set to replace key value.")
	default:
		out.items[at] = v
	}
	return out, nil
}

func (n *jsonNode) changeElement(path []*string, depth int, what edit, v *jsonNode) (*jsonNode, error) {
	i, ok := pathIndex(*path[depth])
	if !ok {
		return nil, pgerr.New(codes.InvalidTextRepresentation, "path element at position %d is not an integer: \"%s\"", depth+1,
			*path[depth])
	}
	last, size := depth == len(path)-1, int64(len(n.items))
	if i < 0 {
		i += size
	}
	out := &jsonNode{kind: jsonArray, items: slices.Clone(n.items)}
	if i < 0 || i >= size {
		add := last && (what == editSet || what == editInsert || what == editInsertAfter)
		switch {
		case add && i < 0:
			out.items = slices.Insert(out.items, 0, v)
		case add:
			out.items = append(out.items, v)
		}
		return out, nil
	}
	switch {
	case !last:
		item, err := n.items[i].changeAt(path, depth+1, what, v)
		if err != nil {
			return nil, err
		}
		out.items[i] = item
	case what == editDelete:
		out.items = slices.Delete(out.items, int(i), int(i)+1)
	case what == editInsert:
		out.items = slices.Insert(out.items, int(i), v)
	case what == editInsertAfter:
		out.items = slices.Insert(out.items, int(i)+1, v)
	default:
		out.items[i] = v
	}
	return out, nil
}

// stripNulls leaves out members that are null, at any depth.
func (n *jsonNode) stripNulls() *jsonNode {
	out := &jsonNode{kind: n.kind, text: n.text, truth: n.truth}
	for i, item := range n.items {
		if n.kind == jsonObject {
			if item.kind == jsonNull {
				continue
			}
			out.names = append(out.names, n.names[i])
		}
		out.items = append(out.items, item.stripNulls())
	}
	return out
}
