package pgfunc

import (
	"strings"

	"github.com/skipprd/skipprd/lake/scalar"
)

// jsonParts is an object or an array of which the members are texts: those of json as they
// are written, those of jsonb as it shows them.
type jsonParts struct {
	kind         jsonKind
	names, items []string
}

// partsOf takes a JSON text apart.
func partsOf(s string, binary bool) (*jsonParts, error) {
	return takenApart(s, &jsonParser{s: s, binary: binary})
}

func takenApart(s string, reader *jsonParser) (*jsonParts, error) {
	n, err := reader.all()
	if err != nil {
		return nil, err
	}
	out := &jsonParts{kind: n.kind, names: n.names}
	if reader.binary {
		for _, item := range n.items {
			out.items = append(out.items, item.String())
		}
		return out, nil
	}
	p := &jsonParser{s: s, raw: true} // it was read
	p.space()
	p.at++ // its bracket
	for range n.items {
		if p.space(); n.kind == jsonObject {
			if _, err := p.str(); err != nil {
				return nil, err
			}
			p.take(':')
		}
		p.space()
		start := p.at
		if _, err := p.value(); err != nil {
			return nil, err
		}
		out.items = append(out.items, s[start:p.at])
		p.take(',')
	}
	return out, nil
}

// textOfJSON is a member as ->> gives it.
func textOfJSON(raw string) (*string, error) {
	switch {
	case raw == "null":
		return nil, nil
	case raw[0] == '"':
		n, err := parseJSON(raw)
		if err != nil {
			return nil, err
		}
		return &n.text, nil
	}
	return &raw, nil
}

// itemList is the list of the items, as texts when asText.
func (j *jsonParts) itemList(asText bool) (value, error) {
	list := make([]*string, len(j.items))
	for i, raw := range j.items {
		list[i] = &raw
		if asText {
			var err error
			if list[i], err = textOfJSON(raw); err != nil {
				return value{}, err
			}
		}
	}
	out, err := listText(list)
	return scalar.OfText(out), err
}

func (k jsonKind) word() string {
	switch k {
	case jsonArray:
		return "an array"
	case jsonObject:
		return "an object"
	}
	return "a scalar"
}

// jsonRowFunctions are what the set-returning functions of json and jsonb are made of. Their
// last argument is the form ("json", "jsonb", "json_text", "jsonb_text"), or the name of the
// function that is called.
func jsonRowFunctions() []scalar.Function {
	text := scalar.Text
	return []scalar.Function{
		{Name: "skippr_j_items", Params: kinds(text, text), Result: text, Call: func(a []value) (value, error) {
			j, err := takenApart(a[0].Text, &jsonParser{s: a[0].Text, binary: strings.HasPrefix(a[1].Text, "jsonb"), raw: a[1].Text == "json"})
			if err != nil {
				return value{}, err
			}
			if j.kind != jsonArray {
				return value{}, invalid("cannot extract elements from %s", j.kind.word())
			}
			return j.itemList(strings.HasSuffix(a[1].Text, "text"))
		}},
		{Name: "skippr_j_keys", Params: kinds(text, text), Result: text, Call: func(a []value) (value, error) {
			j, err := partsOf(a[0].Text, strings.HasPrefix(a[1].Text, "jsonb"))
			if err != nil {
				return value{}, err
			}
			if j.kind != jsonObject {
				return value{}, invalid("cannot call %s on %s", strings.Clone(a[1].Text), j.kind.word())
			}
			list := make([]*string, len(j.names))
			for i := range j.names {
				list[i] = &j.names[i]
			}
			out, err := listText(list)
			return scalar.OfText(out), err
		}},
		{Name: "skippr_j_values", Params: kinds(text, text), Result: text, Call: func(a []value) (value, error) {
			j, err := partsOf(a[0].Text, strings.HasPrefix(a[1].Text, "jsonb"))
			if err != nil {
				return value{}, err
			}
			return j.itemList(strings.HasSuffix(a[1].Text, "text"))
		}},
		{Name: "skippr_j_records", Params: kinds(text, text), Result: text, Call: func(a []value) (value, error) {
			j, err := partsOf(a[0].Text, strings.HasPrefix(a[1].Text, "jsonb"))
			if err != nil {
				return value{}, err
			}
			if j.kind != jsonArray {
				return value{}, invalid("cannot call %s on %s", strings.Clone(a[1].Text), j.kind.word())
			}
			for _, raw := range j.items {
				if raw[0] != '{' {
					return value{}, invalid("argument of %s must be an array of objects", strings.Clone(a[1].Text))
				}
			}
			return j.itemList(false)
		}},
		{Name: "skippr_j_field", Params: kinds(text, text, text), Result: text, Call: recordField},
	}
}

// recordField is a member of an object in the form that the input function of a column takes:
// "text", "json" or "jsonb" as it is, "array" as the text of an array.
func recordField(a []value) (value, error) {
	form := a[2].Text
	j, err := partsOf(a[0].Text, form == "jsonb")
	if err != nil {
		return value{}, err
	}
	if j.kind != jsonObject {
		return value{}, invalid("cannot call populate_composite on %s", j.kind.word())
	}
	for i := len(j.names) - 1; i >= 0; i-- {
		if j.names[i] != a[1].Text {
			continue
		}
		raw := j.items[i]
		if form == "has" {
			return scalar.OfText(""), nil
		}
		if form == "json" || form == "jsonb" {
			if form == "json" && raw == "null" {
				return scalar.Null, nil
			}
			return scalar.OfText(raw), nil
		}
		if form == "array" && raw[0] == '[' {
			return arrayOfJSON(raw)
		}
		if form == "array" && raw != "null" && raw[0] != '"' {
			return value{}, errJSONArray
		}
		s, err := textOfJSON(raw)
		if err != nil || s == nil {
			return scalar.Null, err
		}
		return scalar.OfText(*s), nil
	}
	return scalar.Null, nil
}

// arrayOfJSON is a JSON array as the text of an array.
func arrayOfJSON(raw string) (value, error) {
	j, err := partsOf(raw, false)
	if err != nil {
		return value{}, err
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, item := range j.items {
		if i > 0 {
			b.WriteByte(',')
		}
		if item[0] == '[' {
			return value{}, unsupported("arrays of several dimensions are not supported")
		}
		s, err := textOfJSON(item)
		if err != nil {
			return value{}, err
		}
		if s == nil {
			b.WriteString("NULL")
			continue
		}
		b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(*s) + `"`)
	}
	b.WriteByte('}')
	return scalar.OfText(b.String()), nil
}
