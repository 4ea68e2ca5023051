package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// spreadReuse is how often a spread value is read at least.
const spreadReuse = 8

// spread makes a map read values that stay the same over a few elements, such as the statistics of a group of
// channels, from arrays that have them for each element of a row, and rows that are reversed or every other element
// from copies: kernels then load them as vectors. Values of some work that all rows share are read from arrays, too. It
// adds the steps that compute the arrays; those of values that stay the same have fewer elements than the map by a factor
// of [spreadReuse] at least.
func (p *nestArrays) spread(name string, code *fusion.Code, outer []int) ([]int, error) {
	if !jit.Available() || len(code.Stages)+len(code.Points) > 0 || len(outer) == 0 || product(outer) < minStagedPoints {
		return outer, nil
	}
	outer = split(code, &code.Outer, outer)
	var failed error
	known := map[scalar.Expr]scalar.Expr{}
	short := within{test: func(x scalar.Expr) bool { return x.Op == scalar.OpLoad && repeatsShortly(code, outer, x) }, known: map[scalar.Expr]bool{}}
	visit := func(e scalar.Expr) scalar.Expr {
		return scalar.Substitute(e, func(x scalar.Expr) (scalar.Expr, bool) {
			at, dims, ok := spreadSpace(code, outer, x, short)
			if !ok {
				at, dims, ok = rowSpace(code, outer, x)
			}
			if !ok && copies(code, outer, x) && x != e {
				at, dims, ok = code.Outer, outer, true
			}
			if !ok || failed != nil {
				return x, false
			}
			if load, ok := known[x]; ok {
				return load, true
			}
			buf, err := p.c.materialize(name+" spread", fusion.Elements{Dims: dims, At: at, Value: x})
			if failed = err; err != nil {
				return x, false
			}
			known[x] = scalar.LoadAt(p.c.bufferID(buf), x.Type, scalar.Simplify(linear(dims, at)))
			return known[x], true
		})
	}
	for i, s := range code.Rows {
		code.Rows[i].Value = visit(s.Value)
	}
	return outer, failed
}

// within finds expressions with a node that a test holds for. It keeps what it finds, for the nodes of one
// expression after the other.
type within struct {
	test  func(x scalar.Expr) bool
	known map[scalar.Expr]bool
}

func (w within) holds(e scalar.Expr) bool {
	found, ok := w.known[e]
	if !ok {
		found = w.test(e) || slices.ContainsFunc(e.Args, w.holds)
		w.known[e] = found
	}
	return found
}

// spreadSpace returns the coordinates over which a value is spread: those that it depends on, and the last ones,
// over which it stays the same. It returns false for other values: those without a load that short finds.
func spreadSpace(code *fusion.Code, outer []int, e scalar.Expr, short within) (at ir.Index, dims []int, ok bool) {
	if !isWord(e.Type) || e.Op == scalar.OpConst || e.Op == scalar.OpVar || !short.holds(e) || scalar.Any(e, isCheck) {
		return nil, nil, false
	}
	for i, v := range code.Outer {
		if len(at) > 0 && i == len(code.Outer)-1 || scalar.Any(e, isOneOf([]scalar.Expr{v})) {
			at, dims = append(at, v), append(dims, outer[i])
		}
	}
	return at, dims, product(dims)*spreadReuse <= product(outer)
}

// minRowSteps is the least number of steps in a kernel of a value that all rows share for it to be computed once: a load is
// two or three.
const minRowSteps = 12

// rowSpace returns the coordinates of a value that is the same in all rows, such as the places of a gather along the last
// axis; false for those that depend on all coordinates, and those that are cheap to compute again.
func rowSpace(code *fusion.Code, outer []int, e scalar.Expr) (at ir.Index, dims []int, ok bool) {
	first := slices.IndexFunc(code.Outer, func(v scalar.Expr) bool { return scalar.Any(e, isOneOf([]scalar.Expr{v})) })
	if first < 1 || product(outer[:first]) < spreadReuse || !isWord(e.Type) || e.Op == scalar.OpVar || scalar.Any(e, isCheck) {
		return nil, nil, false
	}
	steps, last := 0, false
	scalar.Walk(e, func(x scalar.Expr) {
		last = last || x.Op == scalar.OpVar && x.Name == code.Outer[len(outer)-1].Name
		if len(x.Args) > 0 && x.Op != scalar.OpLoad {
			steps += jit.Steps(jit.Operation{Op: x.Op, From: x.Args[len(x.Args)-1].Type, To: x.Type})
		}
	})
	return code.Outer[first:], outer[first:], last && steps >= minRowSteps
}

// repeatsShortly reports whether a load stays the same over the last coordinate, which fills no vector, and
// differs along the one before.
func repeatsShortly(code *fusion.Code, outer []int, load scalar.Expr) bool {
	last := len(outer) - 1
	if last < 1 || outer[last] >= jit.Width() {
		return false
	}
	sum := affineOf(load.Args[0])
	return sum.coef(code.Outer[last].Name) == 0 && sum.coef(code.Outer[last-1].Name) != 0 && !scalar.Any(load.Args[0], isOneOf(code.Outer[last:]))
}

// copies reports whether a load reads whole rows that a copy makes contiguous.
func copies(code *fusion.Code, outer []int, load scalar.Expr) bool {
	last := len(outer) - 1
	if load.Op != scalar.OpLoad || !isWord(load.Type) || outer[last] < jit.Width() {
		return false
	}
	sum := affineOf(load.Args[0])
	if slices.ContainsFunc(code.Outer, func(v scalar.Expr) bool { return sum.coef(v.Name) == 0 }) {
		return false
	}
	step := sum.coef(code.Outer[last].Name)
	return (step == -1 || step == 2) && len(sum.terms) == len(code.Outer)
}

func isCheck(e scalar.Expr) bool { return e.Op == scalar.OpCheck }

// isWord reports whether elements of a type are numbers of 32 bits.
func isWord(t ir.DType) bool { return t == ir.F32 || t == ir.I32 || t == ir.U32 }
