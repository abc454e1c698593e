package death

import (
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// diskFS serves a Disk to the kernel. A node's number is its inode's.
type diskFS struct {
	fuse.RawFileSystem // what is not here is not supported
	d                  *Disk
	listings           map[uint64][]string // open directories, guarded by d.mu
	nextListing        uint64
}

func newDiskFS(d *Disk) *diskFS {
	return &diskFS{RawFileSystem: fuse.NewDefaultRawFileSystem(), d: d, listings: map[uint64][]string{}}
}

const cacheFor = time.Hour // nobody changes the tree but through the kernel

// with runs f on a node while the power is on.
func (f *diskFS) with(id uint64, do func(n *inode) fuse.Status) fuse.Status {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.cut {
		return fuse.EIO
	}
	n := f.d.nodes[id]
	if n == nil {
		return fuse.ENOENT
	}
	return do(n)
}

func (n *inode) attr(out *fuse.Attr) {
	kind := uint32(syscall.S_IFREG)
	if n.dir {
		kind = syscall.S_IFDIR
	}
	*out = fuse.Attr{
		Ino: n.id, Size: uint64(len(n.data)), Blocks: uint64(len(n.data)+511) / 512, Mode: kind | n.mode,
		Nlink: uint32(max(n.links, 1)), Blksize: pageSize, Owner: fuse.Owner{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())},
	}
	out.SetTimes(nil, &n.mtime, &n.mtime)
}

func (n *inode) entry(out *fuse.EntryOut) {
	out.NodeId, out.Generation = n.id, 1
	out.SetEntryTimeout(cacheFor)
	out.SetAttrTimeout(cacheFor)
	n.attr(&out.Attr)
}

func (f *diskFS) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	blocks := uint64(f.d.blocks)
	*out = fuse.StatfsOut{
		Blocks: blocks, Bfree: blocks, Bavail: blocks, Bsize: pageSize, Frsize: pageSize,
		NameLen: 255, Files: 1 << 20, Ffree: 1 << 20,
	}
	return fuse.OK
}

func (f *diskFS) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return f.with(h.NodeId, func(dir *inode) fuse.Status {
		n := f.d.nodes[dir.names[name]]
		if n == nil {
			return fuse.ENOENT
		}
		n.entry(out)
		return fuse.OK
	})
}

func (f *diskFS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return f.with(in.NodeId, func(n *inode) fuse.Status {
		n.attr(&out.Attr)
		out.SetTimeout(cacheFor)
		return fuse.OK
	})
}

func (f *diskFS) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return f.with(in.NodeId, func(n *inode) fuse.Status {
		if size, ok := in.GetSize(); ok && !n.dir {
			n.resize(int(size))
		}
		if mode, ok := in.GetMode(); ok {
			n.mode = mode
		}
		if t, ok := in.GetMTime(); ok {
			n.mtime = t
		}
		n.attr(&out.Attr)
		out.SetTimeout(cacheFor)
		return fuse.OK
	})
}

// make adds a file or a directory under a name that is free.
func (f *diskFS) make(dir *inode, name string, isDir bool, mode uint32) (*inode, fuse.Status) {
	if dir.names[name] != 0 {
		return nil, fuse.Status(syscall.EEXIST)
	}
	n := f.d.add(isDir, mode)
	f.d.change(dir, nameChange{name: n.id})
	return n, fuse.OK
}

func (f *diskFS) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.with(in.NodeId, func(dir *inode) fuse.Status {
		n, status := f.make(dir, name, true, in.Mode)
		if status.Ok() {
			n.entry(out)
		}
		return status
	})
}

func (f *diskFS) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return f.with(in.NodeId, func(dir *inode) fuse.Status {
		n, status := f.make(dir, name, false, in.Mode)
		if status.Ok() {
			n.opens++
			n.entry(&out.EntryOut)
		}
		return status
	})
}

func (f *diskFS) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.with(in.NodeId, func(n *inode) fuse.Status {
		n.opens++
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
		return fuse.OK
	})
}

func (f *diskFS) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	f.with(in.NodeId, func(n *inode) fuse.Status {
		n.opens--
		f.d.tidy(n)
		return fuse.OK
	})
}

func (f *diskFS) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return f.remove(h.NodeId, name, false)
}

func (f *diskFS) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return f.remove(h.NodeId, name, true)
}

func (f *diskFS) remove(id uint64, name string, isDir bool) fuse.Status {
	return f.with(id, func(dir *inode) fuse.Status {
		n := f.d.nodes[dir.names[name]]
		switch {
		case n == nil:
			return fuse.ENOENT
		case isDir && !n.dir:
			return fuse.ENOTDIR
		case !isDir && n.dir:
			return fuse.Status(syscall.EISDIR)
		case n.dir && len(n.names) > 0:
			return fuse.Status(syscall.ENOTEMPTY)
		}
		f.d.change(dir, nameChange{name: 0})
		return fuse.OK
	})
}

func (f *diskFS) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	return f.with(in.NodeId, func(dir *inode) fuse.Status {
		n, other := f.d.nodes[dir.names[from]], f.d.nodes[in.Newdir]
		if n == nil || other == nil {
			return fuse.ENOENT
		}
		if in.Flags != 0 {
			return fuse.ENOSYS
		}
		if old := f.d.nodes[other.names[to]]; old != nil && old.dir && len(old.names) > 0 {
			return fuse.Status(syscall.ENOTEMPTY)
		}
		if other == dir {
			if from != to {
				f.d.change(dir, nameChange{from: 0, to: n.id})
			}
			return fuse.OK
		}
		f.d.change(other, nameChange{to: n.id})
		f.d.change(dir, nameChange{from: 0})
		return fuse.OK
	})
}

func (f *diskFS) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.with(in.NodeId, func(dir *inode) fuse.Status {
		n := f.d.nodes[in.Oldnodeid]
		if n == nil {
			return fuse.ENOENT
		}
		if dir.names[name] != 0 {
			return fuse.Status(syscall.EEXIST)
		}
		f.d.change(dir, nameChange{name: n.id})
		n.entry(out)
		return fuse.OK
	})
}

func (f *diskFS) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	got := 0
	status := f.with(in.NodeId, func(n *inode) fuse.Status {
		if int(in.Offset) < len(n.data) {
			got = copy(buf, n.data[in.Offset:])
		}
		return fuse.OK
	})
	return fuse.ReadResultData(buf[:got]), status
}

func (f *diskFS) Writev(_ <-chan struct{}, in *fuse.WriteIn, parts [][]byte) (written uint32, status fuse.Status) {
	status = f.with(in.NodeId, func(n *inode) fuse.Status {
		for _, b := range parts {
			n.write(b, int(in.Offset)+int(written))
			written += uint32(len(b))
		}
		return fuse.OK
	})
	return written, status
}

func (f *diskFS) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	const keepSize = 1
	return f.with(in.NodeId, func(n *inode) fuse.Status {
		switch in.Mode {
		case keepSize:
		case 0:
			n.resize(max(len(n.data), int(in.Offset+in.Length)))
		default:
			return fuse.Status(syscall.EOPNOTSUPP)
		}
		return fuse.OK
	})
}

func (f *diskFS) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status { return f.sync(in) }

func (f *diskFS) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status { return f.sync(in) }

func (f *diskFS) sync(in *fuse.FsyncIn) fuse.Status {
	return f.with(in.NodeId, func(n *inode) fuse.Status {
		f.d.sync(n)
		return fuse.OK
	})
}

func (f *diskFS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.with(in.NodeId, func(n *inode) fuse.Status {
		f.nextListing++
		f.listings[f.nextListing] = slices.Concat([]string{".", ".."}, sortedNames(n.names))
		out.Fh = f.nextListing
		return fuse.OK
	})
}

func (f *diskFS) ReleaseDir(in *fuse.ReleaseIn) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	delete(f.listings, in.Fh)
}

func (f *diskFS) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.with(in.NodeId, func(dir *inode) fuse.Status {
		list := f.listings[in.Fh]
		for i := int(in.Offset); i < len(list); i++ {
			e := fuse.DirEntry{Name: list[i], Ino: dir.id, Mode: syscall.S_IFDIR, Off: uint64(i + 1)}
			if i > 1 {
				n := f.d.nodes[dir.names[list[i]]]
				if n == nil {
					continue // removed since the directory was opened
				}
				if e.Ino = n.id; !n.dir {
					e.Mode = syscall.S_IFREG
				}
			}
			if !out.AddDirEntry(e) {
				break
			}
		}
		return fuse.OK
	})
}
