package check

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// logBytes is a log as its store has it, parsed. It reads again only what has changed.
type logBytes struct {
	dir     string
	version uint64
	listing uint64
	read    bool
	files   []logFile // by seq
	segs    map[segment.Seq]*segmentBytes
	// seqs are those of segs, in order; changed are those that the last update read, or found
	// to be gone.
	seqs, changed []segment.Seq
	// last is where the log ends: its last whole group.
	last place
	// position is the greatest position of a group that was ever seen in these bytes.
	position change.Position
}

// logFile is a file of a log.
type logFile struct {
	name
	full  string
	stamp uint64
	// changed: since the segment was read.
	changed bool
}

// place is a point of a log: the end of a group.
type place struct {
	seq segment.Seq
	end uint32
}

func (p place) less(o place) bool { return p.seq < o.seq || p.seq == o.seq && p.end < o.end }

// segmentBytes is a segment in a store.
type segmentBytes struct {
	seq    segment.Seq
	files  int    // how many it was read from
	data   []byte // what the rest was read from; nil: no body was chosen
	header segment.Header
	marker []byte // nil while there is none
	mark   segment.Marker
	body   bool // there is a readable body
	groups []segment.Group
	end    uint32
	slices map[uint32]*segment.Slice
	digest bool // that of the marker
	damage error
}

// committed says whether a reader may see the segment's groups.
func (s *segmentBytes) committed(shared bool) bool {
	return s.body && s.damage == nil && (!shared || s.marker != nil)
}

// group finds the group that ends at end.
func (s *segmentBytes) group(end uint32) *segment.Group {
	for i := range s.groups {
		if s.groups[i].End == end {
			return &s.groups[i]
		}
	}
	return nil
}

// update reads the store anew if it has changed; full reads everything. changed says
// that there was something to read.
func (l *logBytes) update(b Bytes, dir string, full bool) (changed bool, err error) {
	if dir != l.dir {
		*l = logBytes{dir: dir}
	}
	if l.read && b.Version() == l.version && !full {
		return false, nil
	}
	l.changed = l.changed[:0]
	l.list(b, full || !l.read)
	l.version, l.read = b.Version(), true
	if l.segs == nil {
		l.segs = map[segment.Seq]*segmentBytes{}
	}
	for files := l.files; len(files) > 0; {
		n := filesOf(files)
		l.refresh(b, files[:n])
		files = files[n:]
	}
	l.findEnd()
	return true, nil
}

// list brings the files up to date. Those that may have changed are marked; all, if the
// store does not know which.
func (l *logBytes) list(b Bytes, all bool) {
	st, ok := b.(stamped)
	if ok && !all && st.Listing() == l.listing {
		for i := range l.files {
			f := &l.files[i]
			stamp := st.Stamp(f.full)
			f.changed, f.stamp = stamp != f.stamp, stamp
		}
		return
	}
	old := l.files
	l.files = make([]logFile, 0, len(old)+2)
	for _, full := range b.Names(l.prefix()) {
		f := logFile{full: full, changed: true}
		at := slices.IndexFunc(old, func(f logFile) bool { return f.full == full })
		if at >= 0 {
			f.name = old[at].name
		} else if f.name, f.changed = parseName(full); !f.changed {
			continue // not of the log
		}
		if ok {
			f.stamp = st.Stamp(full)
			f.changed = all || at < 0 || old[at].stamp != f.stamp
		}
		l.files = append(l.files, f)
	}
	if ok {
		l.listing = st.Listing()
	}
	slices.SortStableFunc(l.files, func(a, b logFile) int { return cmp.Compare(a.seq, b.seq) })
	l.count()
}

// count finds the segments that the files are of.
func (l *logBytes) count() {
	had := l.seqs
	l.seqs = make([]segment.Seq, 0, len(had)+1)
	for files := l.files; len(files) > 0; {
		n := filesOf(files)
		l.seqs = append(l.seqs, files[0].seq)
		if s := l.segs[files[0].seq]; s != nil && s.files != n { // a file less is a change
			files[0].changed = true
		}
		files = files[n:]
	}
	for _, seq := range had {
		if _, there := slices.BinarySearch(l.seqs, seq); !there {
			delete(l.segs, seq)
			l.changed = append(l.changed, seq)
		}
	}
}

// filesOf is how many files the segment of the first one has.
func filesOf(files []logFile) int {
	n := 1
	for n < len(files) && files[n].seq == files[0].seq {
		n++
	}
	return n
}

// refresh reads the files of a segment, if one has changed.
func (l *logBytes) refresh(b Bytes, files []logFile) {
	seq := files[0].seq
	old := l.segs[seq]
	if old != nil && !slices.ContainsFunc(files, func(f logFile) bool { return f.changed }) {
		return
	}
	var bodies []body
	var marker []byte
	for i := range files {
		data, ok := b.Read(files[i].full)
		switch {
		case !ok:
		case files[i].marker:
			marker = data
		default:
			bodies = append(bodies, body{files[i].epoch, data})
		}
	}
	s := parseSegment(seq, bodies, marker, old)
	s.files = len(files)
	l.segs[seq] = s
	l.changed = append(l.changed, seq)
}

func (l *logBytes) prefix() string {
	if l.dir == "" {
		return ""
	}
	return l.dir + "/"
}

func (l *logBytes) findEnd() {
	for _, seq := range l.changed {
		s := l.segs[seq]
		for i := 0; s != nil && i < len(s.groups); i++ {
			if p := s.groups[i].Position; source.LSN(p) > source.LSN(l.position) {
				l.position = p
			}
		}
	}
	l.last = place{}
	for i := len(l.seqs) - 1; i >= 0; i-- {
		if s := l.segs[l.seqs[i]]; len(s.groups) > 0 {
			l.last = place{s.seq, s.end}
			return
		}
	}
}

// slice finds a slice in the bytes.
func (l *logBytes) slice(ref segment.SliceRef) *segment.Slice {
	if s := l.segs[ref.Seq]; s != nil {
		return s.slices[ref.Start]
	}
	return nil
}

// body is a body of an epoch; of a log on a disk the epoch is 0.
type body struct {
	epoch segment.Epoch
	data  []byte
}

// name is a file's name taken apart.
type name struct {
	seq    segment.Seq
	epoch  segment.Epoch
	marker bool
}

// parseName reads "ID.seg", "ID.seg.commit" and, of a shared store, "ID-EPOCH.seg".
func parseName(full string) (name, bool) {
	base := path.Base(full)
	var n name
	base, n.marker = strings.CutSuffix(base, ".seg.commit")
	if !n.marker {
		var ok bool
		if base, ok = strings.CutSuffix(base, ".seg"); !ok {
			return n, false
		}
	}
	id, epoch, shared := strings.Cut(base, "-")
	seq, err := strconv.ParseUint(id, 16, 64)
	if err != nil || len(id) != 16 || seq == 0 {
		return n, false
	}
	n.seq = segment.Seq(seq)
	if shared {
		e, err := strconv.ParseUint(epoch, 16, 32)
		if err != nil {
			return n, false
		}
		n.epoch = segment.Epoch(e)
	}
	return n, true
}

// parseSegment reads a segment. It is a function of the bytes: of the same ones old is read
// already.
func parseSegment(seq segment.Seq, bodies []body, marker []byte, old *segmentBytes) *segmentBytes {
	s := &segmentBytes{seq: seq, marker: bytes.Clone(marker), digest: true}
	if marker != nil {
		m, err := segment.ParseMarker(marker, seq)
		if err != nil {
			s.damage = err
			return s
		}
		s.mark = m
	}
	data := s.choose(bodies)
	if data == nil {
		return s
	}
	if old != nil && old.data != nil && (old.marker == nil) == (marker == nil) && bytes.Equal(old.marker, marker) &&
		bytes.Equal(old.data, data) {
		return old
	}
	if old != nil { // of which nothing is needed any more
		s.data = old.data[:0]
	}
	s.data = append(s.data, data...)
	s.parse(s.data)
	return s
}

// choose picks the body that the marker commits, or the only one.
func (s *segmentBytes) choose(bodies []body) []byte {
	for _, b := range bodies {
		if b.epoch == 0 || s.marker != nil && b.epoch == s.mark.Epoch || s.marker == nil && len(bodies) == 1 {
			return b.data
		}
	}
	return nil
}

func (s *segmentBytes) parse(data []byte) {
	h, err := segment.ParseHeader(data)
	if err != nil || h.Seq != s.seq {
		if s.marker != nil && err == nil {
			err = segment.ErrIdentity
		}
		if s.marker != nil {
			s.damage = fmt.Errorf("body of a committed segment: %w", err)
		}
		return // of an earlier use of the file, or being made
	}
	s.header, s.body = h, true
	s.slices = map[uint32]*segment.Slice{}
	collect := func(g segment.Group) error {
		s.groups = append(s.groups, g)
		for i := range g.Slices {
			s.slices[g.Slices[i].Start] = &g.Slices[i]
		}
		return nil
	}
	if s.marker == nil {
		s.end, s.damage = segment.WalkGroups(h, data, collect)
	} else {
		s.sealed(data, collect)
	}
}

func (s *segmentBytes) sealed(data []byte, collect func(segment.Group) error) {
	if int64(len(data)) < int64(s.mark.Length) {
		s.damage = fmt.Errorf("body of %d bytes, the marker covers %d: %w", len(data), s.mark.Length, segment.ErrLength)
		return
	}
	data = data[:s.mark.Length]
	s.digest = sha256.Sum256(data) == s.mark.Digest
	s.end, s.damage = segment.WalkSealed(s.header, s.mark, data, collect)
}
