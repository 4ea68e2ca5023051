package compiler

import (
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
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

// The targets of compile, as js/src/compile/compiler.ts numbers them.
const (
	targetWebGPU = iota
	targetWASM
	targetRelaxedWASM
)

// maxSubgroup is the most threads of a subgroup in WebGPU.
const maxSubgroup = 128

// job is what is compiled for a target.
type job struct {
	module  *ir.Module
	target  plan.Target
	printer plan.Printer
	// others are the further targets, whose plans are variants of the first.
	others []job
}

// readJob reads a job: a module, limits, f16, subgroup, device and the target. Limits are
// those of loop.Limits in order; 0 stands for the default. f16 says that the device computes
// with it, subgroup is the one size of its subgroups, 0 where it has several or that
// is not known, and device what it is called: see [hardware.Named]. All count for WebGPU alone. The
// targets are a list: the plans of those after the first are its variants.
func readJob(c *wire.Service, r *wire.Request) (*job, error) {
	m, err := module(c, r)
	if err != nil {
		return nil, err
	}
	j := &job{module: m, target: plan.WebGPU(), printer: wgsl.Printer{}}
	l := &j.target.Limits
	for _, p := range []*int{&l.StorageBuffers, &l.BindingBytes, &l.BufferBytes, &l.SharedBytes, &l.Invocations} {
		if n := int(r.F64()); n > 0 {
			*p = n
		}
	}
	j.target.F16 = r.Bool()
	if size := r.U32(); size > 0 {
		if size > maxSubgroup || size&(size-1) != 0 {
			return nil, ir.Attrf("the subgroup size is %d; it must be a power of two up to %d", size, maxSubgroup)
		}
		j.target = j.target.WithSubgroups(int(size))
	}
	j.target.Device = hardware.Named(r.Text())
	gpu := *j
	for i := range r.U32() {
		one := gpu
		if target := r.U32(); target != targetWebGPU {
			relaxed := target == targetRelaxedWASM
			one.target, one.printer = plan.WebAssembly(relaxed), wasmsimd.Printer{Relaxed: relaxed}
		}
		if i == 0 {
			*j = one
		} else {
			j.others = append(j.others, one)
		}
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
	if err := optim.Check(j.module); err != nil {
		return err
	}
	p, err := plan.Compile(j.module, j.target, j.printer)
	if err != nil {
		return err
	}
	for _, o := range j.others {
		variant, err := plan.Compile(o.module, o.target, o.printer)
		if err != nil {
			return err
		}
		p.Variants = append(p.Variants, variant)
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
