package asm

import (
	"syscall"
	"unsafe"
)

var (
	kernel32       = syscall.NewLazyDLL("kernel32.dll")
	virtualAlloc   = kernel32.NewProc("VirtualAlloc")
	virtualProtect = kernel32.NewProc("VirtualProtect")
	virtualFree    = kernel32.NewProc("VirtualFree")
	flushCache     = kernel32.NewProc("FlushInstructionCache")
)

// The constants of memoryapi.h and winnt.h.
const (
	memCommit, memReserve, memRelease = 0x1000, 0x2000, 0x8000
	pageReadWrite, pageExecuteRead    = 0x04, 0x20
)

// mapCode returns memory with the code that is executable and not writable.
func mapCode(text []byte) ([]byte, error) {
	at, _, err := virtualAlloc.Call(0, uintptr(len(text)), memCommit|memReserve, pageReadWrite)
	if at == 0 {
		return nil, err
	}
	b := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), len(text))
	copy(b, text)
	const thisProcess = ^uintptr(0)
	if ok, _, err := flushCache.Call(thisProcess, at, uintptr(len(text))); ok == 0 {
		_ = unmapCode(b)
		return nil, err
	}
	var before uint32
	if ok, _, err := virtualProtect.Call(at, uintptr(len(text)), pageExecuteRead, uintptr(unsafe.Pointer(&before))); ok == 0 {
		_ = unmapCode(b)
		return nil, err
	}
	return b, nil
}

func unmapCode(b []byte) error {
	if ok, _, err := virtualFree.Call(uintptr(unsafe.Pointer(unsafe.SliceData(b))), 0, memRelease); ok == 0 {
		return err
	}
	return nil
}
