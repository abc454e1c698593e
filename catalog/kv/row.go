package kv

import "encoding/binary"

// AppendRow appends a row as images of a store hold it: the length of the key as a
// uvarint, the key, then the value likewise. TakeField reads them back.
func AppendRow(b, key, value []byte) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// TakeField reads a key or a value of at most so many bytes from the beginning of b, of
// which field and rest are parts; ok is false when there is none.
func TakeField(b []byte, most int) (field, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(most) || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return b[size:end:end], b[end:], true
}
