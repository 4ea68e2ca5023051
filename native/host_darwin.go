package native

import (
	"encoding/binary"
	"syscall"
)

// machineMemory returns the machine's memory in bytes, 0 where it is not known.
func machineMemory() int64 {
	text, err := syscall.Sysctl("hw.memsize")
	if err != nil {
		return 0
	}
	var word [8]byte // the call takes the last byte, 0, for the end of a string
	copy(word[:], text)
	return int64(binary.LittleEndian.Uint64(word[:]))
}

func processLimit() int64 { return 0 }
