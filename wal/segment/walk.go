package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/skipprd/skipprd/wal/mutant"
)

// WalkGroups calls fn for every whole group of an unsealed body, in order, and
// returns where the last one ends. body begins with the header of h and may go on
// after the groups with anything: zeros, a torn group, an earlier use of the file.
//
// A damaged group is a torn tail, and the walk ends before it without an error,
// unless a later group promises that those bytes were durable: then bytes were
// lost, and the error is a *CorruptError.
func WalkGroups(h Header, body []byte, fn func(Group) error) (end uint32, err error) {
	w := walker{header: h, seed: h.Seed(), body: body}
	end, damage, err := w.walk(fn)
	if err != nil || damage == nil {
		return end, err
	}
	if promised, at := w.promiseAbove(end); promised {
		return end, &CorruptError{Seq: h.Seq, Offset: end, Cause: fmt.Errorf(
			"%w, says the group end at byte %d: %w", ErrPromise, at, damage)}
	}
	return end, nil
}

// WalkSealed calls fn for every group of a sealed body of exactly m.Length bytes.
// Any damage is a *CorruptError. It returns where the groups end. It does not
// compute the digest.
func WalkSealed(h Header, m Marker, body []byte, fn func(Group) error) (end uint32, err error) {
	if int64(len(body)) != int64(m.Length) {
		return 0, &CorruptError{Seq: h.Seq, Offset: uint32(len(body)), Cause: ErrLength}
	}
	w := walker{header: h, seed: h.Seed(), body: body}
	end, damage, err := w.walk(fn)
	if err != nil {
		return end, err
	}
	if damage != nil {
		if m.Flags&SealedByRecovery != 0 {
			return end, &CorruptError{Seq: h.Seq, Offset: end, Cause: damage}
		}
		f, err := ParseFooter(body[end:], w.seed, end)
		if err != nil {
			return end, &CorruptError{Seq: h.Seq, Offset: end, Cause: err}
		}
		if int(f.Groups) != w.groups || int(end)+footerBytes(len(f.Slices)) != len(body) {
			return end, &CorruptError{Seq: h.Seq, Offset: end, Cause: ErrGroup}
		}
	}
	if w.groups != int(m.Groups) {
		return end, &CorruptError{Seq: h.Seq, Offset: end, Cause: fmt.Errorf(
			"%d groups, marker has %d: %w", w.groups, m.Groups, ErrGroup)}
	}
	return end, nil
}

type walker struct {
	header Header
	seed   uint32
	body   []byte
	groups int
}

// walk hands out whole groups. damage says why it ended before the body did; err is
// fn's.
func (w *walker) walk(fn func(Group) error) (end uint32, damage, err error) {
	if len(w.body) > BodyBytesMax {
		return 0, nil, fmt.Errorf("body of %d bytes: %w", len(w.body), ErrLength)
	}
	end = HeaderBytes
	for int(end) < len(w.body) {
		g, damage := w.group(end)
		if damage != nil {
			return end, damage, nil
		}
		if err := fn(g); err != nil {
			return end, nil, err
		}
		w.groups++
		end = g.End
	}
	return end, nil, nil
}

// group reads the group at start.
func (w *walker) group(start uint32) (Group, error) {
	var (
		slices  []Slice
		records uint32
		crc     = w.seed
	)
	want := w.header.FirstGroup + uint64(w.groups)
	for at := start; ; {
		r, err := parseRecord(w.body[at:], w.seed, at)
		if err != nil && mutant.On(mutant.NoDigest) {
			r, err = frameOf(w.body[at:])
		}
		if err != nil {
			return Group{}, err
		}
		if r.group != want {
			return Group{}, fmt.Errorf("group %d, want %d: %w", r.group, want, ErrGroup)
		}
		switch r.kind {
		case recordSchema:
		case recordSlice:
			s, err := sliceOf(r, at)
			if err != nil {
				return Group{}, err
			}
			slices = append(slices, s)
		default:
			e, err := groupEndOf(r)
			if err != nil {
				return Group{}, err
			}
			if e.records != records || e.crc != crc || e.Start != start || e.Synced > start {
				return Group{}, fmt.Errorf("group end: %w", ErrGroup)
			}
			e.Slices, e.End = slices, at+uint32(r.length)
			return e.Group, nil
		}
		var sum [4]byte
		binary.LittleEndian.PutUint32(sum[:], r.crc)
		crc = crc32.Update(crc, castagnoli, sum[:])
		records++
		at += uint32(r.length)
		if int(at) >= len(w.body) {
			return Group{}, fmt.Errorf("end of body: %w", ErrGroup)
		}
	}
}

// promiseAbove looks behind the damage at byte at for a whole group end that
// promises more than at to have been durable.
func (w *walker) promiseAbove(at uint32) (promised bool, found uint32) {
	le := binary.LittleEndian
	const magicAt = recordHeaderBytes + groupEndAtMagic
	for i := int(at); i+recordHeaderBytes+groupEndBytes <= len(w.body); i += recordAlign {
		b := w.body[i:]
		if b[recordAtKind] != recordGroupEnd || le.Uint32(b[magicAt:]) != groupEndMagic {
			continue
		}
		r, err := parseRecord(b, w.seed, uint32(i))
		if err != nil {
			continue
		}
		if e, err := groupEndOf(r); err == nil && e.Synced > at {
			return true, uint32(i)
		}
	}
	return false, 0
}
