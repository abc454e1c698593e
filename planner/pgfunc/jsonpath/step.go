package jsonpath

import (
	"encoding/json"
	"strings"
)

// unquoted reads a text with the escapes of JSON; others are not read.
func unquoted(raw string) (string, error) {
	var s string
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return "", unsupported("texts with such escapes")
	}
	return s, nil
}

// step reads an accessor; nil when there is none.
func (p *parser) step() (*node, error) {
	switch p.sign(".", "[", "?") {
	case ".":
		return p.member()
	case "[":
		return p.subscript()
	case "?":
		if p.sign("(") == "" {
			return nil, p.syntax()
		}
		p.filters++
		n, err := p.binary(0)
		p.filters--
		if err != nil {
			return nil, err
		}
		if p.sign(")") == "" || !n.predicate() {
			return nil, p.syntax()
		}
		return p.made(&node{op: "?", left: n})
	}
	return nil, nil
}

var methods = map[string]bool{"type": true, "size": true, "double": true, "ceiling": true, "floor": true, "abs": true, "keyvalue": true}

// member reads what is behind a dot: a key, a star, a method.
func (p *parser) member() (*node, error) {
	if p.sign("*") != "" {
		if p.at < len(p.in) && p.in[p.at] == '*' {
			p.at++
			return p.anyLevel()
		}
		return p.made(&node{op: ".*"})
	}
	p.space()
	if p.at < len(p.in) && p.in[p.at] == '"' {
		s, err := p.quoted()
		if err != nil {
			return nil, err
		}
		return p.made(&node{op: ".", text: s})
	}
	name := p.bare()
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return nil, p.syntax()
	}
	if p.at < len(p.in) && p.in[p.at] == '\\' {
		return nil, unsupported("escapes outside of quotes")
	}
	if p.sign("(") == "" {
		return p.made(&node{op: ".", text: name})
	}
	switch {
	case strings.EqualFold(name, "datetime"):
		return nil, unsupported("." + name + "()")
	case !methods[name] || p.sign(")") == "":
		return nil, p.syntax()
	}
	p.keyed = p.keyed || name == "keyvalue"
	return p.made(&node{op: "()", text: name})
}

// subscript reads what is in brackets.
func (p *parser) subscript() (*node, error) {
	if p.sign("*") != "" {
		if p.sign("]") == "" {
			return nil, p.syntax()
		}
		return p.made(&node{op: "[*]"})
	}
	out := &node{op: "[]"}
	p.subscripts++
	defer func() { p.subscripts-- }()
	for {
		from, err := p.binary(levelCompare + 1)
		if err != nil {
			return nil, err
		}
		pair := [2]*node{from}
		if p.word("to") {
			if pair[1], err = p.binary(levelCompare + 1); err != nil {
				return nil, err
			}
		}
		out.subs = append(out.subs, pair)
		if p.sign(",") != "" {
			continue
		}
		if p.sign("]") == "" {
			return nil, p.syntax()
		}
		return p.made(out)
	}
}
