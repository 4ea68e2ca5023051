package compiler

import (
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/recipe"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// module reads a module: name, entries (name, graph) and the sizes of its
// symbolic dimensions.
func module(c *wire.Service, r *wire.Request) (*ir.Module, error) {
	name := r.Text()
	var entries []ir.Entry
	var err error
	r.List(func() {
		e := ir.Entry{Name: r.Text()}
		g, bad := wire.Get[*ir.Graph](c, r)
		if bad != nil && err == nil {
			err = bad
		}
		e.Graph = g
		entries = append(entries, e)
	})
	values := r.Symbols()
	if r.Err() != nil {
		err = r.Err()
	}
	if err != nil {
		return nil, err
	}
	return wire.Bind(name, entries, values)
}

// job is a compilation for some devices.
type job struct {
	module *ir.Module
	// devices are the targets in order: the plans of those after the first are its variants.
	devices []recipe.Device
}

// readJob reads a job: a module, limits, f16, subgroup, device and the targets. Limits are those of
// [recipe.Limits] in order; 0 means the default. Targets are indices into [recipe.TargetNames].
func readJob(c *wire.Service, r *wire.Request) (*job, error) {
	m, err := module(c, r)
	if err != nil {
		return nil, err
	}
	limits := recipe.Limits{}
	for _, p := range []*int{&limits.StorageBuffers, &limits.BindingBytes, &limits.BufferBytes, &limits.SharedBytes, &limits.Invocations} {
		*p = int(r.F64())
	}
	limits.F16, limits.Subgroup, limits.Device = r.Bool(), r.U32(), r.Text()
	j := &job{module: m}
	r.List(func() {
		n := r.U32()
		if n >= len(recipe.TargetNames) {
			r.Fail(ir.Errorf(ir.ErrIndex, "unknown target %d", n))
			return
		}
		device, err := limits.Target(recipe.TargetNames[n])
		if err != nil {
			r.Fail(err)
		}
		j.devices = append(j.devices, device)
	})
	if r.Err() == nil && len(j.devices) == 0 {
		r.Fail(ir.Attrf("there are no targets; one or more are required"))
	}
	return j, r.Err()
}

// compile (job) → plan file.
func compile(c *wire.Service, r *wire.Request, w *wire.Response) error {
	j, err := readJob(c, r)
	if err != nil {
		return err
	}
	return j.compile(w)
}

func (j *job) compile(w *wire.Response) error {
	p, err := recipe.Compile(j.module, j.devices)
	if err != nil {
		return err
	}
	return writePlan(w, p)
}

func writePlan(w *wire.Response, p *plan.Plan) error {
	data, err := plan.Encode(p)
	if err == nil {
		w.Bytes(data)
	}
	return err
}
