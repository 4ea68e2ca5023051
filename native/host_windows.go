package native

import (
	"syscall"
	"unsafe"
)

var globalMemoryStatus = syscall.NewLazyDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// memoryStatus is MEMORYSTATUSEX of the Windows API.
type memoryStatus struct {
	length, load                    uint32
	physical, available             uint64
	pageFile, availablePageFile     uint64
	virtual, availableVirtual, rest uint64
}

// machineMemory returns the machine's memory in bytes, 0 where it is not known.
func machineMemory() int64 {
	s := memoryStatus{}
	s.length = uint32(unsafe.Sizeof(s))
	if ok, _, _ := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return 0
	}
	return int64(s.physical)
}

func processLimit() int64 { return 0 }
