package script

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// magic begins the compact form; its last byte is the version.
const magic = "SIM\x01"

const (
	headBytes   = len(magic) + 1 + 8 + ConfigBytes
	storeFlag   = 1
	ownFlag     = 2
	recordBytes = 5
)

// Encode renders a schedule compactly: magic, flags, seed, configuration, and five bytes a record.
// What it is about and the marks that it wants are left out.
func Encode(s Schedule) []byte {
	b := make([]byte, 0, headBytes+recordBytes*len(s.Records))
	b = append(b, magic...)
	flags := byte(0)
	if s.Store {
		flags = storeFlag
	}
	if s.Own {
		flags |= ownFlag
	}
	b = append(b, flags)
	b = binary.LittleEndian.AppendUint64(b, s.Seed)
	b = append(b, s.Config[:]...)
	for _, r := range s.Records {
		b = append(b, byte(r.Op), r.Arg, r.Fault)
		b = binary.LittleEndian.AppendUint16(b, r.Rand)
	}
	return b
}

// Decode reads what Encode wrote. The operation is the low bits of its byte; a code that no
// operation has is Tick. Zeroes are benign.
func Decode(b []byte) (Schedule, error) {
	var s Schedule
	if len(b) < headBytes || string(b[:len(magic)]) != magic {
		return s, errors.New("not a compact schedule of version 1")
	}
	head := b[len(magic):]
	if head[0]&^(storeFlag|ownFlag) != 0 {
		return s, fmt.Errorf("unknown flags %#x", head[0])
	}
	s.Store, s.Own = head[0]&storeFlag != 0, head[0]&ownFlag != 0
	s.Seed = binary.LittleEndian.Uint64(head[1:])
	copy(s.Config[:], head[9:])
	b = b[headBytes:]
	if len(b)%recordBytes != 0 || len(b) > RecordsMax*recordBytes {
		return s, fmt.Errorf("%d bytes of records, want whole ones, at most %d", len(b), RecordsMax)
	}
	for ; len(b) > 0; b = b[recordBytes:] {
		s.Records = append(s.Records, record(b))
	}
	return s, nil
}

func record(b []byte) Record {
	r := Record{Op: Op(b[0] % OpsMax), Arg: b[1], Fault: b[2], Rand: binary.LittleEndian.Uint16(b[3:])}
	if r.Op >= opEnd {
		r.Op = Tick
	}
	return r
}

// Edits of a patch: the operation byte says what happens to the record at a place.
const (
	patchBytes  = 2 + recordBytes
	editDelete  = 255
	editInsert  = 254
	patchesMost = 64
)

// Patch edits a schedule: each seven bytes are a place and a record to put there; an operation
// byte of 255 takes the record out, 254 inserts the one before it once more. What lies beyond
// the end is ignored, so that every patch has a meaning. The schedule itself is left as it is.
func Patch(s Schedule, patch []byte) Schedule {
	records := append([]Record(nil), s.Records...)
	for n := 0; len(patch) >= patchBytes && len(records) > 0 && n < patchesMost; n++ {
		at := int(binary.LittleEndian.Uint16(patch)) % len(records)
		switch edit := patch[2:patchBytes]; edit[0] {
		case editDelete:
			records = append(records[:at], records[at+1:]...)
		case editInsert:
			if len(records) < RecordsMax {
				records = append(records[:at+1], records[at:]...)
			}
		default:
			records[at] = record(edit)
		}
		patch = patch[patchBytes:]
	}
	s.Records = records
	return s
}
