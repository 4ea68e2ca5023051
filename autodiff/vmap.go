package autodiff

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// VmapOptions say where a batch comes in and goes out.
type VmapOptions struct {
	// In gives, for each port that differs from one element of the batch to the
	// next, the place of the batch axis in its shape. A negative place counts
	// from the end of the shape with the axis: -1 is last. All other ports are
	// shared.
	In map[string]int
	// Out gives the place of the batch axis in outputs for which it is not 0.
	// An output that is the same for all elements is repeated along it.
	Out map[string]int
	// Shared names outputs that are to stay without a batch axis; one that
	// depends on the batch is an error then.
	Shared []string
}

// Vmap returns a graph that does for a whole batch of the given size what g
// does for one element of it. Ports and outputs keep their names. A state that
// is updated by what depends on the batch needs an axis of its own in
// [VmapOptions.In]; its update has the axis at the same place. The error is of
// kind [ir.ErrName] or [ir.ErrAttr] for an unknown port or a place that does
// not exist, [ir.ErrShape] for a state or an output that cannot be shared, and
// [ir.ErrNoRule] for an op that cannot be batched.
func Vmap(g *ir.Graph, size ir.Dim, o VmapOptions) (*ir.Graph, error) {
	if err := given("vmap", g); err != nil {
		return nil, err
	}
	v := &vmap{g: g, size: size, options: o, axes: make([]int, len(g.Ports()))}
	if err := v.checkNames(); err != nil {
		return nil, wrap("vmap", err)
	}
	for i, p := range g.Ports() {
		v.axes[i] = -1
		if a, ok := o.In[p.Name]; ok {
			a, err := placeOf(a, p.Value.Rank(), p.Name)
			if err != nil {
				return nil, wrap("vmap", err)
			}
			v.axes[i] = a
		}
	}
	batched, err := ir.Build(g.Name(), v.build)
	return batched, wrap("vmap", err)
}

type vmap struct {
	g       *ir.Graph
	size    ir.Dim
	options VmapOptions
	axes    []int // by port
}

// placeOf returns the place of a new axis in a shape of some rank, counted from
// the front.
func placeOf(axis, rank int, name string) (int, error) {
	at := axis
	if at < 0 {
		at += rank + 1
	}
	if at < 0 || at > rank {
		return 0, ir.Attrf("batch axis %d of %q, which has rank %d without it", axis, name, rank)
	}
	return at, nil
}

func (v *vmap) checkNames() error {
	if !v.size.Valid() {
		return ir.Attrf("batch size %s", v.size)
	}
	for name := range v.options.In {
		if portIndex(v.g, name) < 0 {
			return ir.Errorf(ir.ErrName, "graph %q has no port %q", v.g.Name(), name)
		}
	}
	outputs := append([]string(nil), v.options.Shared...)
	for name := range v.options.Out {
		outputs = append(outputs, name)
	}
	for _, name := range outputs {
		if _, ok := v.g.Output(name); !ok {
			return ir.Errorf(ir.ErrName, "graph %q has no output %q", v.g.Name(), name)
		}
	}
	return nil
}

func (v *vmap) build(b *ir.Builder) {
	in := make([]ir.Value, len(v.g.Ports()))
	for i, p := range v.g.Ports() {
		t := p.Value.Type()
		if v.axes[i] >= 0 {
			t.Shape = slices.Insert(t.Shape.Clone(), v.axes[i], v.size)
		}
		in[i] = b.Port(p.Kind, p.Name, t)
	}
	out, outAxes := derive.Batch(b, v.g, in, v.axes, v.size)
	if b.Err() != nil {
		return
	}
	for i, o := range v.g.Outputs() {
		want, err := v.outAxis(o, outAxes[i])
		if err != nil {
			b.Fail(err)
			return
		}
		if want >= 0 {
			out[i] = ops.BatchAt(b, out[i], outAxes[i], want, v.size)
		}
		b.CopyOutput(o, out[i])
	}
}

// outAxis returns where an output is to have the batch axis, -1 for nowhere,
// given where its value has it.
func (v *vmap) outAxis(o ir.Output, has int) (int, error) {
	if o.State {
		want := v.axes[portIndex(v.g, o.Name)]
		if want < 0 && has >= 0 {
			return 0, ir.Shapef("the new value of state %q depends on the batch: give the state a batch axis", o.Name)
		}
		return want, nil
	}
	if slices.Contains(v.options.Shared, o.Name) {
		if has >= 0 {
			return 0, ir.Shapef("output %q depends on the batch and cannot be shared", o.Name)
		}
		return -1, nil
	}
	return placeOf(v.options.Out[o.Name], o.Value.Rank(), o.Name)
}
