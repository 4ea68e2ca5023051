package onnx

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// interval is the numbers from low to high, both within i32, that elements of an i64 value may be.
type interval struct{ low, high int64 }

func (s interval) union(t interval) interval { return interval{min(s.low, t.low), max(s.high, t.high)} }

func (s interval) fits() bool { return s.low >= math.MinInt32 && s.high <= math.MaxInt32 }

// narrower rebuilds a graph with i32 in place of i64 where all elements are shown to be in its range, for
// devices without i64.
type narrower struct {
	b      *ir.Builder
	m      *ir.Mapping
	ranges map[ir.Value]interval // of values of the old graph that are i32 in the new one
	wides  map[ir.Value]ir.Value
	read   map[ir.Value]bool // values of the old graph whose upper 32 bits are read
}

// narrowed returns g with i32 in place of i64 where that is shown to be the same. Its i64 inputs become
// i32.
func narrowed(g *ir.Graph) (*ir.Graph, error) {
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		n := &narrower{b: b, m: ir.NewMapping(g), ranges: map[ir.Value]interval{}, wides: map[ir.Value]ir.Value{}, read: readWhole(g)}
		for _, p := range g.Ports() {
			if p.Kind != ir.InputPort || p.Value.DType() != ir.I64 {
				n.m.Set(p.Value, b.CopyPort(p))
				continue
			}
			n.set(p.Value, b.Input(p.Name, ir.I32, p.Value.Shape()...), interval{math.MinInt32, math.MaxInt32})
		}
		for _, node := range g.Nodes() {
			if node.Op() != ir.OpPort {
				n.node(node)
			}
		}
		for _, o := range g.Outputs() {
			v := n.m.Get(o.Value)
			if o.State {
				v = n.wide(o.Value)
			}
			b.CopyOutput(o, v)
		}
	})
}

// wrapping are the ops whose results, to 32 bits, follow from the lower 32 bits of the operands.
var wrapping = map[ir.Op]bool{
	ops.OpAdd: true, ops.OpSub: true, ops.OpMul: true, ops.OpNeg: true, ops.OpReduceSum: true, ops.OpCumSum: true,
	ops.OpReshape: true, ops.OpTranspose: true, ops.OpSlice: true, ops.OpBroadcastInDim: true, ops.OpConcatenate: true,
}

// readWhole returns the values of a graph whose upper 32 bits are read: all but those that are only
// converted to integers of 32 bits or less, at once or after ops that wrap.
func readWhole(g *ir.Graph) map[ir.Value]bool {
	read := map[ir.Value]bool{}
	for _, o := range g.Outputs() {
		read[o.Value] = true
	}
	for _, node := range slices.Backward(g.Nodes()) {
		if node.Op() == ops.OpConvert && node.Result(0).DType().IsInteger() && node.Result(0).DType().Size() <= 4 {
			continue
		}
		if wrapping[node.Op()] && !slices.ContainsFunc(node.Results(), func(v ir.Value) bool { return read[v] }) {
			continue
		}
		for _, v := range node.Inputs() {
			read[v] = true
		}
	}
	return read
}

// set maps a value to one of i32.
func (n *narrower) set(v, to ir.Value, s interval) {
	n.m.Set(v, to)
	n.ranges[v] = s
}

// wide returns a value as the old graph has it.
func (n *narrower) wide(v ir.Value) ir.Value {
	to := n.m.Get(v)
	if _, narrow := n.ranges[v]; !narrow {
		return to
	}
	if w, ok := n.wides[v]; ok {
		return w
	}
	n.wides[v] = ops.Convert(n.b, to, ir.I64)
	return n.wides[v]
}

// node adds a node, with i32 operands and results where a rule proves that they suffice.
func (n *narrower) node(node *ir.Node) {
	n.b.At(node.Pos())
	n.b.Label(node.Label())
	if n.source(node) || n.chosenIndex(node) || n.moved(node) || n.computed(node) || n.indexed(node) {
		return
	}
	var in []ir.Value
	for _, v := range node.Inputs() {
		in = append(in, n.wide(v))
	}
	n.m.SetAll(node, n.b.Copy(node, in))
}

// source adds a node that computes i64 from other types: a constant, sizes, positions, a
// conversion.
func (n *narrower) source(node *ir.Node) bool {
	x := node.Result(0)
	if x.DType() != ir.I64 {
		return n.converted(node)
	}
	switch node.Op() {
	case ir.OpConstant:
		c, _ := node.Attrs().(*ir.ConstantAttrs)
		a, err := ir.ArrayOf(c.Type, c.Data)
		if err != nil {
			return false
		}
		s := interval{}
		for i, v := range a.I {
			if i == 0 {
				s = interval{v, v}
			}
			s = s.union(interval{v, v})
		}
		if !s.fits() {
			return false
		}
		n.set(x, ops.Literal(n.b, ir.Ints(ir.I32, a.I, append([]int{}, a.Dims...)...)), s)
	case ops.OpIota:
		a, _ := node.Attrs().(*ops.IotaAttrs)
		size, ok := x.Dim(a.Axis).Const()
		if !ok || size > math.MaxInt32 {
			return false
		}
		n.set(x, ops.Iota(n.b, ir.I32, a.Axis, x.Shape()...), interval{0, int64(max(size-1, 0))})
	case ops.OpDimSize:
		a, _ := node.Attrs().(*ops.DimSizeAttrs)
		s := interval{0, math.MaxInt32} // a device without i64 has no array of 2³¹ elements
		if size, ok := ir.Shape(a.Sizes).Size().Const(); ok {
			s = interval{int64(size), int64(size)}
		}
		if !s.fits() {
			return false
		}
		n.set(x, ops.DimSize(n.b, ir.I32, a.Sizes...), s)
	case ops.OpConvert:
		s, ok := rangeOf(node.Input(0), 8)
		if !ok || !s.fits() {
			return false
		}
		n.set(x, ops.Convert(n.b, n.m.Get(node.Input(0)), ir.I32), s)
	default:
		return false
	}
	return true
}

// rangeOf returns the numbers that an integer value may have: places along an axis, also where steps that
// move elements follow, and otherwise those of its type.
func rangeOf(v ir.Value, steps int) (interval, bool) {
	node := v.Node()
	switch op := node.Op(); {
	case op == ops.OpArgMax || op == ops.OpArgMin:
		a, _ := node.Attrs().(*ops.ArgAttrs)
		if size, ok := node.Input(0).Dim(a.Axis).Const(); ok && size > 0 {
			return interval{0, int64(size - 1)}, true
		}
	case op == ops.OpTopK && v.Index() == 1:
		a, _ := node.Attrs().(*ops.TopKAttrs)
		if size, ok := node.Input(0).Dim(a.Axis).Const(); ok && size > 0 {
			return interval{0, int64(size - 1)}, true
		}
	case steps > 0 && (op == ops.OpReshape || op == ops.OpTranspose || op == ops.OpBroadcastInDim || op == ops.OpSlice):
		return rangeOf(node.Input(0), steps-1)
	}
	if v.DType().IsBool() {
		return interval{0, 1}, true
	}
	low, high, ok := v.DType().IntRange()
	return interval{low, high}, ok
}

// converted adds a conversion of i64 to another type.
func (n *narrower) converted(node *ir.Node) bool {
	if node.Op() != ops.OpConvert {
		return false
	}
	if _, narrow := n.ranges[node.Input(0)]; !narrow {
		return false
	}
	n.m.Set(node.Result(0), ops.Convert(n.b, n.m.Get(node.Input(0)), node.Result(0).DType()))
	return true
}

// chosenIndex adds the normalisation of a negative index, select(x < 0, x + n, x). The sum could
// overflow only where it is not selected.
func (n *narrower) chosenIndex(node *ir.Node) bool {
	if node.Op() != ops.OpSelect || node.Result(0).DType() != ir.I64 {
		return false
	}
	test, sum, x := node.Input(0).Node(), node.Input(1).Node(), node.Input(2)
	s, narrow := n.ranges[x]
	if !narrow || test.Op() != ops.OpLt || sum.Op() != ops.OpAdd || test.Input(0) != x || sum.Input(0) != x {
		return false
	}
	zero, isZero := n.ranges[test.Input(1)]
	more, isSize := n.ranges[sum.Input(1)]
	if !isZero || zero != (interval{}) || !isSize || more.low < 0 {
		return false
	}
	// x is at least MinInt32 and the size at least 0, so no selected sum overflows i32
	b := n.b
	to := ops.Select(b, n.m.Get(node.Input(0)), ops.Add(b, n.m.Get(x), n.m.Get(sum.Input(1))), n.m.Get(x))
	n.set(node.Result(0), to, interval{min(s.low+more.low, max(s.low, 0)), max(s.high, more.high-1)})
	return true
}

// movers are the ops whose results are elements of operands of the same type.
var movers = map[ir.Op]bool{
	ops.OpReshape: true, ops.OpTranspose: true, ops.OpSlice: true, ops.OpBroadcastInDim: true, ops.OpReverse: true, ops.OpConcatenate: true,
	ops.OpStack: true, ops.OpSelect: true, ops.OpPad: true, ops.OpMax: true, ops.OpMin: true, ops.OpClamp: true, ops.OpReduceMax: true,
	ops.OpReduceMin: true, ops.OpStopGradient: true, ops.OpWindows: true, ops.OpSplit: true, ops.OpUnstack: true, ops.OpTile: true,
}

// moved adds an op that moves or picks elements, and comparisons: with i32 if all i64 operands are.
func (n *narrower) moved(node *ir.Node) bool {
	compared := node.Op() == ops.OpEq || node.Op() == ops.OpNe || node.Op() == ops.OpLt || node.Op() == ops.OpLe || node.Op() == ops.OpGt || node.Op() == ops.OpGe
	if !movers[node.Op()] && !compared {
		return false
	}
	s, any := n.operands(node)
	if !any || node.Input(0).Shape().Size().Is(0) {
		return false
	}
	out := n.b.Copy(node, n.m.Inputs(node))
	n.m.SetAll(node, out)
	for i, x := range node.Results() {
		if x.DType() == ir.I64 && i < len(out) {
			n.ranges[x] = s
		}
	}
	return true
}

// operands returns the range of all i64 operands, false unless there are some and all are i32.
func (n *narrower) operands(node *ir.Node) (s interval, any bool) {
	for _, v := range node.Inputs() {
		if v.DType() != ir.I64 {
			continue
		}
		t, narrow := n.ranges[v]
		if !narrow {
			return s, false
		}
		if !any {
			s = t
		}
		s, any = s.union(t), true
	}
	return s, any
}

// computed adds arithmetic whose results are proven to be in range, or whose lower 32 bits alone are read.
func (n *narrower) computed(node *ir.Node) bool {
	if _, any := n.operands(node); !any || len(node.Results()) != 1 {
		return false
	}
	x := n.ranges[node.Input(0)]
	y := x
	if len(node.Inputs()) > 1 {
		y = n.ranges[node.Input(1)]
	}
	s, ok := arithmetic(node, x, y)
	if !ok || !s.fits() {
		if !wrapping[node.Op()] || n.read[node.Result(0)] {
			return false
		}
		s = interval{math.MinInt32, math.MaxInt32}
	}
	n.set(node.Result(0), n.b.Copy(node, n.m.Inputs(node))[0], s)
	return true
}

// arithmetic returns the range of a node's results for operands within ranges.
func arithmetic(node *ir.Node, x, y interval) (interval, bool) {
	switch node.Op() {
	case ops.OpAdd:
		return interval{x.low + y.low, x.high + y.high}, true
	case ops.OpSub:
		return interval{x.low - y.high, x.high - y.low}, true
	case ops.OpMul:
		a, b, c, d := x.low*y.low, x.low*y.high, x.high*y.low, x.high*y.high
		return interval{min(a, b, c, d), max(a, b, c, d)}, true
	case ops.OpDiv:
		bound := max(-x.low, x.high)
		return interval{-bound, bound}, y.low > 0 || y.high < 0 // division by 0 is not the same in all types
	case ops.OpMod:
		return interval{min(y.low, 0), max(y.high, 0)}, true
	case ops.OpRem:
		return interval{min(x.low, 0), max(x.high, 0)}, true
	case ops.OpNeg:
		return interval{-x.high, -x.low}, true
	case ops.OpAbs:
		return interval{0, max(-x.low, x.high)}, true
	case ops.OpReduceSum, ops.OpCumSum:
		n, ok := node.Input(0).Shape().Size().Const()
		if !ok || n > math.MaxInt32 {
			return interval{}, false
		}
		return interval{min(x.low*int64(n), 0), max(x.high*int64(n), 0)}, true
	}
	return interval{}, false
}

// indexed adds a gather or scatter. Its indices may have another type than its elements.
func (n *narrower) indexed(node *ir.Node) bool {
	if node.Op() != ops.OpGather && node.Op() != ops.OpScatter {
		return false
	}
	in := []ir.Value{}
	for _, v := range node.Inputs() {
		in = append(in, n.wide(v))
	}
	if _, narrow := n.ranges[node.Input(1)]; narrow {
		in[1] = n.m.Get(node.Input(1))
	}
	s, data := n.ranges[node.Input(0)]
	if node.Op() == ops.OpScatter {
		t, updates := n.ranges[node.Input(2)]
		s, data = s.union(t), data && updates
	}
	if !data {
		n.m.SetAll(node, n.b.Copy(node, in))
		return true
	}
	in[0] = n.m.Get(node.Input(0))
	if node.Op() == ops.OpScatter {
		in[2] = n.m.Get(node.Input(2))
	}
	n.set(node.Result(0), n.b.Copy(node, in)[0], s.union(interval{})) // elements out of range read 0
	return true
}
