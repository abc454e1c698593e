package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// Reader reads published slices of one log, also from another process, while the
// log is written, sealed, reclaimed and its files reused under it. Safe for
// concurrent use.
//
// A slice's record carries a checksum seeded by its segment's header, which differs
// for every use of a file. So a record that validates against the header that the
// segment's name led to is the slice, whatever became of the name since; and one
// that does not is looked up anew before anything is said about it.
type Reader struct {
	fs  FS
	dir string
	mu  struct {
		sync.Mutex
		open map[segment.Seq]*openSegment
		tick uint64
	}
	decoders decoders
}

// openSegment is a segment's file. It is closed when the cache and the last read
// have let go of it.
type openSegment struct {
	seq    segment.Seq
	f      File
	header []byte
	seed   uint32
	refs   int    // guarded by the reader's mutex
	used   uint64 // guarded by the reader's mutex

	schemas struct {
		sync.Mutex
		messages map[uint32]string // by where their records start
	}
}

// decoders are idle ones by the message of their schema: most segments have the same
// schemas.
type decoders struct {
	sync.Mutex
	idle map[string][]*segment.Decoder
}

const (
	// openSegmentsMax bounds the files a reader keeps open. A pin rarely reaches
	// further back, and each may keep a deleted file's space.
	openSegmentsMax = 16
	// idleDecodersMax per schema: about as many as there are cores to use them.
	idleDecodersMax = 8
	// idleSchemasMax is how many schemas have idle decoders.
	idleSchemasMax = 256
	// lookupsMax is how often a slice is looked up anew while its file changes.
	lookupsMax = 3
)

// OpenReader makes a reader of the log in dir, which need not exist yet.
func OpenReader(dir string) *Reader { return OpenReaderFS(DiskFS(), dir) }

// OpenReaderFS is OpenReader on another file system.
func OpenReaderFS(fsys FS, dir string) *Reader {
	r := &Reader{fs: fsys, dir: dir}
	r.mu.open = map[segment.Seq]*openSegment{}
	r.decoders.idle = map[string][]*segment.Decoder{}
	return r
}

// ReadSlice returns the rows of a published slice, system columns first; nil when the
// slice has no batch (a bare truncate). The caller releases it. It wraps ErrSliceLost
// when the slice was reclaimed, and is a *segment.CorruptError when the bytes are
// damaged; it never returns other rows than the slice's.
func (r *Reader) ReadSlice(ctx context.Context, s Slice) (arrow.RecordBatch, error) {
	rec, err := r.readSlice(ctx, s)
	if mutant.On(mutant.LostSliceIsEmpty) && errors.Is(err, ErrSliceLost) {
		return nil, nil
	}
	return rec, err
}

func (r *Reader) readSlice(ctx context.Context, s Slice) (arrow.RecordBatch, error) {
	var err error
	for range lookupsMax {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		var rec arrow.RecordBatch
		var again bool
		if rec, again, err = r.readOnce(s); !again {
			if err != nil {
				return nil, fmt.Errorf("read slice %s: %w", s.Ref, err)
			}
			return rec, nil
		}
	}
	return nil, fmt.Errorf("read slice %s: %w", s.Ref, err)
}

// readOnce reads s through one open file. again: the file was another one by then.
func (r *Reader) readOnce(s Slice) (rec arrow.RecordBatch, again bool, err error) {
	o, fresh, err := r.acquire(s.Ref.Seq)
	if err != nil {
		return nil, errors.Is(err, segment.ErrMagic) || errors.Is(err, segment.ErrChecksum), err
	}
	defer r.release(o)
	rec, err = o.read(s, &r.decoders)
	if err == nil {
		return rec, false, nil
	}
	// While the name still leads to this very segment, nobody had begun to reuse the
	// file when it was read: the damage is real.
	same, lookup := r.unchanged(o)
	if lookup != nil {
		return nil, false, lookup
	}
	if same {
		return nil, false, &segment.CorruptError{Seq: s.Ref.Seq, Offset: s.Ref.Start, Cause: err}
	}
	r.drop(o)
	return nil, !fresh, fmt.Errorf("%w: %w", ErrSliceLost, err)
}

// acquire returns the open segment, from the cache if it is there.
func (r *Reader) acquire(seq segment.Seq) (o *openSegment, fresh bool, err error) {
	r.mu.Lock()
	if o := r.mu.open[seq]; o != nil {
		r.useLocked(o)
		r.mu.Unlock()
		return o, false, nil
	}
	r.mu.Unlock()
	if o, err = r.openSegment(seq); err != nil {
		return nil, true, err
	}
	r.mu.Lock()
	other := r.mu.open[seq]
	var evicted *openSegment
	if other == nil {
		o.refs = 1 // the cache's
		r.mu.open[seq] = o
		r.useLocked(o)
		evicted = r.evictLocked()
	} else {
		r.useLocked(other)
	}
	r.mu.Unlock()
	if other != nil {
		_ = o.f.Close() // opened for reading only
		return other, false, nil
	}
	if evicted != nil {
		r.release(evicted)
	}
	return o, true, nil
}

func (r *Reader) useLocked(o *openSegment) {
	r.mu.tick++
	o.refs++
	o.used = r.mu.tick
}

// evictLocked takes the longest unused file out of a cache that is too large. The
// caller releases it.
func (r *Reader) evictLocked() *openSegment {
	if len(r.mu.open) <= openSegmentsMax {
		return nil
	}
	var oldest *openSegment
	for _, o := range r.mu.open {
		if oldest == nil || o.used < oldest.used {
			oldest = o
		}
	}
	delete(r.mu.open, oldest.seq)
	return oldest
}

func (r *Reader) release(o *openSegment) {
	r.mu.Lock()
	o.refs--
	last := o.refs == 0
	r.mu.Unlock()
	if last {
		_ = o.f.Close() // opened for reading only
	}
}

// drop takes o out of the cache.
func (r *Reader) drop(o *openSegment) {
	r.mu.Lock()
	cached := r.mu.open[o.seq] == o
	if cached {
		delete(r.mu.open, o.seq)
	}
	r.mu.Unlock()
	if cached {
		r.release(o)
	}
}

func (r *Reader) openSegment(seq segment.Seq) (*openSegment, error) {
	f, b, err := r.openHeader(seq)
	if err != nil {
		return nil, err
	}
	h, err := segment.ParseHeader(b)
	if err == nil && h.Seq != seq {
		// Opened under its name, reused before the header was read.
		err = ErrSliceLost
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	o := &openSegment{seq: seq, f: f, header: b, seed: h.Seed()}
	o.schemas.messages = map[uint32]string{}
	return o, nil
}

func (r *Reader) openHeader(seq segment.Seq) (File, []byte, error) {
	f, err := r.fs.Open(bodyName(r.dir, seq), ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: %w", ErrSliceLost, err)
	}
	if err != nil {
		return nil, nil, err
	}
	b := make([]byte, segment.HeaderBytes)
	if err := readFull(f, b, 0); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, b, nil
}

// unchanged says whether the segment's name still leads to o's header. err is
// ErrSliceLost when it leads nowhere.
func (r *Reader) unchanged(o *openSegment) (bool, error) {
	f, b, err := r.openHeader(o.seq)
	if err != nil {
		if errors.Is(err, ErrSliceLost) {
			r.drop(o)
		}
		return false, err
	}
	_ = f.Close() // opened for reading only
	return bytes.Equal(b, o.header), nil
}

// Close closes the files. No read may be under way.
func (r *Reader) Close() error {
	r.mu.Lock()
	open := r.mu.open
	r.mu.open = map[segment.Seq]*openSegment{}
	r.mu.Unlock()
	var err error
	for _, seq := range slices.Sorted(maps.Keys(open)) {
		err = errors.Join(err, open[seq].f.Close())
	}
	return err
}

// read fetches the slice's record, and its schema's when that is not known yet.
func (o *openSegment) read(s Slice, pool *decoders) (arrow.RecordBatch, error) {
	if s.Length > segment.BodyBytesMax {
		return nil, segment.ErrLength
	}
	b := make([]byte, s.Length)
	if err := readFull(o.f, b, int64(s.Ref.Start)); err != nil {
		return nil, err
	}
	got, message, err := segment.ParseSlice(b, o.seed, s.Ref.Start)
	if err != nil {
		return nil, err
	}
	if got.Table != s.Table || got.SchemaVersion != s.SchemaVersion || got.Rows != s.Rows ||
		got.Truncate != s.Truncate || got.Backfill != s.Backfill {
		return nil, segment.ErrIdentity
	}
	if len(message) == 0 {
		return nil, nil
	}
	schema, err := o.schema(got.Schema)
	if err != nil {
		return nil, err
	}
	dec, err := pool.take(schema)
	if err != nil {
		return nil, err
	}
	rec, err := dec.Decode(message)
	if err != nil {
		return nil, err
	}
	pool.put(schema, dec)
	if rec.NumRows() != int64(s.Rows) {
		rec.Release()
		return nil, segment.ErrIdentity
	}
	return rec, nil
}

// schema returns the message of the schema record at start.
func (o *openSegment) schema(start uint32) (string, error) {
	o.schemas.Lock()
	message, known := o.schemas.messages[start]
	o.schemas.Unlock()
	if known {
		return message, nil
	}
	head := make([]byte, segment.RecordHeaderBytes)
	if err := readFull(o.f, head, int64(start)); err != nil {
		return "", err
	}
	n, err := segment.RecordBytes(head)
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	if err := readFull(o.f, b, int64(start)); err != nil {
		return "", err
	}
	parsed, err := segment.ParseSchema(b, o.seed, start)
	if err != nil {
		return "", err
	}
	message = string(parsed)
	o.schemas.Lock()
	defer o.schemas.Unlock()
	o.schemas.messages[start] = message
	return message, nil
}

// take returns an idle decoder, or makes one.
func (d *decoders) take(schema string) (*segment.Decoder, error) {
	d.Lock()
	idle := d.idle[schema]
	if n := len(idle); n > 0 {
		dec := idle[n-1]
		d.idle[schema] = idle[:n-1]
		d.Unlock()
		return dec, nil
	}
	d.Unlock()
	return segment.NewDecoder([]byte(schema))
}

func (d *decoders) put(schema string, dec *segment.Decoder) {
	d.Lock()
	defer d.Unlock()
	idle, known := d.idle[schema]
	if !known && len(d.idle) >= idleSchemasMax {
		clear(d.idle)
	}
	if len(idle) < idleDecodersMax {
		d.idle[schema] = append(idle, dec)
	}
}

// readFull fills b from byte start; a file that ends before is io.ErrUnexpectedEOF.
func readFull(f File, b []byte, start int64) error {
	n, err := f.ReadAt(b, start)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
