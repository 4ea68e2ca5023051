package native

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// HostMemory returns what this process may have of the machine's memory: all of it, or the
// limit of its control group or process, where that is less.
func HostMemory() Budget {
	least := Budget{Bytes: 1 << 40, Source: "the bound where the machine's memory is not known"}
	if math.MaxInt == math.MaxInt32 {
		least = Budget{Bytes: math.MaxInt32, Source: "the address space"}
	}
	if bytes := machineMemory(); bytes > 0 {
		least = lower(least, Budget{bytes, "the machine's memory"})
	}
	if bytes := processLimit(); bytes > 0 {
		least = lower(least, Budget{bytes, "the process's limit of address space"})
	}
	return lower(least, groupLimit(os.DirFS("/")))
}

// lower returns the budget of fewer bytes; one of 0 bytes is none.
func lower(a, b Budget) Budget {
	if b.Bytes > 0 && b.Bytes < a.Bytes {
		return b
	}
	return a
}

// groupLimit returns the memory of the control group of this process, and of those around
// it, in a file system that has /proc and /sys: versions 2 and 1 of control groups
// (cgroups(7)). It is of 0 bytes where there is no limit.
func groupLimit(root fs.FS) Budget {
	f, err := root.Open("proc/self/cgroup")
	if err != nil {
		return Budget{}
	}
	defer f.Close()
	out := Budget{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		folder, file := "sys/fs/cgroup", "memory.max"
		if parts[0] != "0" || parts[1] != "" {
			folder, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
		}
		// In a container the group may be shown by a name that only the host has.
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			if limit := number(root, path.Join(folder, at, file)); limit > 0 && (out.Bytes == 0 || limit < out.Bytes) {
				out = Budget{limit, "the control group's limit"}
			}
			if at == "/" {
				break
			}
		}
	}
	return out
}

// number returns the number in a file, 0 where there is none.
func number(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // "max"
	}
	return n
}
