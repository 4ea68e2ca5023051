// Package cgroup reads the limits of this process's control group on Linux.
package cgroup

import (
	"bufio"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// MemoryLimit returns the lowest memory limit, in bytes, of this process's control group and its
// ancestors, cgroups(7) versions 1 and 2, in a file system with /proc and /sys. It is
// 0 if there is no limit.
func MemoryLimit(root fs.FS) int64 {
	f, err := root.Open("proc/self/cgroup")
	if err != nil {
		return 0
	}
	defer f.Close()
	out := int64(0)
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
			if limit := number(root, path.Join(folder, at, file)); limit > 0 && (out == 0 || limit < out) {
				out = limit
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
