package copyin

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

const (
	// readBytes is how much is asked of the source at a time.
	readBytes = 64 << 10
	// lookahead is more than what is looked at behind a row.
	lookahead = 64
	// emptyReadsMax is how many reads in a row may bring nothing, not even an error.
	emptyReadsMax = 100
)

// input holds the unread data from the start of the current row on.
type input struct {
	source io.Reader
	max    int  // bytes of a row
	utf8   bool // data is text: verify it
	stops  bool // nothing is read behind the end marker

	buf []byte
	// start ≤ valid ≤ end ≤ len(buf): the row begins, verified so far, read so far.
	start, valid, end int
	eof               bool // the source has ended
}

// window is what may be looked at of the current row and behind it. Valid until more.
func (in *input) window() []byte { return in.buf[in.start:in.valid] }

// advance ends the current row after n bytes of the window.
func (in *input) advance(n int) { in.start += n }

// more makes the window longer; false at the end of the data.
func (in *input) more() (bool, error) {
	before := in.valid - in.start
	for {
		if in.utf8 {
			in.verify()
		} else {
			in.valid = in.end
		}
		switch unverified := in.end - in.valid; {
		case in.valid-in.start > before:
			return true, nil
		case unverified > 0 && (in.eof || unverified >= utf8.UTFMax):
			return false, in.badEncoding()
		case in.eof:
			return false, nil
		}
		if err := in.read(); err != nil {
			return false, err
		}
	}
}

// need makes the window at least n bytes long; false if the data ends before.
func (in *input) need(n int) (bool, error) {
	for len(in.window()) < n {
		if ok, err := in.more(); !ok {
			return false, err
		}
	}
	return true, nil
}

// read takes what the source has, in a buffer that grows with what has arrived.
func (in *input) read() error {
	if in.start > 0 && len(in.buf)-in.end < readBytes {
		copy(in.buf, in.buf[in.start:in.end])
		in.valid, in.end, in.start = in.valid-in.start, in.end-in.start, 0
	}
	if len(in.buf)-in.end < readBytes {
		larger := make([]byte, min(2*in.end, in.max)+readBytes+lookahead)
		copy(larger, in.buf[:in.end])
		in.buf = larger
	}
	for range emptyReadsMax {
		n, err := in.source.Read(in.buf[in.end:min(len(in.buf), in.end+readBytes)])
		in.end += n
		switch {
		case err == io.EOF:
			in.eof = true
			return nil
		case err != nil:
			return err
		case n > 0:
			return nil
		}
	}
	return io.ErrNoProgress
}

// verify moves valid forward over proper UTF-8 without NUL.
func (in *input) verify() {
	b := in.buf[in.valid:in.end]
	clean := b
	if i := bytes.IndexByte(b, 0); i >= 0 {
		clean = b[:i]
	}
	if utf8.Valid(clean) {
		in.valid += len(clean)
		return
	}
	for len(b) > 0 && b[0] != 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n <= 1 {
			return
		}
		b, in.valid = b[n:], in.valid+n
	}
}

func (in *input) badEncoding() error { return badEncoding(in.buf[in.valid:in.end]) }

// badEncoding is the error about text that begins with an invalid sequence.
func badEncoding(b []byte) error { return pgerr.BadUTF8At(string(b[:min(len(b), utf8.UTFMax)])) }

// checkText is nil for text that may be a value.
func checkText(b []byte) error {
	in := input{buf: b, end: len(b)}
	if in.verify(); in.valid < in.end {
		return in.badEncoding()
	}
	return nil
}

func (in *input) tooLong() error {
	return pgerr.New(codes.ProgramLimitExceeded, "out of memory").
		WithDetail("A row of COPY data is longer than %d bytes.", in.max)
}

// peek is the byte at an index of the window, which grows to hold it; -1 behind the
// end of the data.
func (in *input) peek(i int) (int, error) {
	if ok, err := in.need(i + 1); !ok {
		return -1, err
	}
	return int(in.buf[in.start+i]), nil
}

// drain reads to the end of the data without looking at it, or says that this is the end. Of the
// window the first keep bytes stay.
func (in *input) drain(keep int) error {
	in.eof = in.eof || in.stops
	for in.valid, in.end = in.start+keep, in.start+keep; !in.eof; in.end = in.start + keep {
		if err := in.read(); err != nil {
			return err
		}
		in.valid = in.start + keep // read may have moved the row
	}
	return nil
}
