//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/internal/cuda/driver"
)

// graphKernels are the kernels, and the streams that capture, which graphs need beside those of a program's plan.
type graphKernels struct {
	p         *program
	condition *driver.Function // sets conditions; nil if no graph branches
	fill      *driver.Function // replaces fill nodes; nil if graphs keep them
	captures  []*driver.Stream // capture the bodies of conditionals, by depth
}

// captureStream returns the stream that captures the body of a conditional inside depth
// others.
func (h *graphKernels) captureStream(depth int) (*driver.Stream, error) {
	if depth == len(h.captures) {
		s, err := h.p.device.NewStream()
		if err != nil {
			return nil, err
		}
		h.captures = append(h.captures, s)
	}
	return h.captures[depth], nil
}

// load loads the kernels.
func (h *graphKernels) load() (err error) {
	if h.p.debug {
		return nil // there are no graphs
	}
	branch := slices.ContainsFunc(h.p.plan.Entries, func(e plan.Entry) bool { return branches(e.Steps) })
	if branch && h.p.device.Branches() {
		if err := h.loadCondition(); err != nil {
			return err
		}
	}
	if len(h.p.plan.Routines) > 0 && h.p.device.EditsGraphs() {
		h.fill, err = h.kernel(driver.FillName, driver.FillSource, h.p.device.Compiler.Code)
	}
	return err
}

// loadCondition loads the kernel that sets the conditions of graphs. It calls a device
// function of the driver that NVRTC 12.0 to 12.2 do not link, so it falls back to PTX. If
// the driver refuses that too, the host branches.
func (h *graphKernels) loadCondition() error {
	if h.p.device.hostBranches.Load() {
		return nil
	}
	code := h.p.device.Compiler.Code
	for _, ptx := range slices.Compact([]bool{code.PTX, true}) {
		code.PTX = ptx
		f, err := h.kernel(driver.ConditionName, driver.ConditionSource, code)
		if err == nil {
			h.condition = f
			return nil
		}
		var e *driver.Error
		if !errors.As(err, &e) || !e.Refused() {
			return err
		}
	}
	h.p.device.hostBranches.Store(true)
	return nil
}

// kernel loads a kernel that is not part of the plan.
func (h *graphKernels) kernel(name, source string, as driver.Code) (*driver.Function, error) {
	k := plan.Kernel{Name: name, Source: source}
	code, err := imageAs(h.p.device, cubin.Open(), &k, as)
	if err != nil {
		return nil, err
	}
	m, err := h.p.device.LoadModule(code)
	if err != nil {
		return nil, driver.In(name, err)
	}
	h.p.modules = append(h.p.modules, m)
	f, err := m.Function(name, 0)
	return &f, driver.In(name, err)
}
