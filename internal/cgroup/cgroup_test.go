package cgroup_test

import (
	"testing"
	"testing/fstest"

	"github.com/rlx-go/rlx/internal/cgroup"
)

func TestControlGroupsBoundTheMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"none":              {fstest.MapFS{}, 0},
		"version 2":         {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("4096\n")}, 4096},
		"a group around it": {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("512\n")}, 512},
		"a container":       {fstest.MapFS{"proc/self/cgroup": file("0::/../../x\n"), "sys/fs/cgroup/memory.max": file("99\n")}, 99},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup": file("5:cpu,cpuacct:/c\n4:memory:/docker/7\n"),
			"sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes": file("8192"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          file("9223372036854771712"),
		}, 8192},
		"no limit": {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 0},
	} {
		if got := cgroup.MemoryLimit(c.files); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
