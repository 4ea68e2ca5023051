//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"sync"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/ir"
)

// minCachedNodes is the number of nodes of a module from which on its plan is cached:
// compiling that takes about 50 ms.
const minCachedNodes = 1000

// planOf compiles a module, or reads the plan from the cache if the same executable has
// compiled an equal module. An invalid file is compiled again.
func planOf(m *ir.Module, t plan.Target) (*plan.Plan, error) {
	key, ok := planKey(m, t)
	if !ok {
		return plan.Compile(m, t, printerOf(t))
	}
	store := cubin.Open()
	if file, found := store.Get(key); found {
		if made, err := plan.Decode(file); err == nil {
			return made, nil
		}
	}
	made, err := plan.Compile(m, t, printerOf(t))
	if err != nil {
		return nil, err
	}
	if file, err := plan.Encode(made); err == nil {
		_ = store.Put(key, file) // a cache that cannot be written to costs time only
	}
	return made, nil
}

// printerOf returns the printer of a target's kernels.
func printerOf(t plan.Target) cudacpp.Printer {
	return cudacpp.Printer{WarpMMA: t.MmaByWarps, Waits: t.TensorMaps}
}

// planKey returns the cache key of a module's plan: a hash of the graphs, the target and the
// build of this executable. ok is false if the plan is not worth caching.
func planKey(m *ir.Module, t plan.Target) (key cubin.Key, ok bool) {
	nodes := 0
	for _, e := range m.Entries {
		nodes += len(e.Graph.Nodes())
	}
	build := buildID()
	if nodes < minCachedNodes || build == "" {
		return key, false
	}
	parts := []string{"plan", build, fmt.Sprintf("%+v", t), m.Name}
	for _, e := range m.Entries {
		parts = append(parts, e.Name, e.Graph.String())
	}
	return cubin.KeyOf(parts...), true
}

// buildID returns the Go build ID of the executable, "" if it has none.
var buildID = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	s := f.Section(".note.go.buildid")
	if s == nil {
		return ""
	}
	note, err := s.Data()
	if err != nil || !bytes.Contains(note, []byte("Go\x00\x00")) {
		return ""
	}
	return string(note)
})
