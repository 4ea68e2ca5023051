package autodiff

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// VmapOptions are the options of [Vmap]: the batch axes of ports and outputs.
type VmapOptions struct {
	// In maps each batched port to the position of the batch axis in its shape. A negative position
	// counts from the end of the batched shape: -1 is the last axis. All other ports are shared by
	// the elements of the batch.
	In map[string]int
	// Out maps outputs to the position of the batch axis; the default is 0. An output that does not
	// depend on the batch is broadcast along it.
	Out map[string]int
	// Shared names outputs without a batch axis. It is an error if such an output depends on the
	// batch.
	Shared []string
}

// Vmap returns a graph that applies g to each element of a batch of the given size. Ports and
// outputs keep their names. A state whose update depends on the batch needs an axis in
// [VmapOptions.In]; the update has the axis at the same position. The error is of kind [ir.ErrName]
// for an unknown port or output, and [ir.ErrAttr] for an axis out of range or an invalid size. It
// is of kind [ir.ErrShape] for a state or output that depends on the batch but has no axis, and
// [ir.ErrNoRule] for an op that cannot be batched.
func Vmap(g *ir.Graph, size ir.Dim, o VmapOptions) (*ir.Graph, error) {
	if err := checkGraph("vmap", g); err != nil {
		return nil, err
	}
	v := &vmap{g: g, size: size, options: o, axes: make([]int, len(g.Ports()))}
	if err := v.checkNames(); err != nil {
		return nil, wrap("vmap", err)
	}
	for i, p := range g.Ports() {
		v.axes[i] = -1
		if a, ok := o.In[p.Name]; ok {
			a, err := axisPosition(a, p.Value.Rank(), p.Name)
			if err != nil {
				return nil, wrap("vmap", err)
			}
			v.axes[i] = a
		}
	}
	batched, err := ir.Transform(g.Name(), v.build)
	return batched, wrap("vmap", err)
}

type vmap struct {
	g       *ir.Graph
	size    ir.Dim
	options VmapOptions
	axes    []int // by port
}

// axisPosition returns the position from the front of a new axis in a shape of the given rank.
func axisPosition(axis, rank int, name string) (int, error) {
	at := axis
	if at < 0 {
		at += rank + 1
	}
	if at < 0 || at > rank {
		return 0, ir.Attrf("batch axis of %q is %d; it must be from %d to %d", name, axis, -rank-1, rank)
	}
	return at, nil
}

func (v *vmap) checkNames() error {
	if !v.size.Valid() {
		return ir.Attrf("batch size is %s; it must be 0 or greater", v.size)
	}
	for name := range v.options.In {
		if portIndex(v.g, name) < 0 {
			return v.g.UnknownPort(name)
		}
	}
	outputs := append([]string(nil), v.options.Shared...)
	for name := range v.options.Out {
		outputs = append(outputs, name)
	}
	for _, name := range outputs {
		if _, ok := v.g.Output(name); !ok {
			return v.g.UnknownOutput(name)
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

// outAxis returns the position of the batch axis that an output must have, -1 for none, given the
// position in its value.
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
			return 0, ir.Shapef("output %q depends on the batch; a shared output must not", o.Name)
		}
		return -1, nil
	}
	return axisPosition(v.options.Out[o.Name], o.Value.Rank(), o.Name)
}
