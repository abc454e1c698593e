package death

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TinyDisk mounts a file system of so many bytes: ext4 in a file, or where the machine
// has no loop devices a tmpfs. Where it has neither, the test is skipped.
func TinyDisk(t testing.TB, bytes int64) (dir, kind string) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "mounting a small file system needs root")
	}
	dir = t.TempDir()
	kind, err := "ext4", mountImage(filepath.Join(t.TempDir(), "disk"), dir, bytes)
	if err != nil {
		t.Logf("no loop-mounted ext4: %v", err)
		kind = "tmpfs"
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
	}
	if err != nil {
		Skip(t, fmt.Sprintf("no small file system: %v", err))
	}
	t.Cleanup(func() {
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if syscall.Unmount(dir, 0) == nil {
				return
			}
		}
		_ = syscall.Unmount(dir, syscall.MNT_DETACH) // the best that is left
	})
	return dir, kind
}

func mountImage(image, dir string, bytes int64) error {
	f, err := os.Create(image)
	if err != nil {
		return err
	}
	if err := f.Truncate(bytes); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, line := range [][]string{{"mkfs.ext4", "-q", "-F", "-m", "0", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(line, " "), err, out)
		}
	}
	return nil
}

// Free is how many bytes the file system of dir has left.
func Free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, os.NewSyscallError("statfs", err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// Fill writes a file that leaves so many bytes of its file system, or none.
func Fill(path string, leave int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	for len(b) > 0 {
		free, err := Free(filepath.Dir(path))
		if err != nil {
			return err
		}
		if free <= leave {
			return nil
		}
		if _, err := f.Write(b[:min(int64(len(b)), free-leave)]); err != nil {
			b = b[:len(b)/2] // what is left is less than that
		}
	}
	return nil
}
