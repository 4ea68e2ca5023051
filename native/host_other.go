//go:build !linux && !darwin && !windows

package native

import "runtime"

// machineMemory returns the machine's memory in bytes, 0 where it is not known.
func machineMemory() int64 {
	if runtime.GOARCH == "wasm" {
		return 4 << 30
	}
	return 0
}

func processLimit() int64 { return 0 }
