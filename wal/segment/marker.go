package segment

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

var markerMagic = [4]byte{'S', 'K', 'W', 'C'}

// MarkerFlags qualify a marker.
type MarkerFlags uint8

// The marker's flags. Durable.
const (
	// Takeover: no body; the marker fences the writers of older epochs.
	Takeover MarkerFlags = 1
	// Encrypted: records are ciphertext.
	Encrypted MarkerFlags = 2
	// SealedByRecovery: the body ends at its last group end and has no footer.
	SealedByRecovery MarkerFlags = 4

	markerFlagsKnown = Takeover | Encrypted | SealedByRecovery
)

// Marker commits a body: what it does not cover does not exist (W2).
type Marker struct {
	Flags  MarkerFlags
	Groups uint16
	Epoch  Epoch
	// Length of the body in bytes.
	Length uint32
	Seq    Seq
	// Digest is the SHA-256 of the body's Length bytes.
	Digest [sha256.Size]byte
}

// Offsets in a marker.
const (
	markerAtVersion = 4
	markerAtFlags   = markerAtVersion + 1
	markerAtGroups  = markerAtFlags + 1
	markerAtEpoch   = markerAtGroups + 2
	markerAtLength  = markerAtEpoch + 4
	markerAtSeq     = markerAtLength + 4
	markerAtDigest  = markerAtSeq + 8
	markerAtCRC     = markerAtDigest + 32
)

// Encode renders the marker.
func (m Marker) Encode() [MarkerBytes]byte {
	var b [MarkerBytes]byte
	le := binary.LittleEndian
	copy(b[:], markerMagic[:])
	b[markerAtVersion] = formatVersion
	b[markerAtFlags] = byte(m.Flags)
	le.PutUint16(b[markerAtGroups:], m.Groups)
	le.PutUint32(b[markerAtEpoch:], uint32(m.Epoch))
	le.PutUint32(b[markerAtLength:], m.Length)
	le.PutUint64(b[markerAtSeq:], uint64(m.Seq))
	copy(b[markerAtDigest:], m.Digest[:])
	le.PutUint32(b[markerAtCRC:], crc32.Checksum(b[:markerAtCRC], castagnoli))
	return b
}

// ParseMarker reads a marker; seq is the one its name promises.
func ParseMarker(b []byte, seq Seq) (Marker, error) {
	if len(b) != MarkerBytes {
		return Marker{}, fmt.Errorf("marker of %d bytes: %w", len(b), ErrLength)
	}
	le := binary.LittleEndian
	m := Marker{
		Flags:  MarkerFlags(b[markerAtFlags]),
		Groups: le.Uint16(b[markerAtGroups:]),
		Epoch:  Epoch(le.Uint32(b[markerAtEpoch:])),
		Length: le.Uint32(b[markerAtLength:]),
		Seq:    Seq(le.Uint64(b[markerAtSeq:])),
		Digest: [32]byte(b[markerAtDigest:]),
	}
	switch {
	case [4]byte(b) != markerMagic:
		return Marker{}, fmt.Errorf("marker: %w", ErrMagic)
	case le.Uint32(b[markerAtCRC:]) != crc32.Checksum(b[:markerAtCRC], castagnoli):
		return Marker{}, fmt.Errorf("marker: %w", ErrChecksum)
	case b[markerAtVersion] != formatVersion:
		return Marker{}, fmt.Errorf("marker: %w", ErrVersion)
	case m.Flags&^markerFlagsKnown != 0:
		return Marker{}, fmt.Errorf("marker flags %#x: %w", m.Flags, ErrReserved)
	case m.Seq != seq:
		return Marker{}, fmt.Errorf("marker of segment %s: %w", m.Seq.ID(), ErrIdentity)
	case m.Length > BodyBytesMax:
		return Marker{}, fmt.Errorf("marker over %d bytes: %w", m.Length, ErrLength)
	case m.Flags&Takeover != 0 && (m.Length != 0 || m.Groups != 0 || m.Digest != sha256.Sum256(nil)):
		return Marker{}, fmt.Errorf("takeover marker with a body: %w", ErrIdentity)
	case m.Flags&Takeover == 0 && m.Length < HeaderBytes:
		return Marker{}, fmt.Errorf("marker over %d bytes: %w", m.Length, ErrLength)
	}
	return m, nil
}
