// Package render writes what EXPLAIN answers: the engine's plan as a tree of PostgreSQL's nodes,
// and the answer in the formats that PostgreSQL has: text, JSON, XML and YAML, with its
// indentation, names of elements and quotes.
package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// node is a value of the document: an object or a list has items, all else a text as JSON
// has it.
type node struct {
	key    string
	object bool
	list   bool
	items  []*node
	text   string
	string bool
}

// parse reads a document, keeping the order of keys.
func parse(document []byte) (*node, error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	n, err := value(d)
	if err != nil {
		return nil, fmt.Errorf("read the answer of EXPLAIN: %w", err)
	}
	return n, nil
}

func value(d *json.Decoder) (*node, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &node{}
	switch t := t.(type) {
	case json.Delim:
		n.object, n.list = t == '{', t == '['
		for d.More() {
			key := ""
			if n.object {
				k, err := d.Token()
				if err != nil {
					return nil, err
				}
				key, _ = k.(string) // keys are
			}
			item, err := value(d)
			if err != nil {
				return nil, err
			}
			item.key = key
			n.items = append(n.items, item)
		}
		_, err = d.Token() // its end
		return n, err
	case string:
		n.string, n.text = true, t
	case nil:
		n.text = "null"
	default:
		n.text = fmt.Sprint(t)
	}
	return n, nil
}

// XML writes a list of objects, one for each query.
func XML(document []byte) (string, error) {
	root, err := parse(document)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n")
	for _, q := range root.items {
		q.key = "Query"
		q.xml(&b, 1)
	}
	b.WriteString("</explain>")
	return b.String(), nil
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#x0d;")

// element is a key as the name of an element.
func element(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, key)
}

func (n *node) xml(b *strings.Builder, depth int) {
	indent, name := strings.Repeat("  ", depth), element(n.key)
	if !n.object && !n.list {
		fmt.Fprintf(b, "%s<%s>%s</%s>\n", indent, name, escape.Replace(n.text), name)
		return
	}
	fmt.Fprintf(b, "%s<%s>\n", indent, name)
	for _, item := range n.items {
		if n.list {
			item.key = "Item"
			if item.object {
				item.key = strings.TrimSuffix(n.key, "s")
			}
		}
		item.xml(b, depth+1)
	}
	fmt.Fprintf(b, "%s</%s>\n", indent, name)
}

// YAML writes a list of objects, one for each query.
func YAML(document []byte) (string, error) {
	root, err := parse(document)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	root.yaml(&b, 0)
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// yaml writes the items of an object or list.
func (n *node) yaml(b *strings.Builder, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, item := range n.items {
		b.WriteString(indent)
		if n.list && item.object { // its first key stands beside the dash
			var inner strings.Builder
			item.yaml(&inner, depth+1)
			b.WriteString("- " + strings.TrimPrefix(inner.String(), indent+"  "))
			continue
		}
		if n.list {
			b.WriteString("- ")
		} else {
			b.WriteString(item.key + ": ")
		}
		switch {
		case item.object || item.list:
			b.WriteString("\n")
			item.yaml(b, depth+1)
		case item.string:
			b.WriteString(quoted(item.text) + "\n")
		default:
			b.WriteString(item.text + "\n")
		}
	}
}

// quoted is a text in quotes, as JSON has it.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text always can
	return strings.TrimSuffix(b.String(), "\n")
}
