package reduce

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Numbers of a product with packed weights are sums that do not depend on the row of weights, such as the mean
// square of the activations. A workgroup computes them once, when it loads the activations.

// splitMembers divides the reductions of the group into those of rows of weights and numbers.
func (p *packedRows) splitMembers() {
	for _, m := range p.r.membersAt(0, true) {
		ofRow := scalar.Any(p.general(m), func(n scalar.Expr) bool { return n.Op == scalar.OpVar && n.Name == generalRow })
		if ofRow {
			p.members = append(p.members, m)
		} else {
			p.numbers = append(p.numbers, m)
		}
	}
}

// number returns the term of a number at an element of the row.
func (p *packedRows) number(m *fusion.Member, element scalar.Expr) scalar.Expr {
	return p.Simplify(scalar.SubstituteVars(p.general(m), map[string]scalar.Expr{generalInner: element}))
}

// addToSum adds a value to the sum of a number in a thread.
func (p *packedRows) addToSum(n int, x scalar.Expr) {
	if n < len(p.sums) {
		p.sums[n] = p.r.let("number", scalar.Add(p.sums[n], x))
	} else {
		p.sums = append(p.sums, p.r.let("number", x))
	}
}

// sumOf returns the sum of values.
func sumOf(values []scalar.Expr) scalar.Expr {
	total := values[0]
	for _, x := range values[1:] {
		total = scalar.Add(total, x)
	}
	return total
}

// foldNumbers adds the sums of threads over their warp, and stores them in workgroup memory.
func (p *packedRows) foldNumbers(lane scalar.Expr, parts []int) {
	for i, sum := range p.sums {
		p.fold([]scalar.Expr{sum}, lane, func(_, sum scalar.Expr) {
			at := scalar.Add(scalar.Mul(p.team, loop.Int(p.warps)), scalar.FloorDiv(lane, loop.Int(loop.Warp)))
			p.Body = append(p.Body, &loop.Store{Array: parts[i], At: p.Simplify(at), Value: sum})
		})
	}
}

// partsOf returns workgroup memory for n sums of each member.
func (p *packedRows) partsOf(members []*fusion.Member, n int) (parts []int) {
	for range members {
		parts = append(parts, p.Shared(p.Name("part"), ir.F32, 1, n))
	}
	return parts
}

// total returns the sum of the parts of a team's warps, the n-th of those in workgroup memory.
func (p *packedRows) total(part int, n scalar.Expr) scalar.Expr {
	from := scalar.Mul(n, loop.Int(p.warps))
	sum := scalar.LoadAt(part, ir.F32, p.Simplify(from))
	for w := 1; w < p.warps; w++ {
		sum = scalar.Add(sum, scalar.LoadAt(part, ir.F32, p.Simplify(scalar.Add(from, loop.Int(w)))))
	}
	return sum
}
