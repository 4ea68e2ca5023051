package compiler

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/webgpu/wgsl"
)

// module reads a module: name, entries (name, graph) and the sizes of its
// symbolic dimensions.
func module(c *Compiler, r *request) (*ir.Module, error) {
	name := r.text()
	var entries []ir.Entry
	var err error
	r.list(func() {
		e := ir.Entry{Name: r.text()}
		g, bad := get[*ir.Graph](c, r)
		if bad != nil && err == nil {
			err = bad
		}
		e.Graph = g
		entries = append(entries, e)
	})
	values := r.symbols()
	if r.err != nil {
		err = r.err
	}
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if len(entries[i].Graph.Symbols()) > 0 {
			if entries[i].Graph, err = entries[i].Graph.Bind(values); err != nil {
				return nil, err
			}
		}
	}
	return ir.NewModule(name, entries...)
}

// compile (module, limits) → plan file. Limits are those of plan.Limits in
// order; 0 stands for the default.
func compile(c *Compiler, r *request, w *response) error {
	m, err := module(c, r)
	if err != nil {
		return err
	}
	t := plan.WebGPU()
	l := &t.Limits
	for _, p := range []*int{&l.StorageBuffers, &l.BindingBytes, &l.BufferBytes, &l.SharedBytes, &l.Invocations} {
		if n := int(r.f64()); n > 0 {
			*p = n
		}
	}
	if r.err != nil {
		return r.err
	}
	p, err := plan.Compile(m, t, wgsl.Printer{})
	if err != nil {
		return err
	}
	data, err := plan.Encode(p)
	if err == nil {
		w.bytes(data)
	}
	return err
}
