package fusion_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestAttentionIsStoredAsRead checks the order of the axes in which the result of attention, of 2 examples with 4
// heads, is stored: that in which it is read, unless the host, control flow or another order reads it too.
func TestAttentionIsStoredAsRead(t *testing.T) {
	byPosition := func(b *ir.Builder, heads ir.Value) ir.Value {
		return ops.Reshape(b, ops.Transpose(b, heads, 0, 2, 1, 3), ir.Dims(128, 64)...)
	}
	project := func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.MatMul(b, x, b.Param("w", ir.F32, ir.Dims(64, 64)...))
	}
	for name, c := range map[string]struct {
		use  func(b *ir.Builder, heads ir.Value) ir.Value
		want []int
	}{
		"a product of positions": {func(b *ir.Builder, h ir.Value) ir.Value { return project(b, byPosition(b, h)) }, []int{4096, 16, 64, 1}},
		"a product of heads": {func(b *ir.Builder, h ir.Value) ir.Value {
			return ops.MatMul(b, h, b.Param("w", ir.F32, ir.Dims(16, 16)...))
		}, nil},
		"positions, and the host": {func(b *ir.Builder, h ir.Value) ir.Value {
			b.Output("heads", h)
			return project(b, byPosition(b, h))
		}, nil},
		"positions, and a loop": {func(b *ir.Builder, h ir.Value) ir.Value {
			sums, _ := ops.Scan(b, ops.Loop{Carries: []ir.Value{h}, Length: ir.N(3), Body: func(b *ir.Builder, _, carries, _ []ir.Value) (next, _ []ir.Value) {
				return []ir.Value{ops.Sin(b, carries[0])}, nil
			}})
			return ops.Add(b, ops.ReduceSum(b, sums[0]), ops.ReduceSum(b, project(b, byPosition(b, h))))
		}, nil},
		"two orders": {func(b *ir.Builder, h ir.Value) ir.Value {
			other := ops.Reshape(b, ops.Transpose(b, h, 2, 0, 1, 3), ir.Dims(128, 64)...)
			return ops.Add(b, project(b, byPosition(b, h)), ops.MatMul(b, other, b.Param("u", ir.F32, ir.Dims(64, 64)...)))
		}, nil},
		"columns": {func(b *ir.Builder, h ir.Value) ir.Value {
			return project(b, ops.Reshape(b, ops.Transpose(b, h, 0, 1, 3, 2), ir.Dims(128, 64)...))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := build(t, func(b *ir.Builder) {
				in := func(name string) ir.Value { return b.Input(name, ir.F32, ir.Dims(2, 4, 64, 16)...) }
				b.Output("y", c.use(b, ops.Attention(b, in("q"), in("k"), in("v"), ir.Value{}, ops.AttentionAttrs{})))
			})
			for _, tensorCores := range []bool{true, false} {
				o := fusion.DefaultOptions
				o.TensorCores = tensorCores
				var got []int
				if l := attended(t, groupsWith(t, g, o)).Layout; l != nil {
					got = l.Strides
				}
				want := c.want
				if !tensorCores {
					want = nil
				}
				if !slices.Equal(got, want) {
					t.Errorf("tensor cores %t: strides are %v, not %v", tensorCores, got, want)
				}
			}
		})
	}
}

// TestAttentionIsStoredInConcatenations checks where two results of attention, of 2 examples with 4 heads, are stored in
// the value that joins them.
func TestAttentionIsStoredInConcatenations(t *testing.T) {
	type values = []ir.Value
	rows := func(b *ir.Builder, heads ir.Value) ir.Value {
		return ops.Reshape(b, ops.Transpose(b, heads, 0, 2, 1, 3), ir.Dims(128, 64)...)
	}
	padded := func(b *ir.Builder, x ir.Value, low, high int) ir.Value {
		return ops.Pad(b, x, ops.Const(b, ir.F32, 0), []int{0, low}, []int{0, high}, []int{0, 0})
	}
	joined := func(b *ir.Builder, h values) ir.Value { return ops.Concatenate(b, 1, rows(b, h[0]), rows(b, h[1])) }
	for name, c := range map[string]struct {
		join func(b *ir.Builder, h values) ir.Value
		want bool
	}{
		"a concatenation": {joined, true},
		"a sum of padded values": {func(b *ir.Builder, h values) ir.Value {
			return ops.Add(b, padded(b, rows(b, h[1]), 64, 0), padded(b, rows(b, h[0]), 0, 64))
		}, true},
		"a sum of values in one place": {func(b *ir.Builder, h values) ir.Value {
			return ops.Add(b, ops.Add(b, padded(b, rows(b, h[0]), 0, 64), padded(b, rows(b, h[1]), 0, 64)), padded(b, rows(b, h[0]), 64, 0))
		}, false},
		"a sum of values that overlap": {func(b *ir.Builder, h values) ir.Value {
			return ops.Add(b, padded(b, rows(b, h[0]), 0, 32), padded(b, rows(b, h[1]), 32, 0))
		}, false},
		"a sum with a gap": {func(b *ir.Builder, h values) ir.Value {
			return ops.Add(b, padded(b, rows(b, h[0]), 0, 80), padded(b, rows(b, h[1]), 80, 0))
		}, false},
		"twice the same": {func(b *ir.Builder, h values) ir.Value {
			return ops.Concatenate(b, 1, rows(b, h[0]), rows(b, h[0]))
		}, false},
		"a concatenation that is rounded": {func(b *ir.Builder, h values) ir.Value {
			return ops.Convert(b, ops.Convert(b, joined(b, h), ir.BF16), ir.F32)
		}, false},
		"a result that the host reads": {func(b *ir.Builder, h values) ir.Value {
			b.Output("heads", h[0])
			return joined(b, h)
		}, false},
		"a result, and one that is computed from it": {func(b *ir.Builder, h values) ir.Value {
			k := b.Input("k", ir.F32, ir.Dims(2, 4, 64, 16)...)
			return joined(b, values{h[0], ops.Attention(b, k, k, h[0], ir.Value{}, ops.AttentionAttrs{})})
		}, false},
		"parts of heads": {func(b *ir.Builder, h values) ir.Value {
			part := func(x ir.Value) ir.Value { return ops.Reshape(b, x, ir.Dims(256, 32)...) }
			return ops.Concatenate(b, 1, part(h[0]), part(h[1]))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := build(t, func(b *ir.Builder) {
				in := func(name string) ir.Value { return b.Input(name, ir.F32, ir.Dims(2, 4, 64, 16)...) }
				attend := func(q string) ir.Value {
					return ops.Attention(b, in(q), in(q+"k"), in(q+"v"), ir.Value{}, ops.AttentionAttrs{})
				}
				y := c.join(b, values{attend("a"), attend("b")})
				b.Output("y", ops.MatMul(b, y, b.Param("w", ir.F32, y.Shape()[1], ir.N(64))))
			})
			o := fusion.DefaultOptions
			o.TensorCores = true
			if got := attended(t, groupsWith(t, g, o)).Outer != nil; got != c.want {
				t.Errorf("stored within the value that joins them: %t, not %t\n%s", got, c.want, groupsWith(t, g, o))
			}
		})
	}
}

// attended returns the result of the attention of a partition.
func attended(t *testing.T, p *fusion.Partition) *fusion.Tensor {
	t.Helper()
	for _, item := range p.Items {
		if g, ok := item.(*fusion.Group); ok && g.Kind == fusion.AttentionKind {
			return g.Writes()[0]
		}
	}
	t.Fatalf("no attention\n%s", p)
	return nil
}
