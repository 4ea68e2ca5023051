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
	const kvHeads, rows, size, width = 2, 4, 4, 5
	for _, c := range []struct {
		ranks, heads int
		a            ops.AttentionAttrs
		balanced     bool
		d            ir.DType
	}{
		{4, 2, ops.AttentionAttrs{}, false, ir.F64},
		{4, 4, ops.AttentionAttrs{Causal: true, Scale: 3}, false, ir.F64},
		{2, 2, ops.AttentionAttrs{Causal: true, Softcap: 2}, false, ir.F64},
		{1, 2, ops.AttentionAttrs{Causal: true}, false, ir.F64},
		{4, 4, ops.AttentionAttrs{Causal: true, Scale: 3}, true, ir.F64},
		{3, 2, ops.AttentionAttrs{Causal: true, Softcap: 2}, true, ir.F64},
		{1, 2, ops.AttentionAttrs{Causal: true}, true, ir.F64},
		{8, 2, ops.AttentionAttrs{Causal: true}, false, ir.F32},
		{8, 2, ops.AttentionAttrs{Causal: true}, true, ir.F32},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			graph := func(rows int, attend func(b *ir.Builder, q, k, v ir.Value) ir.Value) *ir.Graph {
				g, err := ir.Build("attention", func(b *ir.Builder) {
					q := b.Input("q", c.d, ir.Dims(c.heads, rows, size)...)
					k, v := b.Input("k", c.d, ir.Dims(kvHeads, rows, size)...), b.Input("v", c.d, ir.Dims(kvHeads, rows, width)...)
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
				attend := parallel.RingAttention
				if c.balanced {
					attend = parallel.BalancedRingAttention
				}
				return attend(b, q, k, v, ops.MeshAttrs{MeshAxis: "data", Devices: c.ranks}, c.a)
			})
			random := rand.New(rand.NewPCG(3, 4))
			in := map[string]native.Tensor{}
			for _, p := range whole.Ports() {
				dims, _ := p.Value.Shape().Ints()
				x := make([]float64, dims[0]*dims[1]*dims[2])
				for i := range x {
					x[i] = 2 * random.NormFloat64()
				}
				in[p.Name] = native.FromArray(ir.Floats(c.d, x, dims...))
			}
			want := runAlone(t, whole, in)
			got := runRanks(t, divided, [2]int{c.ranks, 1}, func(rank int) map[string]native.Tensor {
				part := map[string]native.Tensor{}
				for name, x := range in {
					part[name] = rowsOf(t, x, ownRows(rank, c.ranks, rows, c.balanced))
				}
				return part
			})
			tolerance := map[ir.DType]float64{ir.F64: 1e-12, ir.F32: 5e-5}[c.d]
			for name, x := range want {
				for rank := range c.ranks {
					w, y := elementsOf(t, rowsOf(t, x, ownRows(rank, c.ranks, rows, c.balanced))), elementsOf(t, got[rank][name])
					for i := range w {
						if !(math.Abs(y[i]-w[i]) <= tolerance*max(1, math.Abs(w[i]))) {
							t.Fatalf("%s of rank %d, element %d: %v, on one device %v", name, rank, i, y[i], w[i])
						}
					}
				}
			}
		})
	}
}

// ownRows returns the rows of a rank: neighbours, or two chunks in zigzag order.
func ownRows(rank, ranks, rows int, balanced bool) (out []int) {
	for i := range rows {
		at := rank*rows + i
		if half := rows / 2; balanced && i < half {
			at = rank*half + i
		} else if balanced {
			at = (2*ranks-1-rank)*half + i - half
		}
		out = append(out, at)
	}
	return out
}

// rowsOf returns some rows of [heads, rows, width].
func rowsOf(t *testing.T, x native.Tensor, rows []int) native.Tensor {
	t.Helper()
	all := elementsOf(t, x)
	heads, n, width := x.Dims[0], x.Dims[1], x.Dims[2]
	var out []float64
	for h := range heads {
		for _, row := range rows {
			out = append(out, all[(h*n+row)*width:][:width]...)
		}
	}
	return native.FromArray(ir.Floats(x.DType, out, heads, len(rows), width))
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
	for rows, c := range map[int]struct {
		causal bool
		kind   error
	}{4: {false, ir.ErrAttr}, 3: {true, ir.ErrShape}} {
		_, err := ir.Build("g", func(b *ir.Builder) {
			q := b.Input("q", ir.F32, ir.Dims(1, rows, 2)...)
			b.Output("y", parallel.BalancedRingAttention(b, q, q, q, mesh, ops.AttentionAttrs{Causal: c.causal}))
		})
		if !errors.Is(err, c.kind) {
			t.Errorf("balanced, %d rows: %v", rows, err)
		}
	}
}
