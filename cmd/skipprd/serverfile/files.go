// Package serverfile is what COPY may use of the server's machine: files and programs. Who may
// use any of them the planner has looked at; here stands which nobody may, and what becomes of a
// file. Files and Program implement copying's interfaces.
package serverfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/copying"
)

// Allow says what there is for COPY.
type Allow string

// The values of Allow, each with what the one before has.
const (
	Off      Allow = "off"
	Plain    Allow = "files"
	Programs Allow = "programs"
)

// Files are the files and programs that COPY names. Those of the processes and the server's own,
// its secrets among them, are never opened. Safe for concurrent use.
type Files struct {
	allow  Allow
	closed []string
	log    *slog.Logger
}

var _ copying.Files = (*Files)(nil)

// New makes files and directories, the empty name none, unreachable as the server's own.
func New(allow Allow, log *slog.Logger, own ...string) *Files {
	f := &Files{allow: allow, log: log, closed: []string{"/proc"}}
	for _, path := range own {
		if path == "" {
			continue
		}
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		f.closed = append(f.closed, path)
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			f.closed = append(f.closed, real)
		}
	}
	return f
}

// Open implements copying.Files.
func (f *Files) Open(path string) (io.ReadCloser, int64, error) {
	const hint = "COPY FROM instructs the PostgreSQL server process to read a file. You may want a client-side facility such as psql's \\copy."
	if err := f.permitted(false); err != nil {
		return nil, 0, err
	}
	if !filepath.IsAbs(path) {
		return nil, 0, pgerr.New(codes.InvalidName, "relative path not allowed for COPY from file")
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, openError(err, "reading", path, hint)
	}
	info, err := f.regular(file, path)
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return inFile{file}, info.Size(), nil
}

// Create implements copying.Files: the file is written in its place, and keeps its owner and its
// mode.
func (f *Files) Create(path string) (io.WriteCloser, error) {
	const hint = "COPY TO instructs the PostgreSQL server process to write a file. You may want a client-side facility such as psql's \\copy."
	if err := f.permitted(false); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(path) {
		return nil, pgerr.New(codes.InvalidName, "relative path not allowed for COPY to file")
	}
	// Looked at before it may be made, and again when it is open: somebody may change a link.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && f.isClosed(filepath.Join(dir, filepath.Base(path))) {
		return nil, errOwn(path)
	}
	const mode = 0o644 // others read, and nobody else writes
	flags := os.O_WRONLY | syscall.O_NONBLOCK
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		flags |= os.O_CREATE | os.O_EXCL // by no link
	}
	file, err := os.OpenFile(path, flags, mode)
	if err != nil {
		return nil, openError(err, "writing", path, hint)
	}
	info, err := f.regular(file, path)
	if err == nil && info.Mode().IsRegular() {
		if err = file.Truncate(0); err != nil {
			err = fileError(err, "could not open file \"%s\" for writing", path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &outFile{file: file, path: path, durable: info.Mode().IsRegular(), made: flags&os.O_CREATE != 0}, nil
}

// regular refuses an open file that is the server's own, or no file.
func (f *Files) regular(file *os.File, path string) (fs.FileInfo, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fileError(err, "could not stat file \"%s\"", path)
	}
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil { // no such system: what the path says now
		if real, err = filepath.EvalSymlinks(path); err != nil {
			return nil, fileError(err, "could not open file \"%s\"", path)
		}
	}
	switch {
	case f.isClosed(real) || f.isOwn(real, info):
		return nil, errOwn(path)
	case info.IsDir():
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is a directory", path)
	case !info.Mode().IsRegular() && real != os.DevNull:
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a regular file", path).WithHint("Use PROGRAM to read or write it.")
	}
	return info, nil
}

func (f *Files) isClosed(path string) bool {
	return slices.ContainsFunc(f.closed, func(own string) bool {
		return path == own || strings.HasPrefix(path, strings.TrimSuffix(own, "/")+"/")
	})
}

// isOwn says whether a file, by whatever name, is one that is closed, or is in a directory that is: a
// file has several names, and a directory may be mounted in several places.
func (f *Files) isOwn(path string, info fs.FileInfo) bool {
	named := func(closed string) bool { // by a further name
		found := false
		err := filepath.WalkDir(closed, func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				var own fs.FileInfo
				if own, err = entry.Info(); err == nil && os.SameFile(own, info) {
					found = true
					return fs.SkipAll
				}
			}
			if errors.Is(err, fs.ErrNotExist) { // it has just gone
				return nil
			}
			return err
		})
		return found || err != nil // nobody knows what was not looked at
	}
	closed := f.closed[1:] // not of /proc, where nothing has a further name
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 && info.Mode().IsRegular() && slices.ContainsFunc(closed, named) {
		return true
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		above, err := os.Stat(dir)
		if err == nil && slices.ContainsFunc(closed, func(own string) bool {
			its, err := os.Stat(own)
			return err == nil && os.SameFile(its, above)
		}) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

func errOwn(path string) *pgerr.Error {
	return pgerr.New(codes.InsufficientPrivilege, "could not open file \"%s\": Permission denied", path).
		WithDetail("It is one of the server's own files.")
}

// permitted refuses what the server was not started for.
func (f *Files) permitted(program bool) error {
	what, enough := "files of the server", "files"
	if program {
		what, enough = "programs of the server", "programs"
	}
	if f.allow == Programs || f.allow == Plain && !program {
		return nil
	}
	return pgerr.New(codes.InsufficientPrivilege, "COPY with %s is switched off", what).
		WithDetail("The server runs with --server-files=%s.", f.allow).
		WithHint("Start it with --server-files=%s, or use COPY to stdout or from stdin. psql's \\copy command works for anyone.", enough)
}

// openError is why a file is not open, with a hint where another machine may be meant.
func openError(err error, purpose, path, hint string) *pgerr.Error {
	e := fileError(err, "could not open file \"%s\" for "+purpose, path)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EACCES) {
		return e.WithHint("%s", hint)
	}
	return e
}

// fileError is an error of a file as PostgreSQL tells it.
func fileError(err error, format string, args ...any) *pgerr.Error {
	code, why := codes.Code("58030"), err.Error()
	var number syscall.Errno
	if errors.As(err, &number) {
		why = number.Error()
		why = strings.ToUpper(why[:1]) + why[1:]
		switch number {
		case syscall.EPERM, syscall.EACCES, syscall.EROFS:
			code = codes.InsufficientPrivilege
		case syscall.ENOENT:
			code = "58P01"
		case syscall.EEXIST:
			code = "58P02"
		case syscall.ENOTDIR, syscall.EISDIR, syscall.ENOTEMPTY:
			code = codes.WrongObjectType
		case syscall.ENOSPC:
			code = codes.DiskFull
		case syscall.ENFILE, syscall.EMFILE:
			code = codes.InsufficientResources
		}
	}
	return pgerr.New(code, format+": %s", append(args, why)...).WithCause(err)
}

// inFile is a file of COPY FROM.
type inFile struct{ *os.File }

// Read implements io.Reader.
func (i inFile) Read(b []byte) (int, error) {
	n, err := i.File.Read(b)
	if err != nil && err != io.EOF {
		err = fileError(err, "could not read from COPY file")
	}
	return n, err
}

// outFile is a file of COPY TO. What was written is durable when Close has returned.
type outFile struct {
	file          *os.File
	path          string
	durable, made bool
}

// Write implements io.Writer.
func (o *outFile) Write(b []byte) (int, error) {
	n, err := o.file.Write(b)
	if err != nil {
		return n, fileError(err, "could not write to COPY file")
	}
	return n, nil
}

// Close implements io.Closer.
func (o *outFile) Close() error {
	var err error
	if o.durable {
		err = o.file.Sync()
	}
	err = errors.Join(err, o.file.Close())
	if o.made && err == nil {
		err = syncDirectory(filepath.Dir(o.path))
	}
	if err != nil {
		return fileError(err, "could not close file \"%s\"", o.path)
	}
	return nil
}

// syncDirectory makes a new file's name durable. A directory that cannot be read is as good as
// the system makes it.
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	return errors.Join(dir.Sync(), dir.Close())
}
