//go:build cgo && linux && (amd64 || arm64)

package driver

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestNCCLSearchOrderIsDocumented(t *testing.T) {
	wheel := "/venv/lib/python3.12/site-packages/nvidia/nccl/lib"
	e := machine(map[string]string{PathVariable: "/mine", "VIRTUAL_ENV": "/venv"}, wheel, "/usr/lib64")
	var before int
	for i, path := range ncclPaths(e) {
		for k, want := range []string{"/mine/libnccl.so.2", wheel + "/libnccl.so.2", "/usr/lib64/libnccl.so.2", "libnccl.so.2", "/mine/librccl.so.1"} {
			if path != want {
				continue
			}
			if k != before {
				t.Errorf("path %d is %q, out of order", i, path)
			}
			before++
		}
	}
	if before != 5 {
		t.Errorf("%d of 5 paths are tried", before)
	}
	dir := t.TempDir()
	e = machine(map[string]string{NCCLVariable: dir})
	if got := ncclPaths(e); len(got) != 2 || got[0] != filepath.Join(dir, "libnccl.so.2") {
		t.Errorf("a folder has the paths %v", got)
	}
	e = machine(map[string]string{NCCLVariable: "/my/libnccl.so.2.27"})
	if got := ncclPaths(e); len(got) != 1 || got[0] != "/my/libnccl.so.2.27" {
		t.Errorf("a file has the paths %v", got)
	}
	if _, err := loadNCCL(e); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), NCCLVariable) {
		t.Errorf("a file that is missing: %v", err)
	}
}
