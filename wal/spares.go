package wal

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"sync"
)

// spares is the files that wait to become segments. Writing over a file that was
// written before costs one flush per sync; into a new one, two. Safe for concurrent
// use, except for fill.
type spares struct {
	d  *disk
	mu struct {
		sync.Mutex
		ready []spareFile
		next  int
		// used is the length of all files, segments' too, and of those being made.
		used int64
	}
	filling filling
}

type spareFile struct {
	name string
	size int64
}

// filling is the spare that is being written.
type filling struct {
	file spareFile
	f    File
	// blocked: there was no space. Lifted when some may have returned.
	blocked bool
}

// fillBytes is how much of a spare one step writes: small, so that the disk does not
// make commits wait.
const fillBytes = 1 << 20

// zeros are what spares are filled with. Nobody writes to them.
var zeros [fillBytes]byte

func (s *spares) init(d *disk) { s.d = d }

// found takes over a file that an earlier process left, unless it is of no use.
func (s *spares) found(n int, f FileInfo) error {
	file := spareFile{name: filepath.Join(s.d.cfg.Dir, f.Name), size: f.Size}
	s.mu.Lock()
	s.mu.next = max(s.mu.next, n+1)
	s.mu.Unlock()
	if !s.worthKeeping(file) {
		return s.d.remove(file.name)
	}
	s.mu.Lock()
	s.mu.ready = append(s.mu.ready, file)
	s.mu.used += file.size
	s.mu.Unlock()
	return nil
}

// name is a fresh spare's.
func (s *spares) name() spareFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.mu.next
	s.mu.next++
	return spareFile{name: filepath.Join(s.d.cfg.Dir, sparePrefix+strconv.Itoa(n))}
}

// take opens a file for a segment of n bytes. The caller renames it.
func (s *spares) take(n int64) (name string, f File, size int64, err error) {
	if n == s.d.cfg.SegmentBytes {
		for {
			file, ok := s.pop()
			if !ok {
				break
			}
			f, err := s.d.fs.Open(file.name, ReadWrite)
			if err == nil {
				return file.name, f, file.size, nil
			}
		}
	}
	for {
		if err = s.reserve(n); err == nil {
			break
		}
		// A group with its own length needs space that the spares hold.
		file, ok := s.pop()
		if !ok {
			return "", nil, 0, err
		}
		s.drop(file)
	}
	file := s.name()
	if f, err = s.d.fs.Open(file.name, Create); err != nil {
		s.free(n)
		return "", nil, 0, err
	}
	if err := f.Allocate(n); err != nil {
		s.free(n)
		return "", nil, 0, errors.Join(err, f.Close(), s.d.remove(file.name))
	}
	return file.name, f, n, nil
}

// laterSegments bounds what keepFree keeps, in segments.
const laterSegments = 64

// keepFree refuses n bytes that would leave less space on the disk than moving the log
// to the lake may take: a disk that the log has filled could never be emptied again.
// The lake's files of a log are rarely longer than the log.
func (s *spares) keepFree(n, used, free int64) error {
	if keep := min(used+n, laterSegments*s.d.cfg.SegmentBytes); free-n < keep {
		return fmt.Errorf("%w: %d bytes needed of %d free on the disk, where %d are kept for the lake",
			ErrFull, n, free, keep)
	}
	return nil
}

// freeBytes is the space on the disk; without end when that cannot be asked.
func (s *spares) freeBytes() (int64, error) {
	space, ok := s.d.fs.(SpaceFS)
	if !ok {
		return math.MaxInt64, nil
	}
	free, err := space.FreeBytes(s.d.cfg.Dir)
	if err != nil {
		return 0, fmt.Errorf("look for free space: %w", err)
	}
	return free, nil
}

// reserve takes n bytes of the quota and of the disk.
func (s *spares) reserve(n int64) error {
	free, err := s.freeBytes()
	if err != nil {
		return err
	}
	quota := s.d.cfg.QuotaBytes
	s.mu.Lock()
	defer s.mu.Unlock()
	if quota > 0 && s.mu.used+n > quota {
		return fmt.Errorf("%w: %d bytes used and %d needed of a quota of %d",
			ErrQuota, s.mu.used, n, quota)
	}
	if err := s.keepFree(n, s.mu.used, free); err != nil {
		return err
	}
	s.mu.used += n
	return nil
}

// free gives back n bytes of the quota; negative when they are found in use.
func (s *spares) free(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.used -= n
}

func (s *spares) pop() (spareFile, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.ready) == 0 {
		return spareFile{}, false
	}
	f := s.mu.ready[0]
	s.mu.ready = s.mu.ready[1:]
	return f, true
}

// put takes a reclaimed file.
func (s *spares) put(f spareFile) {
	s.filling.blocked = false
	if s.worthKeeping(f) {
		s.mu.Lock()
		s.mu.ready = append(s.mu.ready, f)
		s.mu.Unlock()
		return
	}
	s.drop(f)
}

// drop deletes a file, emptied before, since a reader that has it open would keep its
// space.
func (s *spares) drop(f spareFile) {
	if h, err := s.d.fs.Open(f.name, ReadWrite); err == nil {
		_ = h.Truncate(0) // only space is lost when it fails
		_ = h.Close()
	}
	_ = s.d.remove(f.name) // found and removed at the next start
	s.free(f.size)
}

func (s *spares) worthKeeping(f spareFile) bool {
	return f.size == s.d.cfg.SegmentBytes && s.count() < s.d.cfg.Spares
}

func (s *spares) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.ready)
}

// fill writes a part of a spare and says whether there is more to do.
func (s *spares) fill() (more bool, err error) {
	fl := &s.filling
	if fl.blocked || fl.f == nil && s.count() >= s.d.cfg.Spares {
		return false, nil
	}
	if fl.f == nil {
		if err := s.reserve(s.d.cfg.SegmentBytes); err != nil {
			fl.blocked = true
			return false, nil
		}
		fl.file = s.name()
		if fl.f, err = s.d.fs.Open(fl.file.name, Create); err != nil {
			fl.f, fl.blocked = nil, true
			s.free(s.d.cfg.SegmentBytes)
			return false, err
		}
	}
	n := min(fillBytes, s.d.cfg.SegmentBytes-fl.file.size)
	_, err = fl.f.WriteAt(zeros[:n], fl.file.size)
	if err == nil {
		err = fl.f.Sync()
	}
	if err != nil {
		fl.blocked = true
		return false, errors.Join(err, s.abandon())
	}
	fl.file.size += n
	if fl.file.size < s.d.cfg.SegmentBytes {
		return true, nil
	}
	err = fl.f.Close()
	fl.f = nil
	s.mu.Lock()
	s.mu.ready = append(s.mu.ready, fl.file)
	s.mu.Unlock()
	return s.count() < s.d.cfg.Spares, err
}

// abandon gives up the spare that is being written.
func (s *spares) abandon() error {
	if s.filling.f == nil {
		return nil
	}
	err := errors.Join(s.filling.f.Close(), s.d.remove(s.filling.file.name))
	s.filling.f = nil
	s.free(s.d.cfg.SegmentBytes)
	return err
}
