package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestCachedAttentionOfFilledPositions compares attention over a cache with the formula in float64, for one query
// and for several tiles of them, over several blocks of keys, which are split over the cores or not. What
// follows the filled positions is NaN: it must not be read.
func TestCachedAttentionOfFilledPositions(t *testing.T) {
	const heads, groups, depth, width, room = 4, 2, 16, 12, 1100
	for _, c := range []struct {
		queries, past int
		attrs         ops.CachedAttentionAttrs
	}{
		{1, 0, ops.CachedAttentionAttrs{Scale: 2}},
		{1, 1050, ops.CachedAttentionAttrs{Scale: 2}},
		{2, 600, ops.CachedAttentionAttrs{Scale: 2, Window: 300, Softcap: 1.5}},
		{70, 500, ops.CachedAttentionAttrs{Scale: 2}},
		{70, 0, ops.CachedAttentionAttrs{Scale: 2, Window: 9}},
	} {
		q, k, v := random(heads*c.queries*depth), random(groups*room*depth), random(groups*room*width)
		for g := range groups {
			for j := c.past + c.queries; j < room; j++ {
				for i := range depth {
					k[(g*room+j)*depth+i] = float32(math.NaN())
				}
				for i := range width {
					v[(g*room+j)*width+i] = float32(math.NaN())
				}
			}
		}
		got := outputs(t, graph(t, func(b *ir.Builder) {
			input := func(name string, dims ...int) ir.Value { return b.Input(name, ir.F32, ir.Dims(dims...)...) }
			q := input("q", heads, c.queries, depth)
			cache := ops.KVCache{K: input("k", groups, room, depth), V: input("v", groups, room, width), Past: b.Input("past", ir.I32)}
			b.Output("y", ops.CachedAttention(b, q, cache, c.attrs))
		}), map[string]native.Tensor{
			"q": native.Float32s(q, heads, c.queries, depth), "k": native.Float32s(k, groups, room, depth), "v": native.Float32s(v, groups, room, width),
			"past": native.Int32(int32(c.past)),
		})["y"]
		name := fmt.Sprintf("%d queries after %d positions", c.queries, c.past)
		for h := range heads {
			for i := range c.queries {
				g, row := h/(heads/groups), h*c.queries+i
				want := attended(c.attrs, c.past+i, q[row*depth:][:depth], k[g*room*depth:], v[g*room*width:], width)
				for f := range width {
					near(t, name, row*width+f, got[row*width+f], want[f], 1e-5)
				}
			}
		}
	}
}

// TestCachedAttentionAfterProductOfBF16 has queries that are a product in bf16, whose kernels attention in f32 must not use.
func TestCachedAttentionAfterProductOfBF16(t *testing.T) {
	const heads, queries, depth, room, in = 2, 8, 16, 40, 128
	attrs := ops.CachedAttentionAttrs{Scale: 0.5}
	x, w := native.Zeros(ir.BF16, heads*queries, in), native.Zeros(ir.BF16, in, depth)
	for i := range heads * queries * in { // 1 is 0x3f80
		if i%3 == 0 {
			x.Data[2*i], x.Data[2*i+1] = 0x80, 0x3f
		}
	}
	for i := range in * depth { // 1/64 is 0x3c80
		if i*31%7 > 3 {
			w.Data[2*i], w.Data[2*i+1] = 0x80, 0x3c
		}
	}
	k, v, q := random(heads*room*depth), random(heads*room*depth), make([]float32, heads*queries*depth)
	for i := range q {
		for l := range in {
			if (i/depth*in+l)%3 == 0 && (l*depth+i%depth)*31%7 > 3 {
				q[i] += 1. / 64
			}
		}
	}
	everyLevel(t, func(t *testing.T) {
		got := outputs(t, graph(t, func(b *ir.Builder) {
			input := func(name string, dims ...int) ir.Value { return b.Input(name, ir.F32, ir.Dims(dims...)...) }
			x, w := b.Input("x", ir.BF16, ir.Dims(heads*queries, in)...), b.Input("w", ir.BF16, ir.Dims(in, depth)...)
			q := ops.MatMul(b, ops.Convert(b, x, ir.F32), ops.Convert(b, w, ir.F32))
			cache := ops.KVCache{K: input("k", heads, room, depth), V: input("v", heads, room, depth), Past: b.Input("past", ir.I32)}
			b.Output("y", ops.CachedAttention(b, ops.Reshape(b, q, ir.Dims(heads, queries, depth)...), cache, attrs))
		}), map[string]native.Tensor{
			"x": x, "w": w, "k": native.Float32s(k, heads, room, depth), "v": native.Float32s(v, heads, room, depth), "past": native.Int32(room - queries),
		})["y"]
		for row := range heads * queries {
			h := row / queries
			want := attended(attrs, room-queries+row%queries, q[row*depth:][:depth], k[h*room*depth:], v[h*room*depth:], depth)
			for f := range depth {
				near(t, "attention", row*depth+f, got[row*depth+f], want[f], 1e-5)
			}
		}
	})
}

// TestCachedAttentionKeepsNaNBeforeMinusInfinity has scores of NaN and -Inf.
func TestCachedAttentionKeepsNaNBeforeMinusInfinity(t *testing.T) {
	got := outputs(t, graph(t, func(b *ir.Builder) {
		input := func(name string, dims ...int) ir.Value { return b.Input(name, ir.F32, ir.Dims(dims...)...) }
		q := input("q", 1, 1, 1)
		cache := ops.KVCache{K: input("k", 1, 2, 1), V: input("v", 1, 2, 1), Past: b.Input("past", ir.I32)}
		b.Output("y", ops.CachedAttention(b, q, cache, ops.CachedAttentionAttrs{Scale: 1}))
	}), map[string]native.Tensor{
		"q": native.Float32s([]float32{1}, 1, 1, 1), "k": native.Float32s([]float32{float32(math.NaN()), float32(math.Inf(-1))}, 1, 2, 1),
		"v": native.Float32s([]float32{1, 2}, 1, 2, 1), "past": native.Int32(1),
	})["y"]
	if y := got[0]; y == y {
		t.Errorf("%v, want NaN", y)
	}
}

// attended returns the attention of a query at a position.
func attended(a ops.CachedAttentionAttrs, at int, q, k, v []float32, width int) []float64 {
	out, total := make([]float64, width), 0.
	for j := range at + 1 {
		if a.Window > 0 && at-j >= a.Window {
			continue
		}
		s := 0.
		for i, x := range q {
			s += float64(x) * float64(k[j*len(q)+i])
		}
		if s *= a.Scale; a.Softcap != 0 {
			s = a.Softcap * math.Tanh(s/a.Softcap)
		}
		w := math.Exp(s)
		total += w
		for f := range out {
			out[f] += w * float64(v[j*width+f])
		}
	}
	for f := range out {
		out[f] /= total
	}
	return out
}
