package ops

import (
	"runtime"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpConvGeneral is convolution (cross-correlation) over any number of axes.
const OpConvGeneral ir.Op = "conv_general"

// ConvAttrs describe a convolution. Lhs, Rhs and Out are the layouts: Lhs and Out list the
// batch axis, the feature axis and the spatial axes; Rhs lists the axis of output
// features, that of input features and the spatial axes. The other lists have one entry
// for each spatial axis. Nil lists mean the defaults: strides and dilations of 1, no
// padding, axes in the order of the lists; a group count of 0 means 1.
type ConvAttrs struct {
	Strides      []int
	PadLo, PadHi []int // added to lhs after dilation; negative padding crops
	LhsDilation  []int // LhsDilation-1 zeros are inserted between the elements of lhs
	RhsDilation  []int // and RhsDilation-1 between those of rhs
	Lhs, Rhs     []int
	Out          []int
	// FeatureGroups splits the input and output features into groups with one convolution
	// each. BatchGroups splits the batch and the output features. At most one of them
	// differs from 1.
	FeatureGroups, BatchGroups ir.Dim
}

// Visit shows the attributes.
func (a *ConvAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("strides", &a.Strides)
	v.Ints("pad_lo", &a.PadLo)
	v.Ints("pad_hi", &a.PadHi)
	v.Ints("lhs_dilation", &a.LhsDilation)
	v.Ints("rhs_dilation", &a.RhsDilation)
	v.Ints("lhs", &a.Lhs)
	v.Ints("rhs", &a.Rhs)
	v.Ints("out", &a.Out)
	visitDim(v, "feature_groups", &a.FeatureGroups)
	visitDim(v, "batch_groups", &a.BatchGroups)
}

func init() {
	define(&ir.Def{
		Op: OpConvGeneral,
		Doc: "Convolution of lhs with rhs, without flipping rhs (XLA's ConvGeneralDilated): the result at a position is the sum of products of " +
			"rhs with the part of the padded, dilated lhs that starts there. f16 and bf16 accumulate in f32.",
		Constraints: numbered(
			"lhs and rhs have one numeric element type and one rank of at least 2.",
			"lhs, rhs and out are permutations of the axes; the other lists have one entry for each spatial axis.",
			"strides and dilations are at least 1.",
			"feature_groups or batch_groups is 1; both are at least 1.",
			"the input features of lhs are feature_groups times those of rhs.",
			"the output features are a multiple of both group counts, the batch is one of batch_groups.",
			"a result axis is empty where the dilated rhs is longer than the padded lhs.",
		),
		Operands:  []string{"lhs", "rhs"},
		NewAttrs:  func() ir.Attrs { return &ConvAttrs{FeatureGroups: ir.N(1), BatchGroups: ir.N(1)} },
		Infer:     inferConv,
		Eval:      evalResult(evalConv),
		JVP:       bilinearJVP,
		Transpose: transposeConv,
		Batch:     batchConv,
		Lower:     &ir.ContractLowering{Spec: convContraction, Phase: newConvContraction},
	})
}

// ConvGeneral returns the convolution (cross-correlation) of x with the kernel w, of one
// numeric type. By default x is [batch, in, spatial axes...] and w [out, in/groups,
// window...], and the result is [batch, out, spatial axes...]; Lhs, Rhs and Out of a
// select other layouts. f16 and bf16 accumulate in f32.
func ConvGeneral(b *ir.Builder, x, w ir.Value, a ConvAttrs) ir.Value {
	a.complete(x.Rank())
	return b.Add1(OpConvGeneral, &a, x, w)
}

// complete sets the defaults for operands of the given rank.
func (a *ConvAttrs) complete(rank int) {
	spatial := max(rank-2, 0)
	fillNil(repeatInt(1, spatial), &a.Strides, &a.LhsDilation, &a.RhsDilation)
	fillNil(repeatInt(0, spatial), &a.PadLo, &a.PadHi)
	fillNil(counting(0, rank), &a.Lhs, &a.Rhs, &a.Out)
	for _, groups := range []*ir.Dim{&a.FeatureGroups, &a.BatchGroups} {
		if groups.Is(0) {
			*groups = ir.N(1)
		}
	}
}

func inferConv(n *ir.Node) ([]ir.Type, error) {
	t, err := convType(n.Attrs().(*ConvAttrs), n.Input(0).Type(), n.Input(1).Type())
	return []ir.Type{t}, err
}

// convType returns the type of the convolution of x with w.
func convType(a *ConvAttrs, x, w ir.Type) (ir.Type, error) {
	if x.DType != w.DType || !x.DType.IsNumeric() {
		return ir.Type{}, ir.DTypef("%s and %s are not of one numeric type", x, w)
	}
	if err := checkConvAttrs(a, len(x.Shape), len(w.Shape)); err != nil {
		return ir.Type{}, err
	}
	if err := checkConvGroups(a, x.Shape, w.Shape); err != nil {
		return ir.Type{}, err
	}
	out := make(ir.Shape, len(x.Shape))
	batch, err := x.Shape[a.Lhs[0]].Div(a.BatchGroups)
	if err != nil {
		return ir.Type{}, err
	}
	out[a.Out[0]], out[a.Out[1]] = batch, w.Shape[a.Rhs[0]]
	for i := range a.Strides {
		size, err := convSize(a, i, x.Shape[a.Lhs[i+2]], w.Shape[a.Rhs[i+2]])
		if err != nil {
			return ir.Type{}, err
		}
		out[a.Out[i+2]] = size
	}
	return ir.Type{DType: x.DType, Shape: out}, nil
}

func checkConvAttrs(a *ConvAttrs, rank, kernelRank int) error {
	if rank < 2 || rank != kernelRank {
		return ir.Shapef("lhs of rank %d and rhs of rank %d: both need one rank of 2 or more", rank, kernelRank)
	}
	for _, list := range [][]int{a.Strides, a.PadLo, a.PadHi, a.LhsDilation, a.RhsDilation} {
		if len(list) != rank-2 {
			return ir.Attrf("strides, pad_lo, pad_hi, lhs_dilation or rhs_dilation has %d entries, not one for each of %d spatial axes", len(list), rank-2)
		}
	}
	for i := range a.Strides {
		if a.Strides[i] < 1 || a.LhsDilation[i] < 1 || a.RhsDilation[i] < 1 {
			return ir.Attrf("strides has %d, lhs_dilation %d and rhs_dilation %d: they must be 1 or more", a.Strides[i], a.LhsDilation[i], a.RhsDilation[i])
		}
	}
	for _, axes := range [][]int{a.Lhs, a.Rhs, a.Out} {
		if len(axes) != rank {
			return ir.Attrf("lhs, rhs or out names %d axes, not %d", len(axes), rank)
		}
		if err := checkAxes(axes, rank); err != nil {
			return err
		}
	}
	return nil
}

func checkConvGroups(a *ConvAttrs, x, w ir.Shape) error {
	fg, bg := a.FeatureGroups, a.BatchGroups
	if !fg.Valid() || !bg.Valid() || fg.Is(0) || bg.Is(0) || !fg.Is(1) && !bg.Is(1) {
		return ir.Attrf("feature_groups is %s and batch_groups %s: they must be positive, and one of them 1", fg, bg)
	}
	if in := w[a.Rhs[1]].Mul(fg); x[a.Lhs[1]] != in {
		return ir.Shapef("the image has %s features on axis %d, the kernel takes %s, in %s groups", x[a.Lhs[1]], a.Lhs[1], in, fg)
	}
	for _, groups := range []ir.Dim{fg, bg} {
		if _, err := w[a.Rhs[0]].Div(groups); err != nil {
			return ir.Shapef("%s output features do not divide into %s groups", w[a.Rhs[0]], groups)
		}
	}
	if _, err := x[a.Lhs[0]].Div(bg); err != nil {
		return ir.Shapef("a batch of %s does not divide into %s groups", x[a.Lhs[0]], bg)
	}
	return nil
}

// convSize returns the size of spatial axis i of the result for spatial sizes in and
// window of lhs and rhs.
func convSize(a *ConvAttrs, i int, in, window ir.Dim) (ir.Dim, error) {
	padded := dilated(in, a.LhsDilation[i]).Add(ir.N(a.PadLo[i])).Add(ir.N(a.PadHi[i]))
	return windowCount(padded, dilated(window, a.RhsDilation[i]), a.Strides[i])
}

// convPoint is one spatial axis of a convolution.
type convPoint struct{ stride, lo, lhsDilation, rhsDilation, size int }

// at returns the element of lhs that is multiplied by element k of the window at result
// position o, or false where it is padding.
func (p convPoint) at(o, k int) (int, bool) {
	i := o*p.stride + k*p.rhsDilation - p.lo
	if i < 0 || i%p.lhsDilation != 0 || i/p.lhsDilation >= p.size {
		return 0, false
	}
	return i / p.lhsDilation, true
}

func convPoints(a *ConvAttrs, x ir.Shape) []convPoint {
	out := make([]convPoint, len(a.Strides))
	for i := range out {
		size, _ := x[a.Lhs[i+2]].Const()
		out[i] = convPoint{a.Strides[i], a.PadLo[i], a.LhsDilation[i], a.RhsDilation[i], size}
	}
	return out
}

// convSizes are the group count and the sizes of one group.
type convSizes struct {
	groups                   int // feature or batch groups
	batch, outFeatures       int // of one group
	inFeatures               int // of one group
	batchGroups              bool
	outSpatial, kernelExtent []int
}

func convSizesOf(n *ir.Node) convSizes {
	a := n.Attrs().(*ConvAttrs)
	x, w, y := sizes(n.Input(0).Shape()), sizes(n.Input(1).Shape()), sizes(n.Types()[0].Shape)
	fg, _ := a.FeatureGroups.Const()
	bg, _ := a.BatchGroups.Const()
	return convSizes{
		groups: fg * bg, batchGroups: bg > 1,
		batch: x[a.Lhs[0]] / bg, outFeatures: w[a.Rhs[0]] / (fg * bg), inFeatures: w[a.Rhs[1]],
		outSpatial: pick(y, a.Out[2:]), kernelExtent: pick(w, a.Rhs[2:]),
	}
}

func evalConv(n *ir.Node, in []*ir.Array, out *ir.Array) {
	switch {
	case out.DType.IsFloat():
		convolve(n, out.F, in[0].F, in[1].F)
	case out.DType.IsComplex():
		convolve(n, out.C, in[0].C, in[1].C)
	default:
		convolve(n, out.I, in[0].I, in[1].I)
	}
}

// convolve computes the result in row-major order.
func convolve[T float64 | int64 | complex128](n *ir.Node, out, x, w []T) {
	a, s := n.Attrs().(*ConvAttrs), convSizesOf(n)
	points := convPoints(a, n.Input(0).Shape())
	xs, ws := strides(sizes(n.Input(0).Shape())), strides(sizes(n.Input(1).Shape()))
	positions(sizes(n.Types()[0].Shape), func(o int, at []int) {
		batch, feature := at[a.Out[0]], at[a.Out[1]]
		group, first := feature/s.outFeatures, 0
		if s.batchGroups {
			batch += group * s.batch
		} else {
			first = group * s.inFeatures
		}
		var sum T
		positions(s.kernelExtent, func(_ int, k []int) {
			xo, wo, ok := batch*xs[a.Lhs[0]]+first*xs[a.Lhs[1]], feature*ws[a.Rhs[0]], true
			for i, p := range points {
				pos, inside := p.at(at[a.Out[i+2]], k[i])
				ok = ok && inside
				xo, wo = xo+pos*xs[a.Lhs[i+2]], wo+k[i]*ws[a.Rhs[i+2]]
			}
			for f := 0; ok && f < s.inFeatures; f++ {
				sum += x[xo+f*xs[a.Lhs[1]]] * w[wo+f*ws[a.Rhs[1]]]
			}
		})
		out[o] = sum
	})
}

// convContraction contracts input features and window positions. The groups are its batch, and the phases
// of axes along which lhs is dilated; the free axes of lhs are the batch and the result positions. Both
// spaces order their axes as lhs does in memory, so that adjacent positions are adjacent there. This also
// holds for the gradient by the kernel, whose lhs has the features as its batch.
func convContraction(n *ir.Node) ir.Contraction {
	c, _ := newConvContraction(n, ir.PhasesInBatch)
	return c
}

// newConvContraction returns the contraction of a convolution, or of one of its phases by number, and their
// number: all combinations of those of axes with unequal phases, which have a different number of results or terms.
func newConvContraction(n *ir.Node, phase int) (ir.Contraction, int) {
	a, s := n.Attrs().(*ConvAttrs), convSizesOf(n)
	v := &convSpaces{a: a, convSizes: s, free: lhsOrder(a.Lhs, a.Lhs[0]), inner: lhsOrder(a.Lhs, a.Lhs[1])}
	c := ir.Contraction{
		M: make([]int, len(a.Lhs)-1), N: []int{s.outFeatures}, K: make([]int, len(a.Lhs)-1),
		A: v.lhs, B: v.rhs, Out: v.out, Acc: sumType(n.Types()[0].DType),
	}
	if s.groups > 1 {
		c.Batch = append(c.Batch, s.groups)
	}
	c.M[v.free.other], c.K[v.inner.other] = s.batch, s.inFeatures
	phases := 1
	for i, p := range convPoints(a, n.Input(0).Shape()) {
		x := &convAxis{convPoint: p, results: s.outSpatial[i], window: s.kernelExtent[i], phases: 1, batch: len(c.Batch)}
		if p.stride == 1 && p.rhsDilation == 1 && phase != ir.Undivided {
			x.phases = p.lhsDilation
		}
		switch unequal := x.results%x.phases != 0 || x.window%x.phases != 0; {
		case unequal && phase >= 0:
			own := max(1, min(x.phases, x.results))
			x.batch, x.phase = -1, phase/phases%own
			x.first = positiveRem(x.lo-x.phase, x.phases)
			phases *= own
		case x.phases > 1:
			c.Batch = append(c.Batch, x.phases)
			if x.results%x.phases != 0 {
				c.Ends, _ = n.Types()[0].Shape.Ints()
			}
		}
		c.M[v.free.spatial[i]], c.K[v.inner.spatial[i]] = x.count(), x.taps()
		v.axes = append(v.axes, x)
	}
	if len(c.Batch) == 0 && runtime.GOOS != "js" { // whose targets have no copies by windows
		c.Windows = convWindows(a, v.free, v.inner)
	}
	return c, phases
}

// convSpaces is the spaces of the contraction of a convolution.
type convSpaces struct {
	convSizes
	a           *ConvAttrs
	free, inner spaceOrder
	axes        []*convAxis
}

// group returns coordinate rest of a group, each of which has a number of them.
func (v *convSpaces) group(batch ir.Index, each int, rest scalar.Expr) scalar.Expr {
	if v.groups == 1 {
		return rest
	}
	return scalar.Add(scalar.Mul(batch[0], loop.Int(each)), rest)
}

func (v *convSpaces) lhs(batch, m, k ir.Index) (at ir.Index, valid scalar.Expr) {
	at = make(ir.Index, len(v.a.Lhs))
	image, feature := m[v.free.other], k[v.inner.other]
	if v.batchGroups {
		image = v.group(batch, v.batch, image)
	} else {
		feature = v.group(batch, v.inFeatures, feature)
	}
	at[v.a.Lhs[0]], at[v.a.Lhs[1]] = image, feature
	for i, x := range v.axes {
		pos, ok := x.position(batch, m[v.free.spatial[i]], k[v.inner.spatial[i]])
		at[v.a.Lhs[i+2]], valid = pos, both(valid, ok)
	}
	return at, valid
}

func (v *convSpaces) rhs(batch, n, k ir.Index) (at ir.Index, valid scalar.Expr) {
	at = make(ir.Index, len(v.a.Rhs))
	at[v.a.Rhs[0]], at[v.a.Rhs[1]] = v.group(batch, v.outFeatures, n[0]), k[v.inner.other]
	for i, x := range v.axes {
		tap, ok := x.tap(batch, k[v.inner.spatial[i]])
		at[v.a.Rhs[i+2]], valid = tap, both(valid, ok)
	}
	return at, valid
}

func (v *convSpaces) out(batch, m, n ir.Index) ir.Index {
	at := make(ir.Index, len(v.a.Out))
	at[v.a.Out[0]], at[v.a.Out[1]] = m[v.free.other], v.group(batch, v.outFeatures, n[0])
	for i, x := range v.axes {
		at[v.a.Out[i+2]] = x.result(batch, m[v.free.spatial[i]])
	}
	return at
}

// convAxis is a spatial axis of a convolution as its contraction has it: with the results and the window
// in phases by the remainder of a dilated lhs, so that zeros between its elements are not multiplied. In
// phase r of d are the results d·q + r, and window positions d·j + t for the t that makes the sum of both
// less the padding a multiple of d. The phases are an axis of the batch, in which all have as many results and
// window positions as the largest, or the axis has one of them.
type convAxis struct {
	convPoint
	results, window int
	phases          int // 1: not divided
	batch           int // the axis of the phases in the batch, -1 for one phase:
	phase, first    int // its r and t
}

// count is the number of results of a phase.
func (x *convAxis) count() int { return (x.results - x.phase + x.phases - 1) / x.phases }

// taps is the number of window positions of a phase.
func (x *convAxis) taps() int { return (x.window - x.first + x.phases - 1) / x.phases }

// in returns the phase at a position of the batch.
func (x *convAxis) in(batch ir.Index) scalar.Expr {
	if x.batch < 0 {
		return loop.Int(x.phase)
	}
	return batch[x.batch]
}

// offset returns the floored quotient and the remainder of the padding less the phase by the phases.
func (x *convAxis) offset(batch ir.Index) (quotient, remainder scalar.Expr) {
	low := positiveRem(x.lo, x.phases)
	rest := scalar.Sub(loop.Int(low+x.phases), x.in(batch))
	return scalar.Sub(scalar.Div(rest, loop.Int(x.phases)), loop.Int((low-x.lo)/x.phases+1)), scalar.Rem(rest, loop.Int(x.phases))
}

// positiveRem returns the remainder of a by b that is not negative.
func positiveRem(a, b int) int { return (a%b + b) % b }

// position is [convPoint.at] in scalar code for result q and window position j of a phase: the element of
// lhs, 0 where it is padding, and the condition that it is not (nil if it always holds).
func (x *convAxis) position(batch ir.Index, q, j scalar.Expr) (scalar.Expr, scalar.Expr) {
	if x.phases == 1 {
		i := scalar.Sub(scalar.Add(scalar.Mul(q, loop.Int(x.stride)), scalar.Mul(j, loop.Int(x.rhsDilation))), loop.Int(x.lo))
		last := (x.results-1)*x.stride + (x.window-1)*x.rhsDilation - x.lo
		return strided(i, x.lhsDilation, x.size, -x.lo, last)
	}
	quotient, _ := x.offset(batch)
	low, high, _ := scalar.Range(quotient)
	last := x.count() + x.taps() - 2
	return strided(scalar.Sub(scalar.Add(q, j), quotient), 1, x.size, -int(high), last-int(low))
}

// tap returns window position j of a phase in the kernel, and the condition that the kernel has it.
func (x *convAxis) tap(batch ir.Index, j scalar.Expr) (scalar.Expr, scalar.Expr) {
	if x.phases == 1 {
		return j, nil
	}
	_, remainder := x.offset(batch)
	_, high, _ := scalar.Range(remainder)
	return strided(scalar.Add(scalar.Mul(j, loop.Int(x.phases)), remainder), 1, x.window, 0, (x.taps()-1)*x.phases+int(high))
}

// result returns the position of result q of a phase.
func (x *convAxis) result(batch ir.Index, q scalar.Expr) scalar.Expr {
	if x.phases == 1 {
		return q
	}
	return scalar.Add(scalar.Mul(q, loop.Int(x.phases)), x.in(batch))
}

// convWindows returns the windows of lhs of a convolution without groups, or nil if lhs is dilated.
func convWindows(a *ConvAttrs, free, inner spaceOrder) []ir.Window {
	out := make([]ir.Window, len(a.Lhs))
	out[a.Lhs[0]] = ir.Window{M: free.other, StepM: 1, K: -1}
	out[a.Lhs[1]] = ir.Window{M: -1, K: inner.other, StepK: 1}
	for i, dilation := range a.LhsDilation {
		if dilation != 1 {
			return nil
		}
		out[a.Lhs[i+2]] = ir.Window{M: free.spatial[i], StepM: a.Strides[i], K: inner.spatial[i], StepK: a.RhsDilation[i], Lo: a.PadLo[i]}
	}
	return out
}

// spaceOrder is where a space of a convolution has its spatial axes and the other one, the batch or
// the features.
type spaceOrder struct {
	other   int
	spatial []int
}

// lhsOrder orders the axes of a space as lhs has them in memory; other is the axis of lhs that the
// space has besides the spatial ones.
func lhsOrder(lhs []int, other int) spaceOrder {
	before := func(axis int) (count int) {
		for _, x := range append(lhs[2:len(lhs):len(lhs)], other) {
			if x < axis {
				count++
			}
		}
		return count
	}
	o := spaceOrder{other: before(other)}
	for _, axis := range lhs[2:] {
		o.spatial = append(o.spatial, before(axis))
	}
	return o
}

// transposeConv writes the transpose by either operand as a convolution again.
func transposeConv(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	out := make([]ir.Value, 2)
	if !ct[0].Valid() || !onlyLinear(b, n, linear, 0, 1) {
		return out
	}
	if linear[0] {
		out[0] = convLhs(b, n, in[1], ct[0])
	} else {
		out[1] = convRhs(b, n, in[0], ct[0])
	}
	return out
}

// convLhs is the transpose by lhs: the cotangent, dilated by the strides, is convolved
// with the reversed kernel, whose input and output features are swapped. Groups stay
// separate: their input features become output features, group after group.
func convLhs(b *ir.Builder, n *ir.Node, w, ct ir.Value) ir.Value {
	a := n.Attrs().(*ConvAttrs)
	t := ConvAttrs{
		Strides: a.LhsDilation, LhsDilation: a.Strides, RhsDilation: a.RhsDilation,
		Lhs: a.Out, Rhs: swapFirst(a.Rhs), Out: a.Lhs,
		FeatureGroups: a.FeatureGroups.Mul(a.BatchGroups), BatchGroups: ir.N(1),
	}
	for i := range a.Strides {
		in, window, out := convExtents(n, i)
		lo := window.Sub(ir.N(a.PadLo[i] + 1))
		t.PadLo = append(t.PadLo, constantOf(b, n, lo))
		t.PadHi = append(t.PadHi, constantOf(b, n, in.Add(window).Sub(ir.N(1)).Sub(out).Sub(lo)))
	}
	if !t.FeatureGroups.Is(1) {
		w = regroup(b, w, a.Rhs[0], a.Rhs[1], t.FeatureGroups)
	}
	x := ConvGeneral(b, ct, Reverse(b, w, a.Rhs[2:]...), t)
	if !a.BatchGroups.Is(1) {
		x = regroup(b, x, a.Lhs[1], a.Lhs[0], a.BatchGroups)
	}
	return x
}

// convRhs is the transpose by rhs: lhs is convolved with the cotangent, with strides and
// kernel dilation swapped. The batch is contracted, so it is the feature axis here.
// Feature groups become batch groups and vice versa.
func convRhs(b *ir.Builder, n *ir.Node, x, ct ir.Value) ir.Value {
	a := n.Attrs().(*ConvAttrs)
	t := ConvAttrs{
		Strides: a.RhsDilation, LhsDilation: a.LhsDilation, RhsDilation: a.Strides, PadLo: a.PadLo,
		Lhs: swapFirst(a.Lhs), Rhs: swapFirst(a.Out), Out: swapFirst(a.Rhs),
		FeatureGroups: a.BatchGroups, BatchGroups: a.FeatureGroups,
	}
	for i := range a.Strides {
		in, window, out := convExtents(n, i)
		t.PadHi = append(t.PadHi, constantOf(b, n, out.Sub(in).Add(window).Sub(ir.N(a.PadLo[i]+1))))
	}
	return ConvGeneral(b, x, ct, t)
}

// convExtents returns the extents along spatial axis i of lhs, rhs and the
// result, dilated by their dilations and the strides.
func convExtents(n *ir.Node, i int) (in, window, out ir.Dim) {
	a := n.Attrs().(*ConvAttrs)
	return dilated(n.Input(0).Dim(a.Lhs[i+2]), a.LhsDilation[i]),
		dilated(n.Input(1).Dim(a.Rhs[i+2]), a.RhsDilation[i]),
		dilated(n.Result(0).Dim(a.Out[i+2]), a.Strides[i])
}

// constantOf returns a padding as a number. It is constant even along a symbolic axis
// unless strides skip the end of the axis.
func constantOf(b *ir.Builder, n *ir.Node, d ir.Dim) int {
	const large = 1 << 30 // makes negative numbers valid sizes
	x, ok := d.Add(ir.N(large)).Const()
	if !ok {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "the padding of the transposed convolution, %s, depends on a symbolic size", d)))
	}
	return x - large
}

// swapFirst returns axes with the first two swapped.
func swapFirst(axes []int) []int {
	return slices.Concat([]int{axes[1], axes[0]}, axes[2:])
}

// regroup splits an axis into groups and concatenates them along another axis.
func regroup(b *ir.Builder, x ir.Value, from, to int, groups ir.Dim) ir.Value {
	return mergeAxes(b, MoveAxis(b, splitAxis(b, x, from, groups), from, to), to)
}

// batchConv folds the batch axis into another one: the batch of lhs, the output features
// of rhs, or, if both operands have it, the groups.
func batchConv(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	a := *n.Attrs().(*ConvAttrs)
	x, w := in[0], in[1]
	batch, feature, major := a.Out[0], a.Out[1], a.FeatureGroups.Mul(a.BatchGroups)
	one := ir.N(1)
	var y ir.Value
	switch {
	case axes[1] < 0:
		x = foldBatch(b, x, axes[0], a.Lhs[0], a.BatchGroups)
		y = unfoldBatch(b, ConvGeneral(b, x, w, a), batch, one, size)
	case axes[0] < 0:
		w = foldBatch(b, w, axes[1], a.Rhs[0], major)
		y = unfoldBatch(b, ConvGeneral(b, x, w, a), feature, major, size)
	default:
		along := a.Lhs[1]
		if a.BatchGroups.Is(1) {
			a.FeatureGroups = a.FeatureGroups.Mul(size)
		} else {
			along, a.BatchGroups = a.Lhs[0], a.BatchGroups.Mul(size)
		}
		x, w = foldBatch(b, x, axes[0], along, one), foldBatch(b, w, axes[1], a.Rhs[0], one)
		y = unfoldBatch(b, ConvGeneral(b, x, w, a), feature, one, size)
	}
	return []ir.Value{y}, []int{0}
}

// foldBatch merges the batch axis of x into another axis, inside the major part of that
// one. The axis is numbered as without the batch axis.
func foldBatch(b *ir.Builder, x ir.Value, batch, axis int, major ir.Dim) ir.Value {
	x = MoveAxis(b, x, batch, 0)
	if major.Is(1) {
		return mergeAxes(b, MoveAxis(b, x, 0, axis), axis)
	}
	x = MoveAxis(b, splitAxis(b, x, axis+1, major), 0, axis+1)
	return mergeAxes(b, mergeAxes(b, x, axis), axis)
}

// unfoldBatch is the inverse of [foldBatch]; the batch axis becomes the first.
func unfoldBatch(b *ir.Builder, x ir.Value, axis int, major, size ir.Dim) ir.Value {
	if major.Is(1) {
		return MoveAxis(b, splitAxis(b, x, axis, size), axis, 0)
	}
	x = splitAxis(b, splitAxis(b, x, axis, major), axis+1, size)
	return mergeAxes(b, MoveAxis(b, x, axis+1, 0), axis+1)
}
