package wal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/skipprd/skipprd/wal/segment"
)

// DumpOptions says what Dump shows besides segments and groups.
type DumpOptions struct {
	// Slices lists the slices of each group.
	Slices bool
	// FS is read from; nil is the machine's.
	FS FS
}

// Dump writes what is in a log for people to read: headers, groups, markers and a
// verdict on each segment. path is a log's directory or one of its segment files. It
// only reads, and may run beside a writer; what it says of the active segment is then
// a moment's truth, and a segment that is reclaimed meanwhile is no damage. Damage is reported in the text and, at the end, as an error that
// is a *segment.CorruptError.
func Dump(w io.Writer, path string, opts DumpOptions) error {
	if opts.FS == nil {
		opts.FS = DiskFS()
	}
	d := dumper{w: w, opts: opts, disk: &disk{fs: opts.FS}}
	base := filepath.Base(path)
	for _, suffix := range []string{markerSuffix, bodySuffix} {
		if seq, ok := parseSeq(base, suffix); ok {
			d.disk.cfg.Dir = filepath.Dir(path)
			return errors.Join(d.segment(seq), d.err)
		}
	}
	d.disk.cfg.Dir = path
	return errors.Join(d.dir(), d.err)
}

type dumper struct {
	w    io.Writer
	opts DumpOptions
	disk *disk
	seq  segment.Seq // being shown
	err  error       // of writing to w
}

func (d *dumper) printf(format string, args ...any) {
	if d.err == nil {
		_, d.err = fmt.Fprintf(d.w, format, args...)
	}
}

func (d *dumper) dir() error {
	seqs, spares, err := d.list()
	if err != nil {
		return err
	}
	d.printf("log %s: %d segments, %d spares\n", d.disk.cfg.Dir, len(seqs), spares)
	var errs []error
	for _, seq := range seqs {
		err := d.segment(seq)
		if err != nil {
			now, _, listErr := d.list()
			if _, there := slices.BinarySearch(now, seq); listErr == nil && !there {
				d.printf("  verdict: none, it was reclaimed meanwhile\n")
				continue
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// list returns the segments of which there is a file, in order, and the number of spares.
func (d *dumper) list() (seqs []segment.Seq, spares int, err error) {
	files, err := d.opts.FS.List(d.disk.cfg.Dir)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range files {
		seq, ok := parseSeq(f.Name, bodySuffix)
		if !ok {
			seq, ok = parseSeq(f.Name, markerSuffix)
		}
		if ok {
			seqs = append(seqs, seq)
		}
		if strings.HasPrefix(f.Name, sparePrefix) {
			spares++
		}
	}
	slices.Sort(seqs)
	return slices.Compact(seqs), spares, nil
}

// segment shows one segment and ends with its verdict.
func (d *dumper) segment(seq segment.Seq) error {
	d.seq = seq
	marker, markerErr := d.marker(seq)
	sealed := !errors.Is(markerErr, fs.ErrNotExist)
	if sealed && markerErr == nil && marker.Flags&segment.Takeover != 0 {
		d.printf("segment %s\n  verdict: none, its seq went to the takeover of epoch %d\n", seq.ID(), marker.Epoch)
		return nil
	}
	n := int64(segment.BodyBytesMax)
	if sealed && markerErr == nil {
		n = int64(marker.Length)
	}
	body, err := d.disk.read(bodyName(d.disk.cfg.Dir, seq), n, ReadOnly)
	if err != nil {
		d.printf("segment %s\n  body: %v\n", seq.ID(), err)
		return fmt.Errorf("segment %s: %w", seq.ID(), err)
	}
	d.printf("segment %s\n", seq.ID())
	h, err := segment.ParseHeader(body)
	if err == nil && h.Seq != seq {
		err = fmt.Errorf("header of segment %s: %w", h.Seq.ID(), segment.ErrIdentity)
	}
	if err != nil {
		return d.corrupt(&segment.CorruptError{Seq: seq, Cause: err})
	}
	d.printf("  header: pipeline %d epoch %d first-group %d created %s salt %016x previous %.8x\n",
		h.Pipeline, h.Epoch, h.FirstGroup, time.Unix(0, h.CreatedNanos).UTC().Format(time.RFC3339Nano),
		h.Salt, h.Previous)
	if sealed && markerErr != nil {
		return d.corrupt(&segment.CorruptError{Seq: seq, Cause: markerErr})
	}
	if sealed {
		return d.sealed(h, marker, body)
	}
	end, err := segment.WalkGroups(h, body, d.group)
	if err != nil {
		return d.corrupt(err)
	}
	if allZero(body[end:]) {
		d.printf("  verdict: not sealed, ends at byte %d\n", end)
	} else {
		d.printf("  verdict: not sealed, ends at byte %d; what follows is a torn group or an earlier use of the file\n", end)
	}
	return nil
}

func (d *dumper) marker(seq segment.Seq) (segment.Marker, error) {
	b, err := d.disk.read(markerName(d.disk.cfg.Dir, seq), segment.MarkerBytes+1, ReadOnly)
	if err != nil {
		return segment.Marker{}, err
	}
	return segment.ParseMarker(b, seq)
}

func (d *dumper) sealed(h segment.Header, m segment.Marker, body []byte) error {
	end, err := segment.WalkSealed(h, m, body, d.group)
	d.printf("  marker: epoch %d groups %d length %d flags %d digest %.8x\n",
		m.Epoch, m.Groups, m.Length, m.Flags, m.Digest)
	if err != nil {
		return d.corrupt(err)
	}
	if sha256.Sum256(body) != m.Digest {
		return d.corrupt(&segment.CorruptError{Seq: h.Seq, Cause: segment.ErrDigest})
	}
	how := "with footer"
	if m.Flags&segment.SealedByRecovery != 0 {
		how = "cut by recovery"
	}
	d.printf("  verdict: sealed, %s, groups end at byte %d, digest verified\n", how, end)
	return nil
}

func (d *dumper) corrupt(err error) error {
	d.printf("  verdict: CORRUPT: %v\n", err)
	return err
}

func (d *dumper) group(g segment.Group) error {
	rows := uint64(0)
	for i := range g.Slices {
		rows += uint64(g.Slices[i].Rows)
	}
	committed := "unknown"
	if !g.CommittedAt.IsZero() {
		committed = g.CommittedAt.Format(time.RFC3339Nano)
	}
	d.printf("  group %d: bytes %d..%d slices %d rows %d synced %d position %q committed %s state %d bytes\n",
		g.Number, g.Start, g.End, len(g.Slices), rows, g.Synced, g.Position, committed, len(g.State))
	if !d.opts.Slices {
		return nil
	}
	for i := range g.Slices {
		s := &g.Slices[i]
		d.printf("    slice %d:%d: length %d table %d version %d rows %d +%d ~%d -%d tokens %d..%d%s%s\n",
			uint64(d.seq), s.Start, s.Length, s.Table, s.SchemaVersion, s.Rows,
			s.Counts.Inserts, s.Counts.Updates, s.Counts.Deletes,
			s.Counts.MinToken, s.Counts.MaxToken, flag(s.Truncate, " truncate"), flag(s.Backfill, " backfill"))
	}
	return nil
}

func flag(on bool, name string) string {
	if on {
		return name
	}
	return ""
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
