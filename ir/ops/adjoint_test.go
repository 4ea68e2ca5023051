package ops_test

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// ruled are the ops whose rules are checked here on all their samples.
var ruled = []ir.Op{
	"dot_general", "conv_general", "windows", "overlap_add", "gather", "scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "argsort", "sort", "top_k", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "linear_recurrence", "associative_scan",
	"scan", "cond", "linear_call", "custom_vjp", "custom_jvp",
	"relu", "gelu", "gelu_tanh", "silu", "softmax", "log_softmax", "logsumexp", "cross_entropy",
	"linear", "embedding", "conv2d", "max_pool", "avg_pool",
	"layer_norm", "rms_norm", "dropout", "attention", "attention_forward", "attention_backward",
	"cholesky", "triangular_solve", "eigh", "solve", "lyapunov", "pinv", "det", "cofactor", "spd_sqrtm", "spd_logm", "expm",
	"dft", "stft", "istft", "log_mel", "welch",
}

// eachSample runs f for each sample of the ops.
func eachSample(t *testing.T, names []ir.Op, f func(t *testing.T, d *ir.Def, s ir.Sample)) {
	for _, op := range names {
		d, ok := ir.Lookup(op)
		if !ok {
			t.Fatalf("there is no op %q", op)
		}
		for _, s := range d.Samples() {
			t.Run(string(op)+"/"+s.Name, func(t *testing.T) { f(t, d, s) })
		}
	}
}

// nodeGraph is a graph of one node.
func nodeGraph(t *testing.T, d *ir.Def, s ir.Sample) *ir.Graph {
	t.Helper()
	g, err := ir.Build("node", func(b *ir.Builder) {
		in := make([]ir.Value, len(s.In))
		for i, a := range s.In {
			in[i] = b.Input("x"+strconv.Itoa(i), a.DType, a.Type().Shape...)
		}
		for i, v := range b.AddNode(d.Op, s.Attrs, s.Subs, in...) {
			b.Output("y"+strconv.Itoa(i), v)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// run evaluates a graph in float64 on arrays in the order of its ports.
func run(t *testing.T, g *ir.Graph, in []*ir.Array) []*ir.Array {
	t.Helper()
	named := map[string]*ir.Array{}
	for i, p := range g.Ports() {
		named[p.Name] = in[i]
	}
	out, err := ir.Eval(g, named, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// noise fills an array of a type with numbers that look random.
func noise(t ir.Type, seed uint64) *ir.Array {
	dims, _ := t.Shape.Ints()
	a := ir.NewArray(t.DType, dims...)
	for i := range a.F {
		seed = seed*6364136223846793005 + 1442695040888963407
		a.F[i] = float64(int64(seed>>11))/(1<<52) - 1
	}
	return a
}

func noises(types []ir.Type, seed uint64) []*ir.Array {
	out := make([]*ir.Array, len(types))
	for i, t := range types {
		out[i] = noise(t, seed+uint64(i))
	}
	return out
}

func inner(x, y []*ir.Array) float64 {
	sum := 0.0
	for i := range x {
		for k := range x[i].F {
			sum += x[i].F[k] * y[i].F[k]
		}
	}
	return sum
}

// nodeSlopes is a graph of the derivatives of all floating results of g, by all
// its floating ports: its ports are those of g, then the tangents.
type nodeSlopes struct {
	forward  *ir.Graph
	by       []int // ports of g that have tangents
	inTypes  []ir.Type
	of       []int // results of g that have them
	outTypes []ir.Type
}

func slopesOf(t *testing.T, g *ir.Graph) *nodeSlopes {
	t.Helper()
	s := &nodeSlopes{}
	var err error
	s.forward, err = ir.Build("forward", func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		tangents := make([]ir.Value, len(g.Ports()))
		for i, p := range g.Ports() {
			if p.Value.DType().IsFloat() {
				s.by, s.inTypes = append(s.by, i), append(s.inTypes, p.Value.Type())
				tangents[i] = b.Port(ir.InputPort, "t"+strconv.Itoa(i), p.Value.Type())
			}
		}
		out, tout := derive.JVP(b, g, portValues(g, m), tangents)
		for i, v := range out {
			if v.DType().IsFloat() {
				s.of, s.outTypes = append(s.of, i), append(s.outTypes, v.Type())
				if !tout[i].Valid() {
					tout[i] = ops.ZerosLike(b, v)
				}
				b.Output("t"+strconv.Itoa(i), tout[i])
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// backward is the transpose: its ports are those of g, then the cotangents.
func (s *nodeSlopes) backward(t *testing.T, g *ir.Graph) *ir.Graph {
	t.Helper()
	linear := make([]bool, len(s.forward.Ports()))
	for i := len(g.Ports()); i < len(linear); i++ {
		linear[i] = true
	}
	back, err := ir.Build("backward", func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		var cts []ir.Value
		for i, t := range s.outTypes {
			cts = append(cts, b.Port(ir.InputPort, "c"+strconv.Itoa(i), t))
		}
		in := append(portValues(g, m), make([]ir.Value, len(s.inTypes))...)
		for i, v := range derive.Transpose(b, s.forward, linear, in, cts)[len(g.Ports()):] {
			if !v.Valid() {
				v = ops.Zeros(b, s.inTypes[i].DType, s.inTypes[i].Shape...)
			}
			b.Output("t"+strconv.Itoa(i), v)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// TestTransposesAreAdjoint checks ⟨J t, c⟩ = ⟨t, Jᵀ c⟩.
func TestTransposesAreAdjoint(t *testing.T) {
	eachSample(t, ruled, func(t *testing.T, d *ir.Def, s ir.Sample) {
		g := nodeGraph(t, d, s)
		j := slopesOf(t, g)
		tan, cot := noises(j.inTypes, 1), noises(j.outTypes, 100)
		jt := run(t, j.forward, slices.Concat(s.In, tan))
		jc := run(t, j.backward(t, g), slices.Concat(s.In, cot))
		for i, a := range jc {
			if !a.Type().Equal(j.inTypes[i]) {
				t.Fatalf("the cotangent of operand %d is %s, not %s", j.by[i], a.Type(), j.inTypes[i])
			}
		}
		if a, b := inner(jt, cot), inner(tan, jc); !(math.Abs(a-b) <= 1e-10*(1+math.Abs(a))) && !(math.IsNaN(a) && math.IsNaN(b)) {
			t.Errorf("⟨J t, c⟩ = %v, ⟨t, Jᵀ c⟩ = %v", a, b)
		}
	})
}

// TestDerivativesAreSlopes compares the derivative in a direction with the
// difference quotient in float64.
func TestDerivativesAreSlopes(t *testing.T) {
	const h = 1e-6
	eachSample(t, ruled, func(t *testing.T, d *ir.Def, s ir.Sample) {
		if s.NoGrad != "" {
			return
		}
		g := nodeGraph(t, d, s)
		j := slopesOf(t, g)
		tan := noises(j.inTypes, 7)
		got := run(t, j.forward, slices.Concat(s.In, tan))
		moved := func(by float64) []*ir.Array {
			in := slices.Clone(s.In)
			for i, at := range j.by {
				in[at] = in[at].Clone()
				for k := range in[at].F {
					in[at].F[k] += by * tan[i].F[k]
				}
			}
			return run(t, g, in)
		}
		up, down := moved(h), moved(-h)
		for i, at := range j.of {
			for k, x := range got[i].F {
				want := (up[at].F[k] - down[at].F[k]) / (2 * h)
				if !(math.Abs(x-want) <= 1e-7*(1+math.Abs(want)+math.Abs(up[at].F[k]))) {
					t.Fatalf("result %d, element %d: the derivative is %v, the slope %v", at, k, x, want)
				}
			}
		}
	})
}

func portValues(g *ir.Graph, m *ir.Mapping) []ir.Value {
	out := make([]ir.Value, len(g.Ports()))
	for i, p := range g.Ports() {
		out[i] = m.Get(p.Value)
	}
	return out
}
