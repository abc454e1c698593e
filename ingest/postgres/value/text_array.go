package value

import (
	"github.com/apache/arrow-go/v18/arrow/array"
)

// textArray decodes an array literal of one dimension: {1,NULL,"a \"b\""}.
func textArray(elem Decoder) Decoder {
	var scratch []byte
	return func(dst array.Builder, src []byte) error {
		if len(src) > 0 && src[0] == '[' {
			return ErrLowerBound
		}
		if len(src) < 2 || src[0] != '{' || src[len(src)-1] != '}' {
			return ErrMalformed
		}
		list := dst.(*array.ListBuilder)
		list.Append(true)
		elements := list.ValueBuilder()
		body := src[1 : len(src)-1]
		for more := len(body) > 0; more; {
			var err error
			body, more, err = textElement(elements, elem, body, &scratch)
			if err != nil {
				return err
			}
		}
		if cap(scratch) > scratchKept {
			scratch = nil
		}
		return nil
	}
}

// textElement appends the first element of body and returns what follows its comma;
// more says that there was one.
func textElement(dst array.Builder, elem Decoder, body []byte, scratch *[]byte) (rest []byte, more bool, err error) {
	var token []byte
	quoted := len(body) > 0 && body[0] == '"'
	switch {
	case quoted:
		if token, rest, err = unquote(body, scratch); err != nil {
			return nil, false, err
		}
	case len(body) > 0 && body[0] == '{':
		return nil, false, ErrDimensions
	default:
		end := 0
		for end < len(body) && body[end] != ',' {
			if body[end] == '\\' || body[end] == '"' {
				return nil, false, ErrMalformed
			}
			end++
		}
		token, rest = body[:end], body[end:]
	}
	switch {
	case !quoted && len(token) == 0:
		return nil, false, ErrMalformed
	case !quoted && string(token) == "NULL":
		dst.AppendNull()
	default:
		if err := elem(dst, token); err != nil {
			return nil, false, err
		}
	}
	if len(rest) == 0 {
		return nil, false, nil
	}
	if rest[0] != ',' {
		return nil, false, ErrMalformed
	}
	return rest[1:], true, nil
}

// unquote reads a quoted element; token is good until the next call.
func unquote(body []byte, scratch *[]byte) (token, rest []byte, err error) {
	out := (*scratch)[:0]
	for i := 1; i < len(body); i++ {
		switch body[i] {
		case '"':
			*scratch = out
			return out, body[i+1:], nil
		case '\\':
			i++
			if i == len(body) {
				return nil, nil, ErrMalformed
			}
		}
		out = append(out, body[i])
	}
	return nil, nil, ErrMalformed
}
