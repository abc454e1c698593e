package segment

import (
	"hash/crc32"
	"time"

	"github.com/skipprd/skipprd/wal/change"
)

// Group is a group in its place in a body.
type Group struct {
	// Start and End are its bytes, End exclusive. End is past the group end record.
	Start, End uint32
	// Number counts the pipeline's groups without gaps.
	Number uint64
	// Synced is the byte below which the body was durable when the group was
	// written.
	Synced      uint32
	Slices      []Slice
	Position    change.Position
	CommittedAt time.Time
	State       []byte
}

// Builder gives groups their place in one body. It writes nothing itself. Not safe
// for concurrent use.
type Builder struct {
	header  Header
	seed    uint32
	end     uint32
	groups  int
	schemas map[schemaKey]uint32
	index   []Slice
}

type schemaKey struct {
	table   change.TableID
	version uint32
}

// NewBuilder begins the body of h.
func NewBuilder(h Header) *Builder {
	return &Builder{header: h, seed: h.Seed(), end: HeaderBytes, schemas: map[schemaKey]uint32{}}
}

// Header is the one the builder was made with.
func (b *Builder) Header() Header { return b.header }

// End is where the next group begins.
func (b *Builder) End() uint32 { return b.end }

// Groups is how many groups the body has.
func (b *Builder) Groups() int { return b.groups }

// Room is how long the body would be with x and a footer. Above GroupsMax groups
// there is no room at any length: BodyBytesMax+1 is the answer.
func (b *Builder) Room(x *Encoded) int64 {
	if b.groups >= GroupsMax {
		return BodyBytesMax + 1
	}
	n := int64(b.end) + int64(b.groupBytes(x))
	return n + int64(footerBytes(len(b.index)+len(x.slices)))
}

func (b *Builder) groupBytes(x *Encoded) int {
	n := len(x.buffer) + recordBytes(groupEndBytes+len(x.Position)+len(x.State))
	for i := range x.slices {
		s := &x.slices[i]
		if _, ok := b.schemas[keyOf(s)]; ok || s.schema == nil || seenBefore(x.slices[:i], s) {
			continue
		}
		n += recordBytes(len(s.schema))
	}
	return n
}

func keyOf(s *encodedSlice) schemaKey { return schemaKey{s.Table, s.SchemaVersion} }

func seenBefore(earlier []encodedSlice, s *encodedSlice) bool {
	for i := range earlier {
		if earlier[i].schema != nil && keyOf(&earlier[i]) == keyOf(s) {
			return true
		}
	}
	return false
}

// Append gives x its place and appends its bytes, group end included, to dst. They
// belong at byte End of the body, as End was before. synced is the byte below
// which the body is durable now. The caller has asked Room.
func (b *Builder) Append(dst []byte, x *Encoded, synced uint32) ([]byte, Group) {
	g := Group{
		Start: b.end, Number: b.header.FirstGroup + uint64(b.groups), Synced: synced,
		Position: x.Position, CommittedAt: x.CommittedAt, State: x.State,
		Slices: make([]Slice, 0, len(x.slices)),
	}
	p := placing{b: b, dst: dst, group: g.Number, crc: b.seed}
	for i := range x.slices {
		s := &x.slices[i]
		if s.schema != nil {
			p.schema(s)
		}
		g.Slices = append(g.Slices, p.slice(x, s))
	}
	p.groupEnd(&g)
	b.groups++
	b.index = append(b.index, g.Slices...)
	g.End = b.end
	return p.dst, g
}

// placing is the group that is being given its place.
type placing struct {
	b       *Builder
	dst     []byte
	group   uint64
	records uint32
	crc     uint32 // over the checksums of the records so far
}

// frame seals the last n+header bytes of dst as a record.
func (p *placing) frame(from int, r record, n int) {
	r.group = p.group
	sealRecord(p.dst[from:], p.b.seed, p.b.end, r, n)
	p.crc = crc32.Update(p.crc, castagnoli, p.dst[from+recordAtCRC:][:4])
	p.records++
	p.b.end += uint32(len(p.dst) - from)
}

func (p *placing) schema(s *encodedSlice) {
	if _, ok := p.b.schemas[keyOf(s)]; ok {
		return
	}
	from := len(p.dst)
	p.dst = appendZeros(p.dst, recordBytes(len(s.schema)))
	copy(p.dst[from+recordHeaderBytes:], s.schema)
	p.b.schemas[keyOf(s)] = p.b.end
	p.frame(from, record{kind: recordSchema, table: s.Table, version: s.SchemaVersion}, len(s.schema))
}

func (p *placing) slice(x *Encoded, s *encodedSlice) Slice {
	placed := s.Slice
	placed.Start, placed.Length = p.b.end, uint32(s.to-s.from)
	if s.schema != nil {
		placed.Schema = p.b.schemas[keyOf(s)]
	}
	from := len(p.dst)
	p.dst = append(p.dst, x.buffer[s.from:s.to]...)
	putSliceHeader(p.dst[from+recordHeaderBytes:], &placed)
	// The message is a multiple of 8 long, so the record has no padding.
	p.frame(from, record{
		kind: recordSlice, rows: s.Rows, table: s.Table, version: s.SchemaVersion,
	}, s.to-s.from-recordHeaderBytes)
	return placed
}

func (p *placing) groupEnd(g *Group) {
	n := groupEndBytes + len(g.Position) + len(g.State)
	from := len(p.dst)
	p.dst = appendZeros(p.dst, recordBytes(n))
	putGroupEnd(p.dst[from+recordHeaderBytes:], g, p.records, p.crc)
	p.frame(from, record{kind: recordGroupEnd}, n)
}
