package copying

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/skipprd/skipprd/pgwire"
)

// Files are the files and programs of the server's machine, for COPY of roles that may use
// them. Errors are *pgerr.Error. Safe for concurrent use.
type Files interface {
	// Open opens a file for reading; size is how many bytes it has.
	Open(path string) (file io.ReadCloser, size int64, err error)
	// Create empties a file, or makes it. What was written is durable when Close has returned
	// without an error; before, the file has any part of it.
	Create(path string) (io.WriteCloser, error)
	// Run starts a command, which is ended with ctx. reads says that it is written to, else it
	// is read from.
	Run(ctx context.Context, command string, reads bool) (Program, error)
}

// Program is a command that runs. Used by one goroutine.
type Program interface {
	io.ReadWriter
	// Close waits for its end: the error says how it failed.
	Close() error
	// Kill ends it, and waits for that.
	Kill()
}

// End is where the data of a COPY comes from, or goes to: the client, a file or a program.
// Abandon must be called. Used by one goroutine.
type End struct {
	pgwire.Sink // the client's; of a COPY TO only the client's data goes there
	io.Reader   // the data of a COPY FROM
	// Kind is PIPE, FILE or PROGRAM, Size the bytes of the file that is read, else 0.
	Kind    string
	Size    int64
	file    io.Closer
	program Program
	to      io.Writer // of a COPY TO; nil: the client
}

// Client is the end of a COPY with the client: data is what it sends, nil for COPY TO.
func Client(sink pgwire.Sink, data io.Reader) *End {
	return &End{Sink: sink, Reader: data, Kind: "PIPE"}
}

// Source is a file or a program that a COPY FROM reads.
func Source(ctx context.Context, files Files, name string, program bool) (*End, error) {
	if program {
		p, err := files.Run(ctx, name, false)
		if err != nil {
			return nil, err
		}
		return &End{Reader: stoppable{p, ctx}, Kind: "PROGRAM", program: p}, nil
	}
	f, size, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	return &End{Reader: stoppable{f, ctx}, Kind: "FILE", Size: size, file: f}, nil
}

// Target is a file or a program that a COPY TO writes. What is no data goes to sink.
func Target(ctx context.Context, files Files, name string, program bool, sink pgwire.Sink) (*End, error) {
	if program {
		p, err := files.Run(ctx, name, true)
		if err != nil {
			return nil, err
		}
		return &End{Sink: sink, Kind: "PROGRAM", program: p, to: p}, nil
	}
	f, err := files.Create(name)
	if err != nil {
		return nil, err
	}
	return &End{Sink: sink, Kind: "FILE", file: f, to: f}, nil
}

// stoppable is a reader that ends with its statement: a program that is killed has no more to
// say, which is not its whole data.
type stoppable struct {
	from io.Reader
	ctx  context.Context
}

// Read implements io.Reader.
func (r stoppable) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return n, err
}

// CopyOut implements pgwire.Sink.
func (e *End) CopyOut(format int16, columns int) error {
	if e.to != nil {
		return nil
	}
	return e.Sink.CopyOut(format, columns)
}

// CopyData implements pgwire.Sink.
func (e *End) CopyData(messages []byte, n int) error {
	if e.to == nil {
		return e.Sink.CopyData(messages, n)
	}
	for len(messages) > 0 {
		size := int(binary.BigEndian.Uint32(messages[1:])) + 1
		if _, err := e.to.Write(messages[Frame:size]); err != nil {
			return err
		}
		messages = messages[size:]
	}
	return nil
}

// Frame is what a CopyData message adds to its data: its type, and its length.
const Frame = 5

// CopyDone implements pgwire.Sink.
func (e *End) CopyDone() error {
	if e.to != nil {
		return nil
	}
	return e.Sink.CopyDone()
}

// Close ends a COPY that went well: a file is durable, a program has ended without an error.
func (e *End) Close() error {
	file, program := e.file, e.program
	e.file, e.program = nil, nil
	switch {
	case file != nil:
		return file.Close()
	case program != nil:
		return program.Close()
	}
	return nil
}

// Abandon gives it up, unless it is closed.
func (e *End) Abandon() {
	if e.file != nil {
		_ = e.file.Close() // the statement has failed, and says why
	}
	if e.program != nil {
		e.program.Kill()
	}
	e.file, e.program = nil, nil
}
