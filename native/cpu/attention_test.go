package cpu_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// attention is a case with enough queries to be split into blocks; heads share keys.
type attention struct {
	name          string
	queries, keys int
	a             ops.AttentionAttrs
	masked        bool // every seventh key is hidden
}

const (
	attentionHeads, attentionShare = 4, 2
	attentionDepth, attentionWidth = 4, 3
)

var attentions = []attention{
	{"all keys", 1030, 520, ops.AttentionAttrs{Scale: 0.7}, false},
	{"causal", 1030, 1030, ops.AttentionAttrs{Scale: 0.7, Causal: true}, false},
	{"causal and masked", 1030, 1030, ops.AttentionAttrs{Scale: 0.7, Causal: true}, true},
	{"window", 530, 530, ops.AttentionAttrs{Scale: 0.7, Causal: true, Window: 70}, false},
	{"window beyond a block", 530, 530, ops.AttentionAttrs{Scale: 0.7, Causal: true, Window: 300}, false},
	{"window without end", 530, 530, ops.AttentionAttrs{Scale: 0.7, Window: 70}, false},
}

func (x *attention) graph(tb testing.TB) *ir.Graph {
	loss := build(tb, func(b *ir.Builder) {
		in := func(name string, heads, n, d int) ir.Value { return b.Input(name, ir.F32, ir.Dims(heads, n, d)...) }
		q, k := in("q", attentionHeads, x.queries, attentionDepth), in("k", attentionHeads/attentionShare, x.keys, attentionDepth)
		v, dy := in("v", attentionHeads/attentionShare, x.keys, attentionWidth), in("dy", attentionHeads, x.queries, attentionWidth)
		var mask ir.Value
		if x.masked {
			i := ops.Iota(b, ir.I32, 1, ir.Dims(1, x.keys)...)
			mask = ops.Gt(b, ops.Rem(b, i, ops.ConstLike(b, i, 7)), ops.ConstLike(b, i, 0))
			mask = ops.Or(b, mask, ops.Eq(b, i, ops.ConstLike(b, i, 0))) // the first query sees one
		}
		y := ops.Attention(b, q, k, v, mask, x.a)
		b.Output("y", y)
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, dy)))
	})
	g, err := autodiff.ValueAndGrad(loss, "loss", "q", "k", "v")
	return must(tb, g, err)
}

func (x *attention) sees(query, key int) bool {
	return !(x.a.Causal && key > query || x.a.Window > 0 && query-key >= x.a.Window || x.masked && key > 0 && key%7 == 0)
}

// want computes attention and its gradients by the definition, in f64.
func (x *attention) want(in map[string][]float32) map[string][]float64 {
	y, dq, dk, dv := make([]float64, len(in["dy"])), make([]float64, len(in["q"])), make([]float64, len(in["k"])), make([]float64, len(in["v"]))
	k, v := in["k"], in["v"]
	const d, e = attentionDepth, attentionWidth
	row := func(list []float32, head, i, width int, n int) []float32 { return list[(head*n+i)*width:][:width] }
	for head := range attentionHeads {
		for i := range x.queries {
			q, dy := row(in["q"], head, i, d, x.queries), row(in["dy"], head, i, e, x.queries)
			p, dp, sum, mean := make([]float64, x.keys), make([]float64, x.keys), 0.0, 0.0
			for j := range x.keys {
				if x.sees(i, j) {
					p[j] = math.Exp(x.a.Scale * inner(q, row(k, head/attentionShare, j, d, x.keys)))
					dp[j] = inner(dy, row(v, head/attentionShare, j, e, x.keys))
					sum += p[j]
				}
			}
			for j := range x.keys {
				p[j] /= sum
				mean += p[j] * dp[j]
			}
			at := head*x.queries + i
			for j := range x.keys {
				if p[j] == 0 {
					continue
				}
				from, ds := head/attentionShare*x.keys+j, x.a.Scale*p[j]*(dp[j]-mean)
				for c := range e {
					y[at*e+c] += p[j] * float64(v[from*e+c])
					dv[from*e+c] += p[j] * float64(dy[c])
				}
				for c := range d {
					dq[at*d+c] += ds * float64(k[from*d+c])
					dk[from*d+c] += ds * float64(q[c])
				}
			}
		}
	}
	return map[string][]float64{"y": y, autodiff.GradName("q"): dq, autodiff.GradName("k"): dk, autodiff.GradName("v"): dv}
}

func inner(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// TestAttentionInBlocks compares attention in blocks of queries, the last of which is short, with
// the definition.
func TestAttentionInBlocks(t *testing.T) {
	for _, x := range attentions {
		g := x.graph(t)
		in, inputs := map[string][]float32{}, map[string]native.Tensor{}
		for _, port := range g.Ports() {
			dims, _ := port.Value.Shape().Ints()
			in[port.Name] = random(dims[0] * dims[1] * dims[2])
			inputs[port.Name] = native.Float32s(in[port.Name], dims...)
		}
		want := x.want(in)
		t.Run(x.name, func(t *testing.T) {
			everyLevel(t, func(t *testing.T) {
				got := outputs(t, ir.Entry{Name: "run", Graph: g}, inputs)
				for name, list := range want {
					for i, w := range list {
						near(t, name, i, got[name][i], w, 2e-5)
					}
				}
			})
		})
	}
}

// TestWindowsOfAttentionTakeLittleMemory checks that only the scores of a block are in memory:
// all of them would take 64 MiB. Each worker has a block.
func TestWindowsOfAttentionTakeLittleMemory(t *testing.T) {
	if !cpu.Alone(t, "GOMAXPROCS=2") {
		return
	}
	before := heap()
	p := compileGraphs(t, ir.Entry{Name: "run", Graph: longAttention(t, ops.AttentionAttrs{Causal: true, Window: 256}, 1)})
	if kept := heap() - before; kept > 16<<20 {
		t.Errorf("%d MiB are kept", kept>>20)
	}
	runBound(t, bindAny(t, p))
}

// longAttention returns an attention over 4096 positions of 64 numbers.
func longAttention(tb testing.TB, a ops.AttentionAttrs, heads int) *ir.Graph {
	return build(tb, func(b *ir.Builder) {
		in := func(name string) ir.Value { return b.Input(name, ir.F32, ir.Dims(heads, 4096, 64)...) }
		b.Output("y", ops.Attention(b, in("q"), in("k"), in("v"), ir.Value{}, a))
	})
}

// BenchmarkAttention reports the time of causal attention relative to full attention, and that
// of a window of 256: they compute a half and a sixteenth of the scores.
func BenchmarkAttention(b *testing.B) {
	var steps []native.Bound
	for _, a := range []ops.AttentionAttrs{{}, {Causal: true}, {Causal: true, Window: 256}} {
		steps = append(steps, bindAny(b, compileGraphs(b, ir.Entry{Name: "run", Graph: longAttention(b, a, 2)})))
	}
	best := bestOf(b, steps...)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(best[0]/1e6, "ms-all")
	b.ReportMetric(best[1]/best[0], "x-all-causal")
	b.ReportMetric(best[2]/best[0], "x-all-window")
}

// TestMaskedScoresTakeNoLonger takes the exponentials and sigmoids of numbers for which they round to 0, as a mask makes of scores,
// and of numbers near 0: a processor takes twenty times as long where a result underflows.
func TestMaskedScoresTakeNoLonger(t *testing.T) {
	const n = 1 << 15
	for name, f := range map[string]func(b *ir.Builder, x ir.Value) ir.Value{"exp": ops.Exp, "expm1": ops.Expm1, "sigmoid": ops.Sigmoid} {
		for _, d := range []ir.DType{ir.F32, ir.F64} {
			least := func(number float64) float64 {
				p := compileGraphs(t, ir.Entry{Name: "run", Graph: build(t, func(b *ir.Builder) {
					b.Output("y", f(b, b.Input("x", d, ir.N(n))))
				})})
				x := ir.NewArray(d, n)
				for i := range x.F {
					x.F[i] = number
				}
				step := bind(t, p, "run", map[string]native.Tensor{"x": native.FromArray(x)}, map[string]native.Tensor{"y": native.Zeros(d, n)})
				ms := timed(t, step)
				for range 50 {
					ms = min(ms, timed(t, step))
				}
				return ms
			}
			if near, far := least(-1), least(-1e30); far > 5*near {
				t.Errorf("%s of %s: %.3f ms of numbers near 0, %.3f of numbers far below", name, d, near, far)
			}
		}
	}
}
