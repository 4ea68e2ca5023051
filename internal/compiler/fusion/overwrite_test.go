package fusion_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// A softmax between two products overwrites its scores, unless something reads them later or
// it reads them at other positions than it writes.
func TestRowsReuseDeadBuffers(t *testing.T) {
	for name, c := range map[string]struct {
		between func(b *ir.Builder, scores ir.Value) ir.Value
		want    bool
	}{
		"a softmax": {func(b *ir.Builder, s ir.Value) ir.Value { return ops.Softmax(b, s, 1) }, true},
		"scores that the host reads": {func(b *ir.Builder, s ir.Value) ir.Value {
			b.Output("scores", s)
			return ops.Softmax(b, s, 1)
		}, false},
		"scores that are read later": {func(b *ir.Builder, s ir.Value) ir.Value {
			p := ops.Softmax(b, s, 1)
			return ops.Add(b, ops.MatMul(b, p, p), s)
		}, false},
		"scores that are added turned": {func(b *ir.Builder, s ir.Value) ir.Value {
			return ops.Add(b, ops.Softmax(b, s, 1), ops.Transpose(b, s, 1, 0))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := build(t, func(b *ir.Builder) {
				x := b.Input("x", ir.F32, ir.Dims(128, 128)...)
				b.Output("y", ops.MatMul(b, c.between(b, ops.MatMul(b, x, x)), x))
			})
			p := groupsOnTensorCores(t, g)
			if found := overwrites(p); found != c.want {
				t.Errorf("rows overwrite an operand: %t, not %t\n%s", found, c.want, p)
			}
			if slices.ContainsFunc(groupsWith(t, g, fusion.DefaultOptions).Items, func(item fusion.Item) bool {
				return slices.ContainsFunc(item.Writes(), func(w *fusion.Tensor) bool { return slices.Contains(item.Reads(), w) })
			}) {
				t.Error("a value is overwritten on a target that is not for it")
			}
		})
	}
}

// A row-wise group does not overwrite a value in which another operand lies: results of attention, stored in their
// concatenation, which it reads at other positions than it writes.
func TestRowsKeepBuffersInWhichOperandsLie(t *testing.T) {
	for name, c := range map[string]struct {
		by   func(b *ir.Builder, heads ir.Value) ir.Value
		want bool
	}{
		"the concatenation alone":      {func(b *ir.Builder, heads ir.Value) ir.Value { return ops.Ones(b, ir.F32, ir.Dims(128, 64)...) }, true},
		"the concatenation and a part": {func(b *ir.Builder, heads ir.Value) ir.Value { return ops.Reverse(b, heads, 1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := groupsOnTensorCores(t, build(t, func(b *ir.Builder) {
				attend := func(name string) ir.Value {
					q := b.Input(name, ir.F32, ir.Dims(2, 4, 64, 16)...)
					heads := ops.Attention(b, q, q, q, ir.Value{}, ops.AttentionAttrs{})
					return ops.Reshape(b, ops.Transpose(b, heads, 0, 2, 1, 3), ir.Dims(128, 64)...)
				}
				first, second := attend("a"), attend("b")
				joined := ops.Concatenate(b, 1, first, second)
				sum := ops.ReduceSum(b, ops.MatMul(b, joined, b.Param("u", ir.F32, ir.Dims(128, 128)...)))
				rows := ops.Softmax(b, ops.Mul(b, joined, ops.BroadcastTo(b, sum, joined.Shape())), 1)
				rows = ops.Mul(b, rows, ops.Tile(b, c.by(b, second), 1, 2))
				b.Output("y", ops.MatMul(b, rows, b.Param("w", ir.F32, ir.Dims(128, 64)...)))
			}))
			if got := overwrites(p); got != c.want {
				t.Errorf("rows overwrite an operand: %t, not %t\n%s", got, c.want, p)
			}
		})
	}
}

// A row-wise group does not overwrite an operand that the result does not depend on: the store
// would not wait for the load. The last sum of a row depends on it and overwrites it.
func TestRowsReuseOnlyBuffersTheyDependOn(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		in := func(name string) ir.Value { return b.Input(name, ir.F32, ir.Dims(128, 128)...) }
		half := func(x ir.Value) ir.Value { return ops.Convert(b, x, ir.BF16) }
		product := func(x ir.Value) ir.Value { return ops.MatMul(b, x, x) }
		wide := product(in("wide"))
		float := func(x ir.Value) ir.Value { return ops.Convert(b, product(half(x)), ir.F32) }
		sum := ops.Add(b, float(in("one")), float(in("other")))
		rows := ops.Add(b, wide, ops.Softmax(b, sum, 1))
		b.Output("y", ops.MatMul(b, product(rows), sum))
	})
	p := groupsOnTensorCores(t, g)
	var placed []ir.Op
	for _, item := range p.Items {
		g := item.(*fusion.Group)
		for _, m := range g.Members {
			if slices.ContainsFunc(m.Store, func(s *fusion.Tensor) bool { return s != nil && slices.Contains(g.Reads(), s) }) {
				placed = append(placed, m.Node.Op())
			}
		}
	}
	if len(placed) != 1 || placed[0] != ops.OpAdd {
		t.Errorf("%v lie where an operand lay, not the rows alone\n%s", placed, p)
	}
}

// With tensor cores each sum of a residual stream is stored by the row-wise group that reads it:
// recomputed by all readers, the last would read all previous sums.
func TestSumsOfAStreamAreStoredWithTheirRows(t *testing.T) {
	const layers = 4
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(128, 64)...)
		for i := range layers {
			w := b.Param(string(rune('a'+i)), ir.BF16, ir.Dims(64, 64)...)
			rows := ops.Convert(b, ops.Softmax(b, x, 1), ir.BF16)
			x = ops.Add(b, x, ops.Convert(b, ops.MatMul(b, rows, w), ir.F32))
		}
		b.Output("y", ops.Softmax(b, x, 1))
	})
	p := groupsOnTensorCores(t, g)
	if len(p.Items) != 2*layers+1 {
		t.Errorf("%d groups, not one for each product and one for the rows around it\n%s", len(p.Items), p)
	}
	for _, item := range p.Items {
		if g := item.(*fusion.Group); len(g.Reads()) > 2 {
			t.Errorf("%s reads %d values", g.Name(), len(g.Reads()))
		}
	}
}

// overwrites reports whether a group of rows stores a result in the buffer of an operand.
func overwrites(p *fusion.Partition) bool {
	return slices.ContainsFunc(p.Items, func(item fusion.Item) bool {
		g, ok := item.(*fusion.Group)
		return ok && g.Kind == fusion.ReduceKind && slices.ContainsFunc(g.Writes(), func(w *fusion.Tensor) bool { return slices.Contains(g.Reads(), w) })
	})
}

func groupsOnTensorCores(t *testing.T, g *ir.Graph) *fusion.Partition {
	t.Helper()
	o := fusion.DefaultOptions
	o.TensorCores = true
	return groupsWith(t, g, o)
}
