package serverfile

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func codeOf(t *testing.T, err error) codes.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *pgerr.Error
	if !errors.As(err, &e) {
		t.Fatalf("no error for a client: %v", err)
	}
	return e.Code
}

// TestServerFilesOwn: the server's own files are not reached, by whatever path, and stay as they
// are.
func TestServerFilesOwn(t *testing.T) {
	data, other := t.TempDir(), t.TempDir()
	secret := filepath.Join(data, "secret.key")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": secret, "dir": data, "new": filepath.Join(data, "made")} {
		if err := os.Symlink(target, filepath.Join(other, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(secret, filepath.Join(other, "hard")); err != nil {
		t.Fatal(err)
	}
	f := New(Programs, slog.New(slog.DiscardHandler), data, "")
	for _, path := range []string{
		secret, filepath.Join(other, "hard"), filepath.Join(other, "link"), filepath.Join(other, "dir", "secret.key"), other + "/dir/../" + filepath.Base(data) + "/secret.key",
		"/proc/self/environ", "/proc/self/root" + secret,
	} {
		if _, _, err := f.Open(path); codeOf(t, err) != codes.InsufficientPrivilege {
			t.Errorf("read %s: %v", path, err)
		}
		if _, err := f.Create(path); codeOf(t, err) != codes.InsufficientPrivilege {
			t.Errorf("write %s: %v", path, err)
		}
	}
	if _, err := f.Create(filepath.Join(other, "dir", "made")); codeOf(t, err) != codes.InsufficientPrivilege {
		t.Error(err)
	}
	if _, err := f.Create(filepath.Join(other, "new")); codeOf(t, err) != "58P01" { // a link to a file that is not there
		t.Error(err)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
	two := filepath.Join(other, "two") // a file of others may have several names
	if err := errors.Join(os.WriteFile(two, []byte("y"), 0o600), os.Link(two, filepath.Join(other, "names"))); err != nil {
		t.Fatal(err)
	}
	r, _, err := f.Open(two)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if _, err := os.Stat(filepath.Join(data, "made")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestServerFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	f := New(Programs, slog.New(slog.DiscardHandler))
	for range 2 {
		w, err := f.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "longer"[:4]); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r, size, err := f.Open(path)
	if err != nil || size != 4 {
		t.Fatal(size, err)
	}
	if b, err := io.ReadAll(r); string(b) != "long" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	_ = r.Close()
	for path, want := range map[string]codes.Code{"a": codes.InvalidName, dir: codes.WrongObjectType, filepath.Join(dir, "none", "b"): "58P01", path + "/b": codes.WrongObjectType} {
		if _, _, err := f.Open(path); codeOf(t, err) != want {
			t.Errorf("read %s: %v", path, err)
		}
		if _, err := f.Create(path); codeOf(t, err) != want {
			t.Errorf("write %s: %v", path, err)
		}
	}
	if w, err := f.Create(os.DevNull); err != nil || w.Close() != nil {
		t.Error(err)
	}
	for allow, want := range map[Allow]codes.Code{Plain: "", Off: codes.InsufficientPrivilege} {
		f := New(allow, slog.New(slog.DiscardHandler))
		if _, _, err := f.Open(path); codeOf(t, err) != want {
			t.Errorf("%s: %v", allow, err)
		}
		if _, err := f.Run(t.Context(), "true", true); codeOf(t, err) != codes.InsufficientPrivilege {
			t.Errorf("%s: %v", allow, err)
		}
	}
}

func TestPrograms(t *testing.T) {
	t.Setenv("SKIPPRD_SECRET_KEY", "hidden")
	t.Setenv("LOG_SECRET_ACCESS_KEY", "hidden")
	f := New(Programs, slog.New(slog.DiscardHandler))
	for command, want := range map[string]string{
		"echo a; env | grep -c hidden": "a\n0\n! program \"echo a; env | grep -c hidden\" failed (SQLSTATE 38000) child process exited with exit code 1",
		"echo b":                       "b\n",
		"kill -9 $$":                   "! program \"kill -9 $$\" failed (SQLSTATE 38000) child process was terminated by signal 9: Killed",
		"nosuchcommand 2>/dev/null":    "! program \"nosuchcommand 2>/dev/null\" failed (SQLSTATE 38000) command not found",
	} {
		p, err := f.Run(t.Context(), command, false)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(p)
		got := string(b)
		if err = errors.Join(err, p.Close()); err != nil {
			e, _ := pgerr.As(err)
			got += "! " + e.Error() + " " + e.Detail
		}
		if got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	p, err := f.Run(t.Context(), "cat > "+out, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p, "to a program"); err != nil || p.Close() != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(out); string(b) != "to a program" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	p, err = f.Run(t.Context(), "exit 4", true)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil { // until the pipe is broken
		_, err = io.WriteString(p, strings.Repeat("x", 1<<16))
	}
	if e, ok := pgerr.As(err); !ok || e.Detail != "child process exited with exit code 4" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p, err = f.Run(ctx, "sleep 1000 & sleep 1000", false)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if b, err := io.ReadAll(p); len(b) != 0 || p.Close() == nil { // all of its processes are gone: the pipe ends
		t.Errorf("%q, %v", b, err)
	}
}
