package autodiff_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/irtest"
	kernel "github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// textPrinter prints kernels in the text form of the loop IR.
type textPrinter struct{ dialect dtype.Dialect }

func (p textPrinter) Dialect() dtype.Dialect               { return p.dialect }
func (textPrinter) Print(k *kernel.Kernel) (string, error) { return k.String(), nil }

// peak returns the bytes that a plan of the graph allocates for values within a run.
func peak(t *testing.T, g *ir.Graph) int {
	t.Helper()
	return peakOn(t, g, plan.WebGPU())
}

func peakOn(t *testing.T, g *ir.Graph, target plan.Target) int {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(m, target, textPrinter{target.Dialect})
	if err != nil {
		t.Fatal(err)
	}
	bytes := 0
	for _, b := range p.Buffers {
		if b.Kind == plan.TempBuffer {
			bytes += b.Bytes
		}
	}
	return bytes
}

// policies are all kinds of policy, by a word for each.
func policies() map[string]autodiff.Policy {
	return map[string]autodiff.Policy{
		"nothing": autodiff.SaveNothing(), "products": autodiff.SaveProducts(), "least": autodiff.SaveMinCut(),
		"within 1 MiB": autodiff.SaveWithin(1 << 20), "exp": autodiff.SaveOps(ops.OpExp), "labels": autodiff.SaveLabels("h?"),
	}
}

// stepOf returns the training step of a loss, with Adam.
func stepOf(t *testing.T, loss *ir.Graph, keep autodiff.Policy) *ir.Graph {
	t.Helper()
	s, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Policy: keep})
	return must(t, s, err)
}

// TestCheckpointsOfATransformerTakeLittleMemory compares the planned memory of training steps of 24
// layers.
func TestCheckpointsOfATransformerTakeLittleMemory(t *testing.T) {
	size := irtest.GPT{Vocab: 65, Context: 64, Width: 64, Heads: 4, Blocks: 24, Batch: 32}
	loss, err := size.Loss()
	must(t, loss, err)
	all := peak(t, stepOf(t, loss, nil))
	for name, c := range map[string]struct {
		keep autodiff.Policy
		most float64 // relative to the step without checkpoints
	}{
		"least": {autodiff.SaveMinCut(), 0.25}, "within 24 MiB": {autodiff.SaveWithin(24 << 20), 0.45},
		"products": {autodiff.SaveProducts(), 0.5},
	} {
		part := float64(peak(t, stepOf(t, loss, c.keep))) / float64(all)
		t.Logf("%s: %.1f %% of %d MiB", name, 100*part, all>>20)
		if part > c.most {
			t.Errorf("%s: %.3f of the memory without, want at most %v", name, part, c.most)
		}
	}
}

// chain is a network of layers of x ← x + gelu(x·w)·v, each under a Checkpoint or
// not, with labels on what passes between them.
func chain(t *testing.T, layers int, checkpoint bool) *ir.Graph {
	return build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(256, 64)...)
		for i := range layers {
			w := b.Param("w"+strconv.Itoa(i), ir.F32, ir.Dims(64, 256)...)
			v := b.Param("v"+strconv.Itoa(i), ir.F32, ir.Dims(256, 64)...)
			layer := func(b *ir.Builder, in []ir.Value) []ir.Value {
				h := ops.MatMul(b, ops.Gelu(b, ops.MatMul(b, ops.Softmax(b, in[0], -1), in[1])), in[2])
				b.Label("h" + strconv.Itoa(i%10))
				defer b.Label("")
				return []ir.Value{ops.Add(b, in[0], h)}
			}
			if checkpoint {
				x = autodiff.Checkpoint(b, []ir.Value{x, w, v}, layer)[0]
			} else {
				x = layer(b, []ir.Value{x, w, v})[0]
			}
		}
		b.Output("loss", ops.Mean(b, ops.Mul(b, x, x)))
	})
}

func TestCheckpointsByHandAndByLabelTakeLittleMemory(t *testing.T) {
	all := peak(t, stepOf(t, chain(t, 24, false), nil))
	byHand := peak(t, stepOf(t, chain(t, 24, true), nil))
	byLabel := peak(t, stepOf(t, chain(t, 24, false), autodiff.SaveLabels("h?")))
	t.Logf("%d KiB without, %d by hand, %d by label", all>>10, byHand>>10, byLabel>>10)
	if byHand*100 > all*45 || byLabel*100 > all*45 {
		t.Error("more than 45 % of the memory without")
	}
}

// TestCheckpointsNeverTakeMoreMemory allows for the place of one value: where values lie in the buffers decides
// such differences, not which are kept.
func TestCheckpointsNeverTakeMoreMemory(t *testing.T) {
	const place = 256
	for name, loss := range memoryModels(t) {
		t.Run(name, func(t *testing.T) {
			all := peak(t, stepOf(t, loss, nil))
			for name, keep := range policies() {
				if part := peak(t, stepOf(t, loss, keep)); part > all+place {
					t.Errorf("%s: %d bytes, %d without", name, part, all)
				}
			}
		})
	}
}

// memoryModels are training jobs of several kinds, small enough to compile often.
func memoryModels(t *testing.T) map[string]*ir.Graph {
	out := map[string]*ir.Graph{"chain": chain(t, 6, false), "one layer": chain(t, 1, false), "by hand": chain(t, 6, true)}
	loss, err := irtest.GPT{Vocab: 65, Context: 32, Width: 32, Heads: 2, Blocks: 3, Batch: 4}.Loss()
	out["transformer"] = must(t, loss, err)
	out["perceptron"] = build(t, func(b *ir.Builder) {
		h := b.Input("x", ir.F32, ir.Dims(512, 32)...)
		for _, w := range []string{"w1", "w2", "w3", "w4"} {
			h = ops.Tanh(b, ops.MatMul(b, h, b.Param(w, ir.F32, ir.Dims(32, 32)...)))
		}
		b.Output("loss", ops.Mean(b, ops.Mul(b, h, h)))
	})
	return out
}

// TestCheckpointsChangeNoGradient compares gradients, and second derivatives
// through them, with those that keep everything.
func TestCheckpointsChangeNoGradient(t *testing.T) {
	for name, m := range models {
		g, in := m.graph(t, ir.N(4))
		for i, p := range g.Ports() {
			if p.Kind == ir.ParamPort {
				in[autodiff.TangentName(p.Name)] = wave(float64(i), in[p.Name].Dims...)
			}
		}
		whole, err := autodiff.HVP(g, "loss")
		want := eval(t, must(t, whole, err), in)
		for policy, keep := range policies() {
			h, err := autodiff.HVPWith(g, "loss", autodiff.Options{Policy: keep})
			got := eval(t, must(t, h, err), in)
			for output, w := range want {
				checkFloats(t, name+", "+policy+", "+output, got[output], w.F, 1e-12)
			}
		}
	}
}

func TestCheckpointIsTheFunctionToEveryOrder(t *testing.T) {
	f := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, ops.Sin(b, in[0]), in[1]), ops.Exp(b, in[1]), in[2]}
	}
	make := func(checkpoint bool) *ir.Graph {
		return build(t, func(b *ir.Builder) {
			in := []ir.Value{b.Input("x", ir.F64, ir.N(3)), b.Input("y", ir.F64, ir.N(3)), b.Input("i", ir.I32)}
			out := f(b, in)
			if checkpoint {
				out = autodiff.Checkpoint(b, in, f)
			}
			b.Output("loss", ops.ReduceSum(b, ops.Mul(b, out[0], out[1])))
			b.Output("i", out[2])
		})
	}
	in := values{"x": wave(1, 3), "y": wave(2, 3), "i": ir.Int(ir.I32, 5), "tangent/x": wave(3, 3), "tangent/y": wave(4, 3)}
	for name, derive := range map[string]func(g *ir.Graph) (*ir.Graph, error){
		"jvp":  func(g *ir.Graph) (*ir.Graph, error) { return autodiff.JVP(g, "x", "y") },
		"hvp":  func(g *ir.Graph) (*ir.Graph, error) { return autodiff.HVP(g, "loss", "x", "y") },
		"grad": func(g *ir.Graph) (*ir.Graph, error) { return autodiff.ValueAndGrad(g, "loss", "x", "y") },
	} {
		want, err := derive(make(false))
		got, bad := derive(make(true))
		expected := eval(t, must(t, want, err), onlyPorts(want, in))
		for output, x := range eval(t, must(t, got, bad), onlyPorts(got, in)) {
			checkFloats(t, name+" "+output, x, expected[output].F, 1e-13)
		}
	}
}

func TestPoliciesRefuseUnsupportedGraphs(t *testing.T) {
	g, _ := models["mlp"].graph(t, ir.Sym("batch"))
	for name, c := range map[string]struct {
		keep autodiff.Policy
		want error
	}{
		"symbolic sizes": {autodiff.SaveMinCut(), ir.ErrShape},
		"bad pattern":    {autodiff.SaveLabels("["), ir.ErrAttr},
		"unknown op":     {autodiff.SaveOps(ops.OpExp, "nonsense"), ir.ErrName},
		"expanded op":    {autodiff.SaveOps(ops.OpLinear), ir.ErrAttr},
		"own, too short": {func(autodiff.Forward) ([]bool, error) { return []bool{true}, nil }, ir.ErrAttr},
	} {
		if _, err := autodiff.GradWith(g, autodiff.GradOptions{Loss: "loss", Policy: c.keep}); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want one of kind %v", name, err, c.want)
		}
	}
}
