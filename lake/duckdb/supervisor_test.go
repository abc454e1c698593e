package duckdb

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWorkerEnvironHasNoSecrets(t *testing.T) {
	got := workerEnviron([]string{"PATH=/bin", "POSTGRES_PASSWORD=x", "SHOP_PW=y", "GOMEMLIMIT=1GiB", "LC_ALL=C", "SKIPPRD_SECRET_KEY=z"})
	if want := []string{"PATH=/bin", "GOMEMLIMIT=1GiB", "LC_ALL=C"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := workerEnviron(nil); got == nil {
		t.Error("nil, which stands for the server's whole environment")
	}
}

func TestLeftSocketsAreRemoved(t *testing.T) {
	base := t.TempDir()
	listen := func(name string) *net.UnixListener {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	live, left := listen("skipprd-1"), listen("skipprd-2")
	defer func() { _ = live.Close() }()
	left.SetUnlinkOnClose(false) // as one that was killed
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(base, "skipprd-3"), 0o700); err != nil { // not listening yet
		t.Fatal(err)
	}
	removeLeftSockets(base)
	var got []string
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{"skipprd-1", "skipprd-3"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}
