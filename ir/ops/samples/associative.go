package samples

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpAssociativeScan, associativeSamples)
}

func associativeSamples() []ir.Sample {
	graph := func(f func(b *ir.Builder, x, y []ir.Value) []ir.Value, types ...ir.DType) *ir.Graph {
		g, err := ir.Build("combine", func(b *ir.Builder) {
			var scalars []ir.Type
			for _, d := range slices.Concat(types, types) {
				scalars = append(scalars, ir.TypeOf(d))
			}
			v := declare(b, "in", scalars)
			for i, r := range f(b, v[:len(types)], v[len(types):]) {
				b.Output(string(rune('a'+i)), r)
			}
		})
		if err != nil {
			panic(err)
		}
		return g
	}
	// The sum of velocities, in units of that of light.
	velocities := graph(func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		one := ops.OnesLike(b, x[0])
		return []ir.Value{ops.Div(b, ops.Add(b, x[0], y[0]), ops.Add(b, one, ops.Mul(b, x[0], y[0])))}
	}, ir.F32)
	// Maps x → a·x + b, one after the other.
	maps := graph(func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, y[0], x[0]), ops.Add(b, ops.Mul(b, y[0], x[1]), y[1])}
	}, ir.F32, ir.F32)
	// The last of all that are marked.
	marked := graph(func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		return []ir.Value{ops.Or(b, x[0], y[0]), ops.Select(b, y[0], y[1], x[1])}
	}, ir.Bool, ir.I32)
	turns := graph(func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, x[0], y[0])}
	}, ir.C64)
	sample := func(name string, a ops.AssociativeAttrs, g *ir.Graph, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, Subs: []*ir.Graph{g}, In: in}
	}
	some := func(dims ...int) *ir.Array { return draw(3, ir.F32, -0.9, 0.9, dims...) }
	return []ir.Sample{
		sample("rows", ops.AssociativeAttrs{Axis: 1}, velocities, some(2, 5)),
		sample("columns from the end", ops.AssociativeAttrs{Reverse: true}, velocities, some(5, 3)),
		sample("beyond a block", ops.AssociativeAttrs{}, velocities, draw(3, ir.F32, -0.1, 0.1, 1031)),
		sample("one", ops.AssociativeAttrs{}, velocities, some(1)),
		sample("empty", ops.AssociativeAttrs{Axis: 1}, velocities, ir.NewArray(ir.F32, 2, 0)),
		sample("maps", ops.AssociativeAttrs{Axis: 1, Reverse: true}, maps, some(3, 70), some(3, 70)),
		sample("complex", ops.AssociativeAttrs{Axis: 1}, turns, draw(5, ir.C64, -1, 1, 2, 9)),
		sample("marked", ops.AssociativeAttrs{}, marked, ir.Ints(ir.Bool, []int64{0, 1, 0, 0, 1, 0, 0}, 7), draw(4, ir.I32, -9, 9, 7)),
	}
}
