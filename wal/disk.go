package wal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// disk executes the protocol's effects on a directory. Safe for concurrent use as
// far as the protocol asks for it: one Open or Write, beside one of the rest.
type disk struct {
	fs       FS
	cfg      Config
	clock    env.Clock
	ids      env.IDs
	fail     env.Failpoints
	writerID [16]byte
	epoch    segment.Epoch

	spares spares
	mu     struct {
		sync.Mutex
		handles map[segment.Seq]File
		sizes   map[segment.Seq]int64 // of the segments' files
		heads   map[segment.Seq]protocol.LiveSegment
		// checkpoint is the one in force.
		checkpoint segment.Checkpoint
	}
}

func newDisk(cfg Config, deps Deps, epoch segment.Epoch) *disk {
	d := &disk{
		fs: deps.FS, cfg: cfg, clock: deps.Clock, ids: deps.IDs, fail: deps.Failpoints,
		writerID: deps.IDs.UUID(), epoch: epoch,
	}
	d.spares.init(d)
	d.mu.handles = map[segment.Seq]File{}
	d.mu.sizes = map[segment.Seq]int64{}
	d.mu.heads = map[segment.Seq]protocol.LiveSegment{}
	return d
}

// open makes a segment of a spare file, or of a new one when there is none.
func (d *disk) open(e protocol.Open) protocol.Opened {
	h := segment.Header{
		Epoch: d.epoch, Pipeline: d.cfg.Pipeline, Seq: e.Seq, Writer: d.writerID,
		FirstGroup: e.FirstGroup, CreatedNanos: d.clock.Now().UnixNano(),
		Previous: e.Previous, Salt: d.ids.Uint64(),
	}
	f, size, err := d.openBody(h, e.Bytes)
	if err != nil {
		if isNoSpace(err) && !errors.Is(err, ErrFull) {
			err = fmt.Errorf("%w: %w", ErrFull, err)
		}
		return protocol.Opened{Err: fmt.Errorf("open segment %s: %w", e.Seq.ID(), err)}
	}
	d.setHandle(e.Seq, f)
	d.spares.free(d.forget(e.Seq)) // the file that this one replaced, if any
	d.setSize(e.Seq, size)
	d.setHead(h)
	return protocol.Opened{Header: h}
}

func (d *disk) openBody(h segment.Header, bytes int64) (File, int64, error) {
	name, f, size, err := d.spares.take(bytes)
	if err != nil {
		return nil, 0, err
	}
	header := h.Encode()
	err = func() error {
		if _, err := f.WriteAt(header[:], 0); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		if err := d.fs.Rename(name, bodyName(d.cfg.Dir, h.Seq)); err != nil {
			return err
		}
		return d.fs.SyncDir(d.cfg.Dir)
	}()
	if err != nil {
		// Under the body's name it may stay: the next Open of this seq replaces it.
		d.spares.free(size)
		return nil, 0, errors.Join(err, f.Close(), d.remove(name))
	}
	return f, size, nil
}

func (d *disk) write(e protocol.Write) protocol.Written {
	err := func() error {
		f := d.handle(e.Seq)
		if f == nil {
			return errors.New("segment has no handle")
		}
		if err := d.fail.Hit(env.BeforeBody); err != nil {
			return err
		}
		if _, err := f.WriteAt(e.Data, int64(e.Start)); err != nil {
			return err
		}
		if err := d.fail.Hit(env.AfterBody); err != nil {
			return err
		}
		err := f.Sync()
		if err != nil && mutant.On(mutant.RetrySync) {
			err = f.Sync()
		}
		if err != nil {
			return err
		}
		return d.fail.Hit(env.AfterMarker)
	}()
	if err != nil {
		err = fmt.Errorf("write segment %s at byte %d: %w", e.Seq.ID(), e.Start, err)
	}
	return protocol.Written{Err: err}
}

func (d *disk) seal(e protocol.Seal) protocol.Sealed {
	err := d.endBody(e)
	if err == nil {
		err = d.putMarker(e.Marker)
	}
	if err == nil {
		err = d.fail.Hit(env.AfterSealMarker)
	}
	return protocol.Sealed{Seq: e.Seq, Err: err}
}

// endBody writes the footer, or cuts the body to what the marker will cover.
func (d *disk) endBody(e protocol.Seal) error {
	if err := d.fail.Hit(env.BeforeSeal); err != nil {
		return err
	}
	f := d.takeHandle(e.Seq)
	if f == nil {
		var err error
		if f, err = d.fs.Open(bodyName(d.cfg.Dir, e.Seq), ReadWrite); err != nil {
			return err
		}
	}
	var err error
	if len(e.Footer) > 0 {
		_, err = f.WriteAt(e.Footer, int64(e.Start))
	} else if err = d.dropMarker(e.Seq); err != nil {
		err = fmt.Errorf("remove marker of a failed seal: %w", err)
	} else if err = f.Truncate(int64(e.Marker.Length)); err == nil {
		d.spares.free(d.setSize(e.Seq, int64(e.Marker.Length)) - int64(e.Marker.Length))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// dropMarker removes, durably, the marker that a failed seal may have left: it covers a
// footer, and must never be found beside a body that has been cut.
func (d *disk) dropMarker(seq segment.Seq) error {
	err := d.fs.Remove(markerName(d.cfg.Dir, seq))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Also when it is gone: an earlier try may have failed at this.
	return d.fs.SyncDir(d.cfg.Dir)
}

func (d *disk) putMarker(m segment.Marker) error {
	b := m.Encode()
	return ReplaceFile(d.fs, markerName(d.cfg.Dir, m.Seq), b[:])
}

func (d *disk) inspect(e protocol.Inspect) protocol.Inspected {
	if f := d.takeHandle(e.Seq); f != nil {
		_ = f.Close() // it failed before; what counts is read anew
	}
	out := protocol.Inspected{Seq: e.Seq}
	body, err := d.readSure(bodyName(d.cfg.Dir, e.Seq), int64(e.End))
	if err != nil {
		out.Err = err
		return out
	}
	h, err := segment.ParseHeader(body)
	if err == nil && h.Seq != e.Seq {
		err = segment.ErrIdentity
	}
	if err != nil {
		out.Err = &segment.CorruptError{Seq: e.Seq, Cause: err}
		return out
	}
	end, err := segment.WalkGroups(h, body, func(segment.Group) error { return nil })
	if err == nil && end != e.End {
		err = &segment.CorruptError{Seq: e.Seq, Offset: end, Cause: segment.ErrPromise}
	}
	out.Digest, out.Err = sha256.Sum256(body), err
	return out
}

func (d *disk) discard(e protocol.Discard) protocol.Discarded {
	if f := d.takeHandle(e.Seq); f != nil {
		_ = f.Close() // nothing in it counts
	}
	return protocol.Discarded{Seq: e.Seq, Err: d.recycle([]segment.Seq{e.Seq})}
}

func (d *disk) list() protocol.Listed {
	// The names that a dead process left may not be durable: a file could be reused
	// under a new name and found under its old one after a crash.
	err := d.fs.SyncDir(d.cfg.Dir)
	var files []FileInfo
	if err == nil {
		files, err = d.fs.List(d.cfg.Dir)
	}
	if err != nil {
		return protocol.Listed{Err: fmt.Errorf("list %s: %w", d.cfg.Dir, err)}
	}
	var out protocol.Listed
	for _, f := range files {
		if seq, ok := parseSeq(f.Name, bodySuffix); ok {
			out.Bodies = append(out.Bodies, seq)
			d.setSize(seq, f.Size)
			d.spares.free(-f.Size)
		} else if seq, ok := parseSeq(f.Name, markerSuffix); ok {
			out.Markers = append(out.Markers, seq)
		} else if n, ok := parseSpare(f.Name); ok {
			out.Err = errors.Join(out.Err, d.spares.found(n, f))
		} else if filepath.Ext(f.Name) == temporarySuffix {
			out.Err = errors.Join(out.Err, d.remove(filepath.Join(d.cfg.Dir, f.Name)))
		}
	}
	slices.Sort(out.Bodies)
	slices.Sort(out.Markers)
	return out
}

func (d *disk) readMarker(e protocol.ReadMarker) protocol.MarkerRead {
	// A byte more than a marker has, so that a longer file is seen.
	b, err := d.read(markerName(d.cfg.Dir, e.Seq), segment.MarkerBytes+1, ReadOnly)
	return protocol.MarkerRead{Seq: e.Seq, Data: b, Err: err}
}

// readBody reads a body. One that is read whole is not sealed: its writer died, and
// what it wrote may sit in the system's cache only. It is made durable first, or a
// group could be published, acknowledged and then lost; and read past the cache, which
// after a failed sync holds what the disk does not.
func (d *disk) readBody(e protocol.ReadBody) protocol.BodyRead {
	name := bodyName(d.cfg.Dir, e.Seq)
	var b []byte
	var err error
	if e.Bytes == 0 {
		if err := d.syncFile(name); err != nil {
			return protocol.BodyRead{Seq: e.Seq, Err: fmt.Errorf("sync %s: %w", name, err)}
		}
		b, err = d.readSure(name, segment.BodyBytesMax)
	} else {
		b, err = d.read(name, int64(e.Bytes), ReadOnly)
	}
	if h, parse := segment.ParseHeader(b); err == nil && parse == nil {
		d.setHead(h)
	}
	return protocol.BodyRead{Seq: e.Seq, Data: b, Err: err}
}

func (d *disk) syncFile(name string) error {
	f, err := d.fs.Open(name, ReadWrite)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// readSure reads past the cache and twice: where a log ends is decided by bytes that no
// digest covers yet. A bit that flips on the way would make the last group look torn, and
// it would be cut off.
func (d *disk) readSure(name string, n int64) ([]byte, error) {
	b, err := d.read(name, n, ReadFresh)
	if err != nil || mutant.On(mutant.NoDigest) {
		return b, err
	}
	again, err := d.read(name, n, ReadFresh)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(b, again) {
		return nil, fmt.Errorf("read %s: two reads differ", name)
	}
	return b, nil
}

// read returns at most the first n bytes of a file.
func (d *disk) read(name string, n int64, mode OpenMode) (b []byte, err error) {
	f, err := d.fs.Open(name, mode)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b = make([]byte, min(n, size))
	got, err := f.ReadAt(b, 0)
	if err != nil && (!errors.Is(err, io.EOF) || got < len(b)) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

func (d *disk) deleteMarkers(e protocol.DeleteMarkers) protocol.Deleted {
	for _, seq := range e.Seqs {
		if err := d.fail.Hit(env.BeforeReclaim); err != nil {
			return protocol.Deleted{Err: err}
		}
		if err := d.remove(markerName(d.cfg.Dir, seq)); err != nil {
			return protocol.Deleted{Err: fmt.Errorf("delete marker of segment %s: %w", seq.ID(), err)}
		}
	}
	return protocol.Deleted{Err: d.fs.SyncDir(d.cfg.Dir)}
}

func (d *disk) recycleBodies(e protocol.RecycleBodies) protocol.Deleted {
	if err := d.fail.Hit(env.BetweenMarkerAndBodyDelete); err != nil {
		return protocol.Deleted{Err: err}
	}
	return protocol.Deleted{Err: d.recycle(e.Seqs)}
}

// recycle renames bodies to spares and, once the names are durable, keeps the files
// that are worth it. Readers may still have them open.
func (d *disk) recycle(seqs []segment.Seq) error {
	var freed []spareFile
	for _, seq := range seqs {
		s := d.spares.name()
		err := d.fs.Rename(bodyName(d.cfg.Dir, seq), s.name)
		if errors.Is(err, fs.ErrNotExist) {
			d.spares.free(d.forget(seq))
			continue
		}
		if err != nil {
			return fmt.Errorf("recycle segment %s: %w", seq.ID(), err)
		}
		s.size = d.forget(seq)
		freed = append(freed, s)
	}
	if err := d.fs.SyncDir(d.cfg.Dir); err != nil {
		return err
	}
	for _, s := range freed {
		d.spares.put(s)
	}
	return nil
}

func (d *disk) remove(name string) error {
	if err := d.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *disk) close() error {
	d.mu.Lock()
	handles := d.mu.handles
	d.mu.handles = map[segment.Seq]File{}
	d.mu.Unlock()
	err := d.spares.abandon()
	for _, seq := range slices.Sorted(maps.Keys(handles)) {
		err = errors.Join(err, handles[seq].Close())
	}
	return err
}

func (d *disk) handle(seq segment.Seq) File {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.handles[seq]
}

func (d *disk) takeHandle(seq segment.Seq) File {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.mu.handles[seq]
	delete(d.mu.handles, seq)
	return f
}

func (d *disk) setHandle(seq segment.Seq, f File) {
	d.mu.Lock()
	old := d.mu.handles[seq]
	d.mu.handles[seq] = f
	d.mu.Unlock()
	if old != nil {
		_ = old.Close() // replaced before anything was committed in it
	}
}

// setSize returns what the size was.
func (d *disk) setSize(seq segment.Seq, n int64) (was int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was = d.mu.sizes[seq]
	d.mu.sizes[seq] = n
	return was
}

func (d *disk) hasSize(seq segment.Seq) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.mu.sizes[seq]
	return ok
}

// seqsBelow are the segments with a file, ascending.
func (d *disk) seqsBelow(low segment.Seq) []segment.Seq {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []segment.Seq
	for seq := range d.mu.sizes {
		if seq < low {
			out = append(out, seq)
		}
	}
	slices.Sort(out)
	return out
}

// forget drops the size of a segment that is gone, and returns it.
func (d *disk) forget(seq segment.Seq) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.mu.sizes[seq]
	delete(d.mu.sizes, seq)
	delete(d.mu.heads, seq)
	return n
}

// live is the number and length of the segments' files.
func (d *disk) live() (count int, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.mu.sizes {
		bytes += n
	}
	return len(d.mu.sizes), bytes
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, ErrFull)
}
