package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/skipprd/skipprd/catalog/kv"
)

// An image of the catalog, little-endian:
//
//	 0  magic 4 "SKCI"
//	 4  version 1
//	 5  reserved 3
//	 8  length of the rows 8
//	16  rows: key length uvarint, key, value length uvarint, value;
//	    keys ascending, as in the store (some were written with the
//	    prefixes in another order, each once)
//	    CRC32C of all before 4
const (
	imageVersion    = 1
	imageAtVersion  = 4
	imageAtReserved = 5
	imageAtLength   = 8
	imageAtRows     = 16
	imageCRCBytes   = 4

	imageBytesMax      = 1 << 30
	imageKeyBytesMax   = 4 << 10
	imageValueBytesMax = 256 << 20
)

var (
	imageMagic      = [4]byte{'S', 'K', 'C', 'I'}
	imageCastagnoli = crc32.MakeTable(crc32.Castagnoli)
)

var errImageTooLarge = errors.New("catalog image is too large")

// encodeImage renders the rows of r that go into an image, which are about so many bytes, into
// the memory of into if there is enough of it.
func encodeImage(into []byte, r kv.Reader, about int64) ([]byte, error) {
	if size := about + about/8 + 4<<10; int64(cap(into)) < size {
		into = make([]byte, 0, size)
	}
	b := append(into[:0], make([]byte, imageAtRows)...)
	copy(b, imageMagic[:])
	b[imageAtVersion] = imageVersion
	err := scanImage(r, func(k, v []byte) error {
		if len(k) > imageKeyBytesMax || len(v) > imageValueBytesMax || len(b)+len(k)+len(v) > imageBytesMax-64 {
			return fmt.Errorf("row of %d and %d bytes: %w", len(k), len(v), errImageTooLarge)
		}
		b = kv.AppendRow(b, k, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(b[imageAtLength:], uint64(len(b)-imageAtRows))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, imageCastagnoli)), nil
}

// imageRow is a row of an image.
type imageRow struct{ key, value []byte }

// parseImage takes an image apart, or wraps ErrCorrupt or ErrFormat. The rows are parts
// of b.
func parseImage(b []byte) ([]imageRow, error) {
	le := binary.LittleEndian
	if len(b) < imageAtRows+imageCRCBytes || len(b) > imageBytesMax || [4]byte(b) != imageMagic {
		return nil, fmt.Errorf("image of %d bytes: %w", len(b), ErrCorrupt)
	}
	body := b[:len(b)-imageCRCBytes]
	if le.Uint32(b[len(body):]) != crc32.Checksum(body, imageCastagnoli) {
		return nil, fmt.Errorf("image checksum: %w", ErrCorrupt)
	}
	if b[imageAtVersion] != imageVersion {
		return nil, fmt.Errorf("image version %d: %w", b[imageAtVersion], ErrFormat)
	}
	if !bytes.Equal(b[imageAtReserved:imageAtLength], make([]byte, imageAtLength-imageAtReserved)) ||
		le.Uint64(b[imageAtLength:]) != uint64(len(body)-imageAtRows) {
		return nil, fmt.Errorf("image header: %w", ErrCorrupt)
	}
	var rows []imageRow
	var had [256]bool // prefixes
	for rest := body[imageAtRows:]; len(rest) > 0; {
		var row imageRow
		var ok bool
		if row.key, rest, ok = kv.TakeField(rest, imageKeyBytesMax); !ok || len(row.key) == 0 {
			return nil, fmt.Errorf("image row %d: %w", len(rows), ErrCorrupt)
		}
		if row.value, rest, ok = kv.TakeField(rest, imageValueBytesMax); !ok {
			return nil, fmt.Errorf("image row %d: %w", len(rows), ErrCorrupt)
		}
		prefix, n := row.key[0], len(rows)
		known := bytes.IndexByte(imagePrefixes, prefix) >= 0
		if goesOn := n > 0 && rows[n-1].key[0] == prefix; !known || had[prefix] != goesOn || goesOn && bytes.Compare(rows[n-1].key, row.key) >= 0 {
			return nil, fmt.Errorf("image row %d is out of place: %w", n, ErrCorrupt)
		}
		had[prefix] = true
		rows = append(rows, row)
	}
	return rows, nil
}

// ownerOfKey is the id that a key begins with after its prefix.
func ownerOfKey(key []byte) (uint32, bool) {
	if len(key) < 1+4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(key[1:]), true
}
