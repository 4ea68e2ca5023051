package nn_test

import (
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// A linear layer of 64 inputs and 3 outputs, and a table of 3 rows, in each storage.
const (
	storedIn, storedOut = 64, 3
	half                = 0x3800 // 0.5 as f16
)

// packedRows returns rows of q8_0 blocks, bytes i%7−3 scaled by 0.5, and the numbers they have.
func packedRows() (packed, numbers *ir.Array) {
	var bytes []byte
	numbers = ir.NewArray(ir.F32, storedOut, storedIn)
	for i := range storedOut * storedIn {
		if i%32 == 0 {
			bytes = binary.LittleEndian.AppendUint16(bytes, half)
		}
		bytes = append(bytes, byte(i%7-3))
		numbers.F[i] = float64(i%7-3) / 2
	}
	list := make([]int64, len(bytes))
	for i, x := range bytes {
		list[i] = int64(x)
	}
	return ir.Ints(ir.U8, list, storedOut, len(bytes)/storedOut), numbers
}

// evaluate returns the results of a graph of x f32[2, 64].
func evaluate(t *testing.T, inputs map[string]*ir.Array, f func(b *ir.Builder, x ir.Value)) []*ir.Array {
	t.Helper()
	g, err := ir.Build("g", func(b *ir.Builder) { f(b, b.Input("x", ir.F32, ir.Dims(2, storedIn)...)) })
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*ir.Array{"x": ir.NewArray(ir.F32, 2, storedIn)}
	for i := range all["x"].F {
		all["x"].F[i] = float64(i%5 - 2)
	}
	maps.Copy(all, inputs)
	out, err := ir.Eval(g, all, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStorage holds layers with weights that are packed, transposed and narrow to plain sums; all
// numbers are exact in each.
func TestStorage(t *testing.T) {
	packed, numbers := packedRows()
	want := ir.NewArray(ir.F32, 2, storedOut)
	for i := range want.F {
		for l := range storedIn {
			want.F[i] += float64((i/storedOut*storedIn+l)%5-2) * numbers.F[i%storedOut*storedIn+l]
		}
	}
	narrow := numbers.Clone()
	narrow.DType = ir.BF16
	ids := ir.Ints(ir.I32, []int64{2, 0}, 2)
	rows := slices.Concat(numbers.F[2*storedIn:], numbers.F[:storedIn])
	for _, c := range []struct {
		how    nn.Storage
		weight *ir.Array
	}{
		{nn.Storage{Format: "q8_0"}, packed},
		{nn.Storage{OutIn: true}, numbers},
		{nn.Storage{OutIn: true, DType: ir.BF16}, narrow},
	} {
		by := func(name string) nn.Storage {
			if name != "table/weight" {
				t.Errorf("asked for %q", name)
			}
			return c.how
		}
		for _, lora := range []bool{false, true} {
			in := map[string]*ir.Array{"table/weight": c.weight, "ids": ids}
			if lora {
				in["linear0/lora_A/weight"], in["linear0/lora_B/weight"] = ir.NewArray(ir.F32, storedIn, 8), ir.NewArray(ir.F32, 8, storedOut)
			}
			out := evaluate(t, in, func(b *ir.Builder, x ir.Value) {
				nn.Stored(b, by, func() {
					b.Output("rows", nn.Embedding(b, b.Input("ids", ir.I32, ir.N(2)), storedOut, storedIn, nn.EmbeddingOptions{Name: "table"}))
					tied := func() {
						b.Output("y", nn.Linear(b, x, storedOut, nn.LinearOptions{Tied: "table/weight", NoBias: true}))
					}
					if lora {
						nn.LoRA(b, nn.LoRAOptions{}, tied)
					} else {
						tied()
					}
				})
			})
			if !slices.Equal(out[0].F, rows) || !slices.Equal(out[1].F, want.F) {
				t.Errorf("%+v, LoRA %t: rows %v and products %v, want %v", c.how, lora, out[0].F[:4], out[1].F, want.F)
			}
		}
	}
}

// TestPackedWeightsAreFrozen takes the gradient by x of a product with packed weights: the row sums of the
// matrix.
func TestPackedWeightsAreFrozen(t *testing.T) {
	packed, numbers := packedRows()
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Param("x", ir.F32, ir.Dims(2, storedIn)...)
		nn.Stored(b, func(string) nn.Storage { return nn.Storage{Format: "q8_0"} }, func() {
			b.Output("loss", ops.ReduceSum(b, nn.Linear(b, x, storedOut, nn.LinearOptions{NoBias: true})))
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := g.Port("linear0/weight"); !p.Options().Frozen {
		t.Error("the packed weight is not frozen")
	}
	d, err := autodiff.Grad(g, "loss", "x")
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(d, map[string]*ir.Array{"x": ir.NewArray(ir.F32, 2, storedIn), "linear0/weight": packed}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range out[len(out)-1].F {
		want := 0.
		for r := range storedOut {
			want += numbers.F[r*storedIn+i%storedIn]
		}
		if got != want {
			t.Fatalf("gradient %d is %v, want %v", i, got, want)
		}
	}
}

// TestFrequencies holds rotations by given angles to those of a base, scaled by the amplitude: the scores
// of queries and keys are those without it times its square.
func TestFrequencies(t *testing.T) {
	run := func(o nn.RopeOptions, scale float64) []float64 {
		g, err := ir.Build("g", func(b *ir.Builder) {
			q := b.Input("q", ir.F32, ir.Dims(2, 3, 4)...)
			b.Output("y", nn.Attend(b, q, q, q, nn.AttentionOptions{Causal: true, Rope: &o, Scale: scale}))
		})
		if err != nil {
			t.Fatal(err)
		}
		q := ir.NewArray(ir.F32, 2, 3, 4)
		for i := range q.F {
			q.F[i] = float64(i*i%7) - 3
		}
		out, err := ir.Eval(g, map[string]*ir.Array{"q": q}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !out[0].Type().Shape.Equal(ir.Dims(3, 8)) {
			t.Fatalf("the result is %v", out[0].Type())
		}
		return out[0].F
	}
	want := run(nn.RopeOptions{Base: 100}, 1)
	for what, got := range map[string][]float64{
		"frequencies": run(nn.RopeOptions{Frequencies: []float64{1, 0.1}}, 1),
		"amplitude":   run(nn.RopeOptions{Frequencies: []float64{1, 0.1}, Amplitude: 2}, 0.25),
	} {
		for i := range want {
			if d := got[i] - want[i]; d > 1e-5 || d < -1e-5 {
				t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			}
		}
	}
	other := run(nn.RopeOptions{Base: 1e4}, 1)
	if slices.Equal(other, want) {
		t.Error("another base gives the same")
	}
}

// TestExpertsOfFewTokens holds inference that reads the chosen experts alone, and packed experts, to dispatch to all of them.
func TestExpertsOfFewTokens(t *testing.T) {
	const experts, hidden, format = 6, 32, "q4_0"
	rng := rand.New(rand.NewPCG(1, 2))
	in := map[string]*ir.Array{"moe0/gate/weight": ir.NewArray(ir.F32, storedIn, experts)}
	for i := range in["moe0/gate/weight"].F {
		in["moe0/gate/weight"].F[i] = rng.Float64() - 0.5
	}
	packed := map[string]*ir.Array{"moe0/gate/weight": in["moe0/gate/weight"]}
	for name, dims := range map[string][2]int{"moe0/experts/w1": {storedIn, 2 * hidden}, "moe0/experts/w2": {hidden, storedIn}} {
		width, rows := dims[0], dims[1]
		bytes, numbers := ir.NewArray(ir.U8, experts, rows, width/32*18), ir.NewArray(ir.F32, experts, width, rows)
		for row := range experts * rows {
			for block := range width / 32 {
				at := (row*(width/32) + block) * 18
				bytes.I[at], bytes.I[at+1] = half&255, half>>8 // the scale, and then 16 bytes of two numbers each
				for i := range 32 {
					q := rng.Int64N(16)
					bytes.I[at+2+i%16] |= q << (i / 16 * 4)
					numbers.F[(row/rows*width+block*32+i)*rows+row%rows] = float64(q-8) / 2
				}
			}
		}
		packed[name], in[name] = bytes, numbers
	}
	run := func(in map[string]*ir.Array, mode func(b *ir.Builder)) []*ir.Array {
		return evaluate(t, in, func(b *ir.Builder, x ir.Value) {
			mode(b)
			y, loss := nn.MoE(b, x, experts, nn.MoEOptions{Hidden: hidden})
			b.Output("y", y)
			b.Output("loss", loss)
		})
	}
	want := run(in, nn.Train)
	for name, got := range map[string][]*ir.Array{
		"inference": run(in, nn.Infer),
		"packed": evaluate(t, packed, func(b *ir.Builder, x ir.Value) {
			by := func(name string) nn.Storage {
				if name == "moe0/gate/weight" {
					return nn.Storage{}
				}
				return nn.Storage{Format: format}
			}
			nn.Stored(b, by, func() {
				y, loss := nn.MoE(b, x, experts, nn.MoEOptions{Hidden: hidden})
				b.Output("y", y)
				b.Output("loss", loss)
			})
		}),
	} {
		for k := range want {
			for i, v := range want[k].F {
				if d := math.Abs(got[k].F[i] - v); !(d <= 1e-4*(1+math.Abs(v))) {
					t.Fatalf("%s: element %d of output %d is %v, want %v", name, i, k, got[k].F[i], v)
				}
			}
		}
	}
}
