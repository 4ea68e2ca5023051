//go:build unix

package tensorfile

import (
	"os"
	"syscall"
)

// mapFile maps a file for reading, or returns nil where that fails or the file is empty.
func mapFile(f *os.File, size int64) (data []byte, unmap func() error) {
	if size == 0 || int64(int(size)) != size {
		return nil, nil
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil
	}
	return data, func() error { return syscall.Munmap(data) }
}
