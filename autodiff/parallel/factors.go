package parallel

import (
	"slices"
	"sync"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Dimension is one dimension of an operand or result of a node.
type Dimension struct {
	Result     bool
	Index, Dim int
}

// Operand is a dimension of an operand.
func Operand(index, dim int) Dimension { return Dimension{false, index, dim} }

// Result is a dimension of a result.
func Result(index, dim int) Dimension { return Dimension{true, index, dim} }

// Factors relate the dimensions of a node's operands and results, as the sharding rules of Shardy
// do: a device with a part of a factor, in all its dimensions, computes the same part of the results. A
// dimension in no factor cannot be divided.
type Factors struct {
	list    []factor
	in, out [][]int // factor of each dimension of each operand or result, -1 for none
}

// factor is an index that a node iterates over.
type factor struct {
	size    int    // size that the number of devices must divide
	combine string // the all_reduce that combines results of the parts; "" if results are divided
	indexed bool   // the dimension addressed by the indices of a gather or scatter
}

func newFactors(n *ir.Node) *Factors {
	f := &Factors{}
	whole := func(rank int) []int { return slices.Repeat([]int{-1}, rank) }
	for _, v := range n.Inputs() {
		f.in = append(f.in, whole(v.Rank()))
	}
	for i := range n.NumResults() {
		f.out = append(f.out, whole(n.Result(i).Rank()))
	}
	return f
}

// Pass adds a factor that divides operands and results alike. Size is the number that the device
// count must divide. Dimensions must exist and be in no other factor.
func (f *Factors) Pass(size int, at ...Dimension) { f.add(factor{size: size}, at) }

// Combine adds a factor in operands alone. Results are the all_reduce of the devices' results, by
// [ops.AllReduceSum], [ops.AllReduceMax] or [ops.AllReduceMin].
func (f *Factors) Combine(reduction string, size int, at ...Dimension) {
	f.add(factor{size: size, combine: reduction}, at)
}

func (f *Factors) add(x factor, at []Dimension) {
	for _, p := range at {
		list := f.in
		if p.Result {
			list = f.out
		}
		if p.Index < len(list) && p.Dim >= 0 && p.Dim < len(list[p.Index]) {
			list[p.Index][p.Dim] = len(f.list)
		}
	}
	f.list = append(f.list, x)
}

// declared maps op names to rules.
var declared = struct {
	sync.RWMutex
	rules map[ir.Op]func(n *ir.Node, f *Factors)
}{rules: map[ir.Op]func(n *ir.Node, f *Factors){
	ops.OpDotGeneral:        dotFactors,
	ops.OpTranspose:         transposeFactors,
	ops.OpReshape:           reshapeFactors,
	ops.OpBroadcastInDim:    broadcastFactors,
	ops.OpIota:              iotaFactors,
	ops.OpGather:            gatherFactors,
	ops.OpScatter:           scatterFactors,
	ops.OpScatterAdd:        scatterFactors,
	ops.OpSlice:             sliceFactors,
	ops.OpPad:               sameSizes,
	ops.OpConcatenate:       concatenateFactors,
	ops.OpCumSum:            sameSizes,
	ops.OpSort:              sameSizes,
	ops.OpArgSort:           sameSizes,
	ops.OpTopK:              sameSizes,
	ops.OpConvGeneral:       convFactors,
	ops.OpWindows:           windowFactors,
	ops.OpOverlapAdd:        windowFactors,
	ops.OpSoftmax:           sameSizes,
	ops.OpLogSoftmax:        sameSizes,
	ops.OpAttentionForward:  attentionFactors,
	ops.OpAttentionBackward: attentionFactors,
	ops.OpCachedAttention:   cachedAttentionFactors,
	ops.OpReduceSum:         reduceFactors(ops.AllReduceSum),
	ops.OpReduceMax:         reduceFactors(ops.AllReduceMax),
	ops.OpReduceMin:         reduceFactors(ops.AllReduceMin),
	ops.OpSumAll:            func(*ir.Node, *Factors) {},
}}

// Declare sets how [Partition] divides an op: it adds the factors of a node of
// constant sizes. An op without a rule is divided if it is elementwise or has a body, and else
// computed whole on each device. The error is of kind [ir.ErrName] for an op that has a rule or
// does not exist.
func Declare(op ir.Op, rule func(n *ir.Node, f *Factors)) error {
	declared.Lock()
	defer declared.Unlock()
	if _, ok := ir.Lookup(op); !ok {
		return ir.Errorf(ir.ErrName, "there is no op %q", string(op))
	}
	if declared.rules[op] != nil {
		return ir.Errorf(ir.ErrName, "op %q has a rule already", string(op))
	}
	declared.rules[op] = rule
	return nil
}

// ruleOf returns the rule of an op, nil if it has none.
func ruleOf(d *ir.Def) func(n *ir.Node, f *Factors) {
	declared.RLock()
	defer declared.RUnlock()
	if rule := declared.rules[d.Op]; rule != nil || d.Scalar == nil {
		return rule
	}
	return sameSizes
}

// factorsOf returns the factors of a node, none for a node without a rule.
func factorsOf(n *ir.Node) *Factors {
	f := newFactors(n)
	if rule := ruleOf(n.Def()); rule != nil {
		rule(n, f)
	}
	return f
}

func sizeOf(v ir.Value, dim int) int {
	size, _ := v.Shape()[dim].Const()
	return size
}

// sameSizes is the rule of elementwise ops and of ops along axes: operands and results have the
// same dimensions, and the axes that the op works along cannot be divided.
func sameSizes(n *ir.Node, f *Factors) {
	along := axesOf(n)
	for dim := range n.Result(0).Rank() {
		if slices.Contains(along, dim) {
			continue
		}
		size, same := sizeOf(n.Result(0), dim), true
		var at []Dimension
		for i := range n.NumResults() {
			at = append(at, Result(i, dim))
		}
		for i, v := range n.Inputs() {
			if v.Rank() > 0 { // except the padding value
				same, at = same && sizeOf(v, dim) == size, append(at, Operand(i, dim))
			}
		}
		if same {
			f.Pass(size, at...)
		}
	}
}

// axesOf returns the axes along which an op works.
func axesOf(n *ir.Node) []int {
	switch a := n.Attrs().(type) {
	case *ops.AxisAttrs:
		return []int{a.Axis}
	case *ops.AxesAttrs:
		return slices.Clone(a.Axes)
	case *ops.CumSumAttrs:
		return []int{a.Axis}
	case *ops.SortAttrs:
		return []int{a.Axis}
	case *ops.TopKAttrs:
		return []int{a.Axis}
	}
	return nil
}

func dotFactors(n *ir.Node, f *Factors) {
	a := n.Attrs().(*ops.DotAttrs)
	x, y := n.Input(0), n.Input(1)
	out := 0
	for i, dim := range a.LhsBatch {
		f.Pass(sizeOf(x, dim), Operand(0, dim), Operand(1, a.RhsBatch[i]), Result(0, out))
		out++
	}
	for i, used := range [][]int{slices.Concat(a.LhsBatch, a.LhsContract), slices.Concat(a.RhsBatch, a.RhsContract)} {
		for dim := range n.Input(i).Rank() {
			if !slices.Contains(used, dim) {
				f.Pass(sizeOf(n.Input(i), dim), Operand(i, dim), Result(0, out))
				out++
			}
		}
	}
	for i, dim := range a.LhsContract {
		f.Combine(ops.AllReduceSum, sizeOf(y, a.RhsContract[i]), Operand(0, dim), Operand(1, a.RhsContract[i]))
	}
}

func transposeFactors(n *ir.Node, f *Factors) {
	for i, dim := range n.Attrs().(*ops.TransposeAttrs).Perm {
		f.Pass(sizeOf(n.Input(0), dim), Operand(0, dim), Result(0, i))
	}
}

func broadcastFactors(n *ir.Node, f *Factors) {
	a := n.Attrs().(*ops.BroadcastAttrs)
	for dim := range n.Result(0).Rank() {
		at := []Dimension{Result(0, dim)}
		if i := slices.Index(a.Axes, dim); i >= 0 && sizeOf(n.Input(0), i) == sizeOf(n.Result(0), dim) {
			at = append(at, Operand(0, i))
		}
		f.Pass(sizeOf(n.Result(0), dim), at...)
	}
}

func iotaFactors(n *ir.Node, f *Factors) {
	for dim := range n.Result(0).Rank() {
		if dim != n.Attrs().(*ops.IotaAttrs).Axis {
			f.Pass(sizeOf(n.Result(0), dim), Result(0, dim))
		}
	}
}

// reshapeFactors pairs the leading dimensions of groups of dimensions with equal size: dividing the
// first one divides the whole group. Dimensions of size 1 are in no group.
func reshapeFactors(n *ir.Node, f *Factors) {
	x, y := dimsOverOne(n.Input(0)), dimsOverOne(n.Result(0))
	for i, j := 0, 0; i < len(x) && j < len(y); {
		a, b := sizeOf(n.Input(0), x[i]), sizeOf(n.Result(0), y[j])
		if size := min(a, b); size > 0 && max(a, b)%size == 0 {
			f.Pass(size, Operand(0, x[i]), Result(0, y[j]))
		}
		i, j = i+1, j+1
		for a != b {
			switch {
			case a < b && i < len(x):
				a *= sizeOf(n.Input(0), x[i])
				i++
			case a > b && j < len(y):
				b *= sizeOf(n.Result(0), y[j])
				j++
			default:
				return // there are no elements
			}
		}
	}
}

// dimsOverOne returns the dimensions whose size is not 1.
func dimsOverOne(v ir.Value) (out []int) {
	for dim := range v.Rank() {
		if sizeOf(v, dim) != 1 {
			out = append(out, dim)
		}
	}
	return out
}

func reduceFactors(reduction string) func(n *ir.Node, f *Factors) {
	return func(n *ir.Node, f *Factors) {
		axes, out := n.Def().Reduces(n), 0
		for dim := range n.Input(0).Rank() {
			size := sizeOf(n.Input(0), dim)
			if slices.Contains(axes, dim) {
				f.Combine(reduction, size, Operand(0, dim))
				continue
			}
			f.Pass(size, Operand(0, dim), Result(0, out))
			out++
		}
	}
}

func sliceFactors(n *ir.Node, f *Factors) {
	for dim := range n.Result(0).Rank() {
		if size := sizeOf(n.Input(0), dim); size == sizeOf(n.Result(0), dim) {
			f.Pass(size, Operand(0, dim), Result(0, dim))
		}
	}
}

func concatenateFactors(n *ir.Node, f *Factors) {
	for dim := range n.Result(0).Rank() {
		if dim == n.Attrs().(*ops.AxisAttrs).Axis {
			continue
		}
		at := []Dimension{Result(0, dim)}
		for i := range n.Inputs() {
			at = append(at, Operand(i, dim))
		}
		f.Pass(sizeOf(n.Result(0), dim), at...)
	}
}

// convFactors divides batches and features; dimensions with groups are not divided.
func convFactors(n *ir.Node, f *Factors) {
	a, x, w := n.Attrs().(*ops.ConvAttrs), n.Input(0), n.Input(1)
	if !a.BatchGroups.Is(1) {
		return
	}
	f.Pass(sizeOf(x, a.Lhs[0]), Operand(0, a.Lhs[0]), Result(0, a.Out[0]))
	if a.FeatureGroups.Is(1) {
		f.Pass(sizeOf(w, a.Rhs[0]), Operand(1, a.Rhs[0]), Result(0, a.Out[1]))
		f.Combine(ops.AllReduceSum, sizeOf(x, a.Lhs[1]), Operand(0, a.Lhs[1]), Operand(1, a.Rhs[1]))
	}
}

// windowFactors divides the dimensions without windows. The dimensions of window elements are last.
func windowFactors(n *ir.Node, f *Factors) {
	var axes []int
	switch a := n.Attrs().(type) {
	case *ops.WindowsAttrs:
		axes = a.Axes
	case *ops.OverlapAddAttrs:
		axes = a.Axes
	}
	for dim := range min(n.Input(0).Rank(), n.Result(0).Rank()) {
		if !slices.Contains(axes, dim) {
			f.Pass(sizeOf(n.Input(0), dim), Operand(0, dim), Result(0, dim))
		}
	}
}

// attentionFactors divides batch axes and heads. In grouped-query attention each head of keys and
// values serves consecutive heads of queries.
func attentionFactors(n *ir.Node, f *Factors) {
	q, k := n.Input(0), n.Input(1)
	rank := q.Rank()
	for dim := range rank - 2 {
		var at []Dimension
		mask := 3
		for i, v := range n.Inputs() {
			if n.Op() == ops.OpAttentionBackward {
				mask = 6
			}
			own := dim - (rank - v.Rank())
			if i == mask && (own < 0 || sizeOf(v, own) != sizeOf(q, dim)) {
				continue
			}
			if i != mask {
				own = dim
			}
			at = append(at, Operand(i, own))
		}
		for i := range min(n.NumResults(), 3) {
			at = append(at, Result(i, dim))
		}
		if n.Op() == ops.OpAttentionBackward && n.NumResults() > 3 {
			continue // the cotangent of a mask is summed over the axes that it was broadcast along
		}
		f.Pass(sizeOf(k, dim), at...)
	}
}

// cachedAttentionFactors divides the heads, by groups that share keys, and the sequences: with rows, a
// device needs the caches of all of them.
func cachedAttentionFactors(n *ir.Node, f *Factors) {
	const past, row = 3, 4
	q, k := n.Input(0), n.Input(1)
	heads := q.Rank() - 3
	for dim := range heads {
		at := []Dimension{Operand(0, dim), Result(0, dim)}
		if len(n.Inputs()) > row {
			at = append(at, Operand(row, dim))
		} else {
			at = append(at, Operand(1, dim), Operand(2, dim))
		}
		if n.Input(past).Rank() > 0 {
			at = append(at, Operand(past, dim))
		}
		f.Pass(sizeOf(q, dim), at...)
	}
	f.Pass(sizeOf(k, heads), Operand(0, heads), Operand(1, heads), Operand(2, heads), Result(0, heads))
}

// gatherFactors divides positions and windows. Where the indexed dimension is divided, a device
// reads zeros for indices of other parts.
func gatherFactors(n *ir.Node, f *Factors) {
	a := n.Attrs().(*ops.GatherAttrs)
	indexFactors(n, f, &a.IndexedAxes, Result(0, 0), factor{combine: ops.AllReduceSum}, a.Outside == ops.OutsideFill && a.Fill == 0)
}

// scatterFactors divides windows and the indexed dimension, where a device drops updates of other
// parts. It does not divide positions: the sums start with the operand.
func scatterFactors(n *ir.Node, f *Factors) {
	a := n.Attrs().(*ops.ScatterAttrs)
	indexFactors(n, f, &a.IndexedAxes, Operand(2, 0), factor{}, a.Outside == ops.OutsideDrop)
}

// indexFactors adds the factors of a gather or scatter. Its elements are the result of a gather or
// the updates of a scatter.
func indexFactors(n *ir.Node, f *Factors, a *ops.IndexedAxes, elements Dimension, indexed factor, exact bool) {
	x, indices := n.Input(0), n.Input(1)
	isScatter := !elements.Result
	at := func(dim int) Dimension { return Dimension{elements.Result, elements.Index, dim} }
	positions, window := indices.Rank()-1, 0
	for dim := range x.Rank() {
		dims := []Dimension{Operand(0, dim)}
		if isScatter {
			dims = append(dims, Result(0, dim))
		}
		switch i := slices.Index(a.OperandBatch, dim); {
		case i >= 0:
			if !a.Sorted {
				f.Pass(sizeOf(x, dim), append(dims, Operand(1, a.IndexBatch[i]), at(a.IndexBatch[i]))...)
			}
		case slices.Contains(a.Axes, dim):
			if exact && len(a.Axes) == 1 && indices.DType() != ir.U64 && indices.DType().Size() >= 4 && !a.Sorted {
				indexed.size, indexed.indexed = sizeOf(x, dim), true
				f.add(indexed, dims)
			}
		default:
			f.Pass(sizeOf(x, dim), append(dims, at(positions+window))...)
			window++
		}
	}
	for dim := range positions {
		free := !slices.Contains(a.IndexBatch, dim)
		if free && !isScatter {
			f.Pass(sizeOf(indices, dim), Operand(1, dim), at(dim))
		} else if free && n.Op() == ops.OpScatterAdd && isZeros(x) && !a.Sorted {
			f.Combine(ops.AllReduceSum, sizeOf(indices, dim), Operand(1, dim), at(dim))
		}
	}
}

// isZeros reports whether a value is known to be all zeros.
func isZeros(v ir.Value) bool {
	for v.Node().Op() == ops.OpBroadcastInDim || v.Node().Op() == ops.OpReshape {
		v = v.Node().Input(0)
	}
	a, ok := v.Node().Attrs().(*ir.ConstantAttrs)
	return ok && !slices.ContainsFunc(a.Data, func(x byte) bool { return x != 0 })
}
