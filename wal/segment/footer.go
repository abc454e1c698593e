package segment

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/skipprd/skipprd/wal/change"
)

const footerMagic = 'S' | 'K'<<8 | 'F'<<16 | 'T'<<24

var footerTrailMagic = [8]byte{'S', 'K', 'W', 'F', 'O', 'O', 'T', '1'}

// Footer closes a sealed body: an index of its slices.
type Footer struct {
	// GroupsEnd is where the last group ends and the footer begins.
	GroupsEnd uint32
	Groups    uint32
	// Chain is the SHA-256 of the body up to GroupsEnd, which the next segment's
	// header repeats.
	Chain  [sha256.Size]byte
	Slices []Slice
}

// Offsets in a footer's payload and in one of its entries.
const (
	footerAtMagic   = 0
	footerAtVersion = 4
	footerAtZero    = 5
	footerAtGroups  = 8
	footerAtEntries = 12
	footerAtEnd     = 16
	footerAtZero2   = 20
	footerAtChain   = 24
	footerAtZero3   = 56

	entryAtStart    = 0
	entryAtLength   = 4
	entryAtTable    = 8
	entryAtVersion  = 12
	entryAtRows     = 16
	entryAtFlags    = 20
	entryAtMinToken = 24
	entryAtMaxToken = 32
)

// footerBytes is the length of the footer record over n slices.
func footerBytes(n int) int {
	return recordBytes(footerFixedBytes + n*footerEntryBytes + footerTrailBytes)
}

// Footer renders the footer that belongs at End. chain is the digest of the body so
// far. Nothing may be appended any more.
func (b *Builder) Footer(chain [sha256.Size]byte) []byte {
	le := binary.LittleEndian
	n := footerBytes(len(b.index))
	out := make([]byte, n)
	p := out[recordHeaderBytes:]
	le.PutUint32(p[footerAtMagic:], footerMagic)
	p[footerAtVersion] = formatVersion
	le.PutUint32(p[footerAtGroups:], uint32(b.groups))
	le.PutUint32(p[footerAtEntries:], uint32(len(b.index)))
	le.PutUint32(p[footerAtEnd:], b.end)
	copy(p[footerAtChain:], chain[:])
	for i := range b.index {
		putEntry(p[footerFixedBytes+i*footerEntryBytes:], &b.index[i])
	}
	trail := p[len(p)-footerTrailBytes:]
	le.PutUint32(trail, b.end)
	le.PutUint32(trail[4:], uint32(n))
	copy(trail[8:], footerTrailMagic[:])
	sealRecord(out, b.seed, b.end, record{
		kind: recordFooter, group: b.header.FirstGroup + uint64(b.groups),
	}, n-recordHeaderBytes)
	return out
}

func putEntry(e []byte, s *Slice) {
	le := binary.LittleEndian
	le.PutUint32(e[entryAtStart:], s.Start)
	le.PutUint32(e[entryAtLength:], s.Length)
	le.PutUint32(e[entryAtTable:], uint32(s.Table))
	le.PutUint32(e[entryAtVersion:], s.SchemaVersion)
	le.PutUint32(e[entryAtRows:], s.Rows)
	if s.Truncate {
		e[entryAtFlags] |= sliceTruncate
	}
	if s.Backfill {
		e[entryAtFlags] |= sliceBackfill
	}
	le.PutUint64(e[entryAtMinToken:], uint64(s.Counts.MinToken))
	le.PutUint64(e[entryAtMaxToken:], uint64(s.Counts.MaxToken))
}

// FooterStart reads the last 16 bytes of a sealed body and says where its footer
// record starts.
func FooterStart(tail []byte) (start uint32, ok bool) {
	if len(tail) != footerTrailBytes || [8]byte(tail[8:]) != footerTrailMagic {
		return 0, false
	}
	return binary.LittleEndian.Uint32(tail), true
}

// ParseFooter reads the footer record in b, which starts at byte start of the body.
// Its slices carry what the index has: no counts of operations, no schema.
func ParseFooter(b []byte, seed, start uint32) (Footer, error) {
	r, err := parseRecord(b, seed, start)
	if err != nil {
		return Footer{}, err
	}
	if r.kind != recordFooter {
		return Footer{}, fmt.Errorf("record type %d: %w", r.kind, ErrKind)
	}
	return footerOf(r, start)
}

func footerOf(r record, start uint32) (Footer, error) {
	p := r.payload
	le := binary.LittleEndian
	if len(p) < footerFixedBytes+footerTrailBytes || le.Uint32(p[footerAtMagic:]) != footerMagic {
		return Footer{}, fmt.Errorf("footer: %w", ErrMagic)
	}
	if p[footerAtVersion] != formatVersion {
		return Footer{}, fmt.Errorf("footer: %w", ErrVersion)
	}
	if p[footerAtZero] != 0 || le.Uint16(p[footerAtZero+1:]) != 0 ||
		le.Uint32(p[footerAtZero2:]) != 0 || le.Uint64(p[footerAtZero3:]) != 0 {
		return Footer{}, fmt.Errorf("footer: %w", ErrReserved)
	}
	n := int64(le.Uint32(p[footerAtEntries:]))
	trail := p[len(p)-footerTrailBytes:]
	f := Footer{
		GroupsEnd: le.Uint32(p[footerAtEnd:]),
		Groups:    le.Uint32(p[footerAtGroups:]),
		Chain:     [32]byte(p[footerAtChain:]),
	}
	if n*footerEntryBytes != int64(len(p)-footerFixedBytes-footerTrailBytes) ||
		f.GroupsEnd != start || le.Uint32(trail) != start ||
		le.Uint32(trail[4:]) != uint32(r.length) || [8]byte(trail[8:]) != footerTrailMagic {
		return Footer{}, fmt.Errorf("footer: %w", ErrLength)
	}
	f.Slices = make([]Slice, n)
	for i := range f.Slices {
		e := p[footerFixedBytes+i*footerEntryBytes:]
		if le.Uint32(e[entryAtFlags:])&^(sliceTruncate|sliceBackfill) != 0 {
			return Footer{}, fmt.Errorf("footer entry %d: %w", i, ErrReserved)
		}
		f.Slices[i] = entryOf(e)
	}
	return f, nil
}

func entryOf(e []byte) Slice {
	le := binary.LittleEndian
	flags := le.Uint32(e[entryAtFlags:])
	return Slice{
		Start: le.Uint32(e[entryAtStart:]), Length: le.Uint32(e[entryAtLength:]),
		Table:         change.TableID(le.Uint32(e[entryAtTable:])),
		SchemaVersion: le.Uint32(e[entryAtVersion:]),
		Rows:          le.Uint32(e[entryAtRows:]),
		Truncate:      flags&sliceTruncate != 0,
		Backfill:      flags&sliceBackfill != 0,
		Counts: change.Counts{
			MinToken: int64(le.Uint64(e[entryAtMinToken:])),
			MaxToken: int64(le.Uint64(e[entryAtMaxToken:])),
		},
	}
}
