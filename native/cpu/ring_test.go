package cpu_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestRingAttentionIsAttention over the whole sequence, with its derivative: the sequence is divided
// among ranks, whose heads are grouped.
func TestRingAttentionIsAttention(t *testing.T) {
	const kvHeads, rows, size, width = 2, 3, 4, 5
	for _, c := range []struct {
		ranks, heads int
		a            ops.AttentionAttrs
	}{
		{4, 2, ops.AttentionAttrs{}},
		{4, 4, ops.AttentionAttrs{Causal: true, Scale: 3}},
		{2, 2, ops.AttentionAttrs{Causal: true, Softcap: 2}},
		{1, 2, ops.AttentionAttrs{Causal: true}},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			graph := func(rows int, attend func(b *ir.Builder, q, k, v ir.Value) ir.Value) *ir.Graph {
				g, err := ir.Build("attention", func(b *ir.Builder) {
					q := b.Input("q", ir.F64, ir.Dims(c.heads, rows, size)...)
					k, v := b.Input("k", ir.F64, ir.Dims(kvHeads, rows, size)...), b.Input("v", ir.F64, ir.Dims(kvHeads, rows, width)...)
					b.Output("y", attend(b, q, k, v))
				})
				if err == nil {
					g, err = autodiff.VJP(g)
				}
				if err != nil {
					t.Fatal(err)
				}
				return g
			}
			whole := graph(rows*c.ranks, func(b *ir.Builder, q, k, v ir.Value) ir.Value {
				return ops.Attention(b, q, k, v, ir.Value{}, c.a)
			})
			divided := graph(rows, func(b *ir.Builder, q, k, v ir.Value) ir.Value {
				return parallel.RingAttention(b, q, k, v, ops.MeshAttrs{MeshAxis: "data", Devices: c.ranks}, c.a)
			})
			random := rand.New(rand.NewPCG(3, 4))
			in := map[string]native.Tensor{}
			for _, p := range whole.Ports() {
				dims, _ := p.Value.Shape().Ints()
				x := make([]float64, dims[0]*dims[1]*dims[2])
				for i := range x {
					x[i] = 2 * random.NormFloat64()
				}
				in[p.Name] = native.Float64s(x, dims...)
			}
			want := runAlone(t, whole, in)
			got := runRanks(t, divided, [2]int{c.ranks, 1}, func(rank int) map[string]native.Tensor {
				part := map[string]native.Tensor{}
				for name, x := range in {
					part[name] = rowsOf(x, rank, rows)
				}
				return part
			})
			for name, x := range want {
				for rank := range c.ranks {
					w, y := elementsOf(t, rowsOf(x, rank, rows)), elementsOf(t, got[rank][name])
					for i := range w {
						if !(math.Abs(y[i]-w[i]) <= 1e-12*max(1, math.Abs(w[i]))) {
							t.Fatalf("%s of rank %d, element %d: %v, on one device %v", name, rank, i, y[i], w[i])
						}
					}
				}
			}
		})
	}
}

// rowsOf returns a rank's rows of [heads, rows, width].
func rowsOf(x native.Tensor, rank, rows int) native.Tensor {
	all, _ := x.Float64s()
	heads, n, width := x.Dims[0], x.Dims[1], x.Dims[2]
	var out []float64
	for h := range heads {
		out = append(out, all[(h*n+rank*rows)*width:][:rows*width]...)
	}
	return native.Float64s(out, heads, rows, width)
}

// TestRingAttentionRefuses unsupported options.
func TestRingAttentionRefuses(t *testing.T) {
	mesh := ops.MeshAttrs{MeshAxis: "data", Devices: 2}
	for _, c := range []struct {
		mesh ops.MeshAttrs
		a    ops.AttentionAttrs
		keys int
		kind error
	}{
		{ops.MeshAttrs{Devices: 2}, ops.AttentionAttrs{}, 4, ir.ErrAttr},
		{mesh, ops.AttentionAttrs{Window: 2}, 4, ir.ErrAttr},
		{mesh, ops.AttentionAttrs{Causal: true}, 6, ir.ErrShape},
	} {
		_, err := ir.Build("g", func(b *ir.Builder) {
			k := b.Input("k", ir.F32, ir.Dims(1, c.keys, 2)...)
			b.Output("y", parallel.RingAttention(b, b.Input("q", ir.F32, ir.Dims(1, 4, 2)...), k, k, c.mesh, c.a))
		})
		if !errors.Is(err, c.kind) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	_, err := ir.Build("g", func(b *ir.Builder) {
		b.Output("y", parallel.RingAttention(b, ir.Value{}, ir.Value{}, ir.Value{}, mesh, ops.AttentionAttrs{}))
	})
	if err == nil {
		t.Error("no operands are accepted")
	}
}
