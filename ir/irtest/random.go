package irtest

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// RandomGraph returns a well-typed graph of about size steps, each of a few
// nodes, and values for its ports. The same numbers give the same graph.
//
// It contains the usual sources of bugs in transforms and devices: dead and repeated nodes,
// neutral operands, chains of views, broadcasts, reductions, products, indexed
// reads and sums, choices, loops, composites, state. Element types are f32, i32
// and bool. Floats stay moderate and no branch depends on a computed float, so that
// devices with different rounding agree to about 1e-4.
func RandomGraph(rng *rand.Rand, size int) (*ir.Graph, map[string]*ir.Array) {
	inputs := map[string]*ir.Array{}
	g, err := ir.Build("random", func(b *ir.Builder) {
		r := &generator{Rand: rng, b: b}
		r.declare(inputs)
		r.grow(size)
		r.finish()
	})
	if err != nil {
		panic(err) // a step that is not well-typed is a mistake below
	}
	return g, inputs
}

// generator holds the values that the next step may take.
type generator struct {
	*rand.Rand
	b      *ir.Builder
	floats []bounded
	ints   []ir.Value
	bools  []ir.Value
	states []ir.Port
	depth  int // of subgraphs
	// derivable omits steps whose derivative is not that of their values.
	derivable bool
}

// bounded is a float value with a bound on the size of its elements.
type bounded struct {
	ir.Value
	most float64
}

const (
	// maxBound is the maximum magnitude of a value for later steps: rounding errors of
	// sums of products stay below the tolerance.
	maxBound = 50
	// maxElements keeps reference evaluation quick, and all that is stored small
	// enough for devices with small bindings.
	maxElements = 512
)

func pickOne[T any](r *generator, list []T) T { return list[r.IntN(len(list))] }

func (r *generator) chance(percent int) bool { return r.IntN(100) < percent }

// shape draws sizes, rarely 0, and more often ones that agree with those of
// another value.
func (r *generator) shape() []int {
	dims := make([]int, r.IntN(4))
	for i := range dims {
		dims[i] = pickOne(r, []int{1, 2, 2, 3, 3, 3, 4, 5, 7})
		if r.chance(1) {
			dims[i] = 0
		}
	}
	return dims
}

func (r *generator) declare(inputs map[string]*ir.Array) {
	for i := range 3 + r.IntN(3) {
		name, a := "x"+strconv.Itoa(i), r.array(ir.F32)
		inputs[name] = a
		kind := pickOne(r, []ir.PortKind{ir.InputPort, ir.InputPort, ir.ParamPort, ir.StatePort})
		v := r.b.Port(kind, name, a.Type())
		if kind == ir.StatePort {
			r.states = append(r.states, ir.Port{Name: name, Kind: kind, Value: v})
		}
		r.keep(v, 2)
	}
	for i := range 2 {
		name, a := "i"+strconv.Itoa(i), r.array(ir.I32)
		inputs[name] = a
		r.keepInt(r.b.Port(ir.InputPort, name, a.Type()))
	}
	a := r.array(ir.Bool)
	inputs["p"] = a
	r.bools = append(r.bools, r.b.Port(ir.InputPort, "p", a.Type()))
}

// array draws floats in [−2, 2), zeros of both signs among them, and small
// whole numbers.
func (r *generator) array(d ir.DType) *ir.Array {
	a := ir.NewArray(d, r.shape()...)
	for i := range a.F {
		a.F[i] = r.Float64()*4 - 2
		if r.chance(5) {
			a.F[i] = math.Copysign(0, a.F[i])
		}
	}
	for i := range a.I {
		a.I[i] = int64(r.IntN(9) - 2)
	}
	a.Round()
	return a
}

// keep offers a float value to later steps, unless it has too many elements; a value that has grown
// large is scaled down first.
func (r *generator) keep(v ir.Value, most float64) {
	if r.b.Err() == nil && !fits(v.Shape()) {
		return
	}
	if most > maxBound {
		v, most = ops.Tanh(r.b, v), 1
	}
	r.floats = append(r.floats, bounded{v, most})
}

func (r *generator) keepInt(v ir.Value) { r.ints = append(r.ints, v) }

// float picks an offered value, more often a recent one.
func (r *generator) float() bounded {
	n := len(r.floats)
	return r.floats[max(r.IntN(n), r.IntN(n))]
}

// grow adds steps up to the given size.
func (r *generator) grow(size int) {
	for range size {
		pickOne(r, steps)(r)
		if r.chance(10) {
			r.again()
		}
	}
}

// again adds a copy of an existing node.
func (r *generator) again() {
	v := r.float()
	if n := v.Node(); n.Op() != ir.OpPort {
		r.keep(r.b.Copy(n, n.Inputs())[v.Index()], v.most)
	}
}

// finish declares the outputs: the last values, some others, and new values
// for the states.
func (r *generator) finish() {
	n := len(r.floats)
	for i, v := range r.floats {
		if i == n-1 || i > n-4 && r.chance(50) || r.chance(5) {
			r.b.Output("y"+strconv.Itoa(i), v.Value)
		}
	}
	if r.chance(50) {
		r.b.Output("j", pickOne(r, r.ints))
		r.b.Output("q", pickOne(r, r.bools))
	}
	for _, s := range r.states {
		r.b.SetState(s.Name, r.ofType(s.Value))
	}
}

// ofType returns a value of the type of another one, derived from it if there is no other.
func (r *generator) ofType(like ir.Value) ir.Value {
	for _, i := range r.Perm(len(r.floats)) {
		if v := r.floats[i]; v.Value != like && v.Shape().Equal(like.Shape()) {
			return v.Value
		}
	}
	return ops.Mul(r.b, like, ops.ConstLike(r.b, like, 0.5))
}
