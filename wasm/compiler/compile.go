package compiler

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/wasm/wire"
	"github.com/rlx-go/rlx/webgpu/wgsl"
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

// compile (module, limits, f16) → plan file. Limits are those of loop.Limits in
// order; 0 stands for the default. f16 says that the device computes with it.
func compile(c *wire.Service, r *wire.Request, w *wire.Response) error {
	m, err := module(c, r)
	if err != nil {
		return err
	}
	t := plan.WebGPU()
	l := &t.Limits
	for _, p := range []*int{&l.StorageBuffers, &l.BindingBytes, &l.BufferBytes, &l.SharedBytes, &l.Invocations} {
		if n := int(r.F64()); n > 0 {
			*p = n
		}
	}
	t.F16 = r.Bool()
	if r.Err() != nil {
		return r.Err()
	}
	p, err := plan.Compile(m, t, wgsl.Printer{})
	if err != nil {
		return err
	}
	data, err := plan.Encode(p)
	if err == nil {
		w.Bytes(data)
	}
	return err
}
