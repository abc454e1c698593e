package memkv

import (
	"bytes"
	"cmp"
	"encoding/binary"
)

// node is a node of an immutable treap: writes copy the path, so a root is a
// snapshot. The priority is a function of the key, hence so is the shape.
type node struct {
	key, value  []byte
	head        uint64 // of key
	priority    uint64
	left, right *node
}

// head is the first eight bytes of a key as a number: where those of two keys differ, they
// are in the order of the keys, and neither key is looked at.
func head(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// compare orders a key, given with its head, against n's.
func (n *node) compare(key []byte, head uint64) int {
	if head != n.head {
		return cmp.Compare(head, n.head)
	}
	return bytes.Compare(key, n.key)
}

func priority(key []byte) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	x := uint64(offset)
	for _, c := range key {
		x = (x ^ uint64(c)) * prime
	}
	// Its high bits mix poorly for short keys.
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

func (n *node) get(key []byte) ([]byte, bool) {
	h := head(key)
	for n != nil {
		switch c := n.compare(key, h); {
		case c < 0:
			n = n.left
		case c > 0:
			n = n.right
		default:
			return n.value, true
		}
	}
	return nil, false
}

// split cuts n into the keys below key and the others.
func split(n *node, key []byte) (below, rest *node) {
	if n == nil {
		return nil, nil
	}
	c := *n
	if bytes.Compare(n.key, key) < 0 {
		c.right, rest = split(n.right, key)
		return &c, rest
	}
	below, c.left = split(n.left, key)
	return below, &c
}

// join puts together two trees; all keys of a are below those of b.
func join(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority >= b.priority:
		c := *a
		c.right = join(a.right, b)
		return &c
	default:
		c := *b
		c.left = join(a, b.left)
		return &c
	}
}

// set copies the path to the key, and no more.
func set(n *node, key, value []byte) *node {
	return setAt(n, &node{key: key, value: value, head: head(key), priority: priority(key)})
}

func setAt(n, to *node) *node {
	if n == nil {
		return to
	}
	if to.priority > n.priority { // then the key is not below n
		to.left, to.right = split(n, to.key)
		return to
	}
	c := *n
	switch order := n.compare(to.key, to.head); {
	case order < 0:
		c.left = setAt(n.left, to)
	case order > 0:
		c.right = setAt(n.right, to)
	default:
		c.value = to.value
	}
	return &c
}

// removeKey takes one key out; without it, it returns n.
func removeKey(n *node, key []byte) *node {
	if n == nil {
		return nil
	}
	order := bytes.Compare(key, n.key)
	if order == 0 {
		return join(n.left, n.right)
	}
	c := *n
	if order < 0 {
		if c.left = removeKey(n.left, key); c.left == n.left {
			return n
		}
		return &c
	}
	if c.right = removeKey(n.right, key); c.right == n.right {
		return n
	}
	return &c
}

func remove(n *node, lower, upper []byte) *node {
	below, rest := split(n, lower)
	_, above := split(rest, upper)
	return join(below, above)
}

// walk visits lower ≤ key < upper in order; nil is unbounded.
func (n *node) walk(lower, upper []byte, fn func(key, value []byte) error) error {
	l, u := head(lower), head(upper)
	for n != nil {
		switch {
		case lower != nil && n.compare(lower, l) > 0:
			n = n.right
			continue
		case upper != nil && n.compare(upper, u) <= 0:
			n = n.left
			continue
		}
		if err := n.left.walk(lower, nil, fn); err != nil { // all of it is below n
			return err
		}
		if err := fn(n.key, n.value); err != nil {
			return err
		}
		n, lower = n.right, nil // all of it is above n
	}
	return nil
}
