package jsonpath

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

type kind uint8

// The kinds of values.
const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// value is a JSON value. The members of an object are in the order of its text.
type value struct {
	kind  kind
	b     bool
	n     numeric.Num
	s     string
	items []value
	keys  []string // of items, in an object
	// at is where PostgreSQL's form of a document has it, of which document that is: 0 the one
	// that is asked, 1 variables, then those that are made.
	at, of int
}

func truth(b bool) value { return value{kind: boolean, b: b} }

func read(doc string) (value, error) {
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	v, err := readValue(d, 0)
	if err != nil {
		return v, fmt.Errorf("read a JSON document: %w", err)
	}
	return v, nil
}

func readValue(d *json.Decoder, depth int) (value, error) {
	if depth > jsonMax {
		return value{}, errDeep
	}
	t, err := d.Token()
	if err != nil {
		return value{}, err
	}
	switch t := t.(type) {
	case nil:
		return value{kind: null}, nil
	case bool:
		return truth(t), nil
	case string:
		return value{kind: text, s: t}, nil
	case json.Number:
		n, err := numeric.Parse(string(t))
		return value{kind: number, n: n}, err
	case json.Delim:
		v := value{kind: array}
		if t == '{' {
			v.kind = object
		}
		for d.More() {
			if v.kind == object {
				key, err := d.Token()
				if err != nil {
					return v, err
				}
				v.keys = append(v.keys, key.(string))
			}
			item, err := readValue(d, depth+1)
			if err != nil {
				return v, err
			}
			v.items = append(v.items, item)
		}
		_, err := d.Token()
		return v, err
	}
	return value{}, io.ErrUnexpectedEOF
}

// appendJSON writes a value.
func (v value) appendJSON(b *bytes.Buffer) {
	switch v.kind {
	case null:
		b.WriteString("null")
	case boolean:
		fmt.Fprint(b, v.b)
	case number:
		b.WriteString(v.n.Text())
	case text:
		b.Write(quotedText(v.s))
	case array, object:
		open := "[]"
		if v.kind == object {
			open = "{}"
		}
		b.WriteByte(open[0])
		for i, item := range v.items {
			if i > 0 {
				b.WriteString(", ")
			}
			if v.kind == object {
				b.Write(quotedText(v.keys[i]))
				b.WriteString(": ")
			}
			item.appendJSON(b)
		}
		b.WriteByte(open[1])
	}
}

func quotedText(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text is always written
	return bytes.TrimRight(b.Bytes(), "\n")
}

func (v value) json() string {
	var b bytes.Buffer
	v.appendJSON(&b)
	return b.String()
}

var kindNames = map[kind]string{null: "null", boolean: "boolean", number: "number", text: "string", array: "array", object: "object"}
