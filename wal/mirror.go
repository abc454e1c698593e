package wal

import (
	"crypto/sha256"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// mirror keeps the committed segments of a log on an object store in a directory of
// this host, laid out as a log on disk, for Reader and Dump. It is a cache: nothing in
// it is synced, and each opening verifies it by the markers' digests. Safe for
// concurrent use.
type mirror struct {
	d   *disk
	log *slog.Logger
}

// list reads what is there and drops what no mirror has.
func (m *mirror) list() error { return m.d.list().Err }

// keepBody makes the body readable under its name, replacing another one.
func (m *mirror) keepBody(seq segment.Seq, data []byte) error {
	if m.d.hasSize(seq) {
		if b, err := m.d.read(bodyName(m.d.cfg.Dir, seq), segment.BodyBytesMax, ReadOnly); err == nil &&
			slices.Equal(b, data) {
			return nil
		}
	}
	n := int64(len(data))
	if err := m.d.spares.reserve(n); err != nil {
		return err
	}
	if err := m.put(bodyName(m.d.cfg.Dir, seq), data); err != nil {
		m.d.spares.free(n)
		if isNoSpace(err) {
			err = errors.Join(ErrFull, err)
		}
		return err
	}
	m.d.spares.free(m.d.setSize(seq, n))
	return nil
}

// keepMarker is for Dump alone, so its failure is nobody's.
func (m *mirror) keepMarker(seq segment.Seq, data []byte) {
	if err := m.put(markerName(m.d.cfg.Dir, seq), data); err != nil {
		m.log.Warn("marker not kept in the mirror", env.KeySeq, uint64(seq), env.KeyError, err)
	}
}

// put makes a file that need not outlive the machine: the object store has it.
func (m *mirror) put(name string, data []byte) error {
	return writeWhole(m.d.fs, name, data, func(File) error { return nil })
}

// body is the marker's body if the mirror has it whole, else nil.
func (m *mirror) body(marker segment.Marker) []byte {
	if !m.d.hasSize(marker.Seq) {
		return nil
	}
	b, err := m.d.read(bodyName(m.d.cfg.Dir, marker.Seq), segment.BodyBytesMax, ReadOnly)
	if err != nil || len(b) != int(marker.Length) || sha256.Sum256(b) != marker.Digest {
		return nil
	}
	return b
}

// keepOnly removes all but the given segments.
func (m *mirror) keepOnly(live []protocol.LiveSegment) error {
	files, err := m.d.fs.List(m.d.cfg.Dir)
	if err != nil {
		return err
	}
	markers, bodies := map[segment.Seq]bool{}, map[segment.Seq]bool{}
	for _, s := range live {
		markers[s.Seq], bodies[s.Seq] = true, !s.Takeover
	}
	for _, f := range files {
		keep := bodies
		seq, ok := parseSeq(f.Name, bodySuffix)
		if !ok {
			keep = markers
			seq, ok = parseSeq(f.Name, markerSuffix)
		}
		if ok && !keep[seq] {
			err = errors.Join(err, m.drop(seq, filepath.Join(m.d.cfg.Dir, f.Name)))
		}
	}
	return err
}

// reclaim removes segments.
func (m *mirror) reclaim(below segment.Seq) error {
	var err error
	for _, seq := range m.d.seqsBelow(below) {
		err = errors.Join(err,
			m.drop(seq, markerName(m.d.cfg.Dir, seq)), m.drop(seq, bodyName(m.d.cfg.Dir, seq)))
	}
	return err
}

func (m *mirror) drop(seq segment.Seq, name string) error {
	if err := m.d.remove(name); err != nil {
		return err
	}
	if _, ok := parseSeq(filepath.Base(name), bodySuffix); ok {
		m.d.spares.free(m.d.forget(seq))
	}
	return nil
}
