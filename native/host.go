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

// HostMemory returns the memory available to this process: the machine's memory or, if
// lower, the limit of its control group or of the process.
func HostMemory() Budget {
	budget := Budget{Bytes: 1 << 40, Source: "the bound where the machine's memory is not known"}
	if math.MaxInt == math.MaxInt32 {
		budget = Budget{Bytes: math.MaxInt32, Source: "the address space"}
	}
	if bytes := machineMemory(); bytes > 0 {
		budget = lower(budget, Budget{bytes, "the machine's memory"})
	}
	if bytes := processLimit(); bytes > 0 {
		budget = lower(budget, Budget{bytes, "the process's limit of address space"})
	}
	return lower(budget, groupLimit(os.DirFS("/")))
}

// lower returns the lower of two budgets; b of 0 bytes is no limit.
func lower(a, b Budget) Budget {
	if b.Bytes > 0 && b.Bytes < a.Bytes {
		return b
	}
	return a
}

// groupLimit returns the lowest memory limit of this process's control group and its
// ancestors, cgroups(7) versions 1 and 2, in a file system with /proc and /sys. It has
// 0 bytes if there is no limit.
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
		// In a container the path may exist only on the host.
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

// number returns the number in a file, 0 if there is none.
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
