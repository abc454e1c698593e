package death

import (
	"fmt"
	"io"
	"log"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Mount is a Disk in the machine's file tree, until the test ends.
type Mount struct {
	Dir  string
	Disk *Disk

	server *fuse.Server
}

// MountDisk mounts a disk; where the machine does not allow it, the test is skipped.
func MountDisk(t testing.TB, d *Disk) *Mount {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "mounting a FUSE file system needs root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		Skip(t, fmt.Sprintf("no FUSE: %v", err))
	}
	m := &Mount{Dir: t.TempDir(), Disk: d}
	if err := m.up(); err != nil {
		Skip(t, fmt.Sprintf("no FUSE: %v", err))
	}
	t.Cleanup(func() {
		d.Cut()
		m.down()
	})
	return m
}

// Remount takes the file system down, runs between while it is, and mounts it again
// with nothing cached. The processes that used it must be gone.
func (m *Mount) Remount(between func()) error {
	m.down()
	between()
	return m.up()
}

func (m *Mount) up() error {
	server, err := fuse.NewServer(newDiskFS(m.Disk), m.Dir, &fuse.MountOptions{
		DirectMountStrict: true, FsName: "deathdisk", Name: "deathdisk", MaxWrite: 1 << 20,
		DisableXAttrs: true, DisableReadDirPlus: true, Logger: log.New(io.Discard, "", 0),
	})
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.Dir, err)
	}
	m.server = server
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		m.down()
		return fmt.Errorf("mount %s: %w", m.Dir, err)
	}
	return nil
}

// down unmounts; a process that lingers keeps a file system that only fails.
func (m *Mount) down() {
	if m.server == nil {
		return
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if syscall.Unmount(m.Dir, 0) == nil {
			m.server = nil
			return
		}
	}
	_ = syscall.Unmount(m.Dir, syscall.MNT_DETACH) // the best that is left
	m.server = nil
}
