//go:build unix

package asm

import (
	"syscall"
	"unsafe"
)

// mapCode returns memory with the code that is executable and not writable.
func mapCode(text []byte) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, len(text), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, err
	}
	copy(b, text)
	synchronize(unsafe.Pointer(unsafe.SliceData(b)), len(b))
	if err := syscall.Mprotect(b, syscall.PROT_READ|syscall.PROT_EXEC); err != nil {
		_ = syscall.Munmap(b)
		return nil, err
	}
	return b, nil
}

func unmapCode(b []byte) error { return syscall.Munmap(b) }
