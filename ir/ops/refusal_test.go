package ops_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// refusals are operands and attributes that an op must not accept: the kind of
// the error, and what its text says about the sizes.
var refusals = map[string]struct {
	in    []ir.Type
	build func(b *ir.Builder, in values)
	kind  error
	says  string
}{
	"matrix product of sizes that differ": {types("f32[2,3]", "f32[4,5]"), discard(matMul), ir.ErrShape, "matmul(f32[2,3], f32[4,5]): shape mismatch: rows of [2,3] have 3 elements, columns of [4,5] have 4"},
	"matrix product of types that differ": {types("f32[2,3]", "f16[3,5]"), discard(matMul), ir.ErrDType, "f16[3,5]"},
	"matrix product of a scalar":          {types("f32[]", "f32[3]"), discard(matMul), ir.ErrShape, "rank 1 or more"},
	"matrix product of batches that differ": {
		types("f32[2,3,4]", "f32[5,4,3]"), discard(matMul), ir.ErrShape, "[5]",
	},
	"matrix product over different symbols": {types("f32[2,n]", "f32[m,3]"), discard(matMul), ir.ErrShape, "have n elements"},
	"sum of shapes that differ":             {types("f32[2,3]", "f32[4]"), sum, ir.ErrShape, "[2,3] and [4] cannot be broadcast together: axis -1 has the sizes 3 and 4"},
	"choice of shapes that differ": {
		types("bool[]", "f32[5,1]", "f32[3,4]"),
		func(b *ir.Builder, in values) { ops.Select(b, in[0], in[1], in[2]) }, ir.ErrShape, "[5,1] and [3,4] cannot be broadcast together: axis -2 has the sizes 5 and 3",
	},
	"sum with a constant of another type":    {types("f32[2,3]", "i32[]"), sum, ir.ErrDType, "y is i32, not f32 as x is"},
	"choice by a number":                     {types("f32[]", "f32[2]", "f32[2]"), func(b *ir.Builder, in values) { ops.Select(b, in[0], in[1], in[2]) }, ir.ErrDType, "select(f32[], f32[2], f32[2])"},
	"attention of other lengths":             {types("f32[4,3]", "f32[5,2]", "f32[5,2]"), discard(attention(ops.AttentionAttrs{})), ir.ErrShape, "queries have 3 elements, keys have 2"},
	"attention of other counts":              {types("f32[4,3]", "f32[5,3]", "f32[6,3]"), discard(attention(ops.AttentionAttrs{})), ir.ErrShape, "there are 5 keys and 6 values"},
	"attention of other batches":             {types("f32[2,4,3]", "f32[2,5,3]", "f32[1,5,3]"), discard(attention(ops.AttentionAttrs{})), ir.ErrShape, "axes of k before the last two are [2], those of v [1]"},
	"attention of types that differ":         {types("f32[4,3]", "f16[5,3]", "f32[5,3]"), discard(attention(ops.AttentionAttrs{})), ir.ErrDType, "q is f32, k f16 and v f32"},
	"softmax along an axis before the first": {types("f32[3,4]"), func(b *ir.Builder, in values) { ops.Softmax(b, in[0], -3) }, ir.ErrAttr, "axis -3 is out of range: the value has rank 2"},
	"glu of an odd axis":                     {types("f32[3,5]"), func(b *ir.Builder, in values) { ops.Glu(b, in[0], -1) }, ir.ErrShape, "axis 1 of size 5 does not divide into 2 parts"},
	"softplus of integers":                   {types("i32[3]"), func(b *ir.Builder, in values) { ops.Softplus(b, in[0]) }, ir.ErrDType, ", not float"},
	"elu with an infinite alpha":             {types("f32[3]"), func(b *ir.Builder, in values) { ops.Elu(b, in[0], math.Inf(1)) }, ir.ErrAttr, "alpha is +Inf"},
	"hypot of types that differ":             {types("f32[3]", "f16[3]"), func(b *ir.Builder, in values) { ops.Hypot(b, in[0], in[1]) }, ir.ErrDType, "y is f16, not f32 as x is"},
	"cosine of types that differ":            {types("f32[3]", "f16[3]"), func(b *ir.Builder, in values) { ops.CosineSimilarity(b, in[0], in[1], 0, 1e-8) }, ir.ErrDType, "y is f16"},
	"mod of sizes that differ":               {types("i32[3]", "i32[4]"), func(b *ir.Builder, in values) { ops.Mod(b, in[0], in[1]) }, ir.ErrShape, "[3] and [4] cannot be broadcast"},
	"nextafter of f16":                       {types("f16[3]", "f16[3]"), func(b *ir.Builder, in values) { ops.NextAfter(b, in[0], in[1]) }, ir.ErrDType, "f16, not f32 or f64"},
	"loss of another shape":                  {types("f32[3]", "f32[4]"), func(b *ir.Builder, in values) { ops.MSE(b, in[0], in[1], "") }, ir.ErrShape, "target is [4]"},
	"loss of an unknown reduction":           {types("f32[3]", "f32[3]"), func(b *ir.Builder, in values) { ops.MSE(b, in[0], in[1], "max") }, ir.ErrAttr, `reduction is "max"`},
	"huber without a delta":                  {types("f32[3]", "f32[3]"), func(b *ir.Builder, in values) { ops.Huber(b, in[0], in[1], 0, "") }, ir.ErrAttr, "delta is 0"},
	"class loss with other weights":          {types("f32[3,4]", "i32[3]", "f32[3]"), func(b *ir.Builder, in values) { ops.NLL(b, in[0], in[1], in[2], ops.ClassLossAttrs{Axis: 1}) }, ir.ErrShape, "the weight is f32[3], not f32[4]"},
	"split into parts too short":             {types("f32[5]"), func(b *ir.Builder, in values) { ops.Split(b, in[0], 0, ir.N(2), ir.N(2)) }, ir.ErrShape, "make up 4 elements of axis 0, of size 5"},
	"stack of types that differ":             {types("f32[2]", "f32[3]"), func(b *ir.Builder, in values) { ops.Stack(b, 0, in...) }, ir.ErrShape, "operand 1 is [3]"},
	"tile with a list short":                 {types("f32[2,3]"), func(b *ir.Builder, in values) { ops.Tile(b, in[0], 2) }, ir.ErrAttr, "repeats is [2]: it must have an entry for each of 2 axes, none negative"},
	"reflection of a short axis":             {types("f32[3]"), func(b *ir.Builder, in values) { ops.PadMode(b, in[0], []int{3}, []int{0}, ops.PadReflect) }, ir.ErrShape, "axis 0 of size 3 is too short for 3"},
	"trace of a vector":                      {types("f32[3]"), func(b *ir.Builder, in values) { ops.Trace(b, in[0], 0) }, ir.ErrShape, "x is f32[3], not of rank 2 or more"},
	"einsum of too few operands":             {types("f32[3]"), func(b *ir.Builder, in values) { ops.Einsum(b, "i,j", in[0]) }, ir.ErrAttr, "equation \"i,j\" names 2 operands, not 1"},
	"einsum of other axes":                   {types("f32[3]"), func(b *ir.Builder, in values) { ops.Einsum(b, "ij->i", in[0]) }, ir.ErrAttr, `"ij" names 2 axes of operand 0`},
	"einsum of sizes that differ":            {types("f32[3]", "f32[4]"), func(b *ir.Builder, in values) { ops.Einsum(b, "i,i", in...) }, ir.ErrShape, `axes "i" have the sizes 3 and 4`},
	"einsum of an axis from nowhere":         {types("f32[3]"), func(b *ir.Builder, in values) { ops.Einsum(b, "i->ij", in...) }, ir.ErrAttr, `no operand has the axis "j"`},
	"tensordot over too many axes":           {types("f32[3]", "f32[3,4]"), func(b *ir.Builder, in values) { ops.TensorDot(b, in[0], in[1], 2) }, ir.ErrAttr, "count, of axes, is 2"},
	"group_norm of odd groups":               {types("f32[2,5,6]", "f32[6]"), func(b *ir.Builder, in values) { ops.GroupNorm(b, in[0], in[1], ir.Value{}, 4, 1e-5) }, ir.ErrShape, "6 channels do not divide into 4 groups"},
	"conv_transpose of other channels": {types("f32[1,5,6]", "f32[3,4,2]"), func(b *ir.Builder, in values) {
		ops.ConvTranspose(b, in[0], in[1], ir.Value{}, ops.ConvTransposeAttrs{})
	}, ir.ErrShape, "x has 6 channels, the weight takes 4"},
	"resize of nothing":            {types("f32[1,0,6]"), func(b *ir.Builder, in values) { ops.Resize(b, in[0], ops.ResizeAttrs{Sizes: []int{3}}) }, ir.ErrShape, "axis 1 of size 0 cannot be resized to 3"},
	"reshape that does not divide": {types("f32[7]"), func(b *ir.Builder, in values) { ops.Reshape(b, in[0], ir.N(2), ir.N(-1)) }, ir.ErrShape, "7 elements do not divide into [2]"},
	"truncated normal of nothing":  {types("u32[2]"), func(b *ir.Builder, in values) { ops.TruncatedNormal(b, in[0], 1, 1, ir.F32) }, ir.ErrAttr, "low is 1, not below high, 1"},
	"dot_general over an axis twice": {
		types("f32[2,2]", "f32[2,2]"),
		func(b *ir.Builder, in values) {
			ops.DotGeneral(b, in[0], in[1], ops.DotAttrs{LhsContract: []int{0, 0}, RhsContract: []int{0, 1}})
		},
		ir.ErrAttr, "axis 0 is named twice",
	},
	"dot_general over an axis that is not there": {
		types("f32[2]", "f32[2]"),
		func(b *ir.Builder, in values) {
			ops.DotGeneral(b, in[0], in[1], ops.DotAttrs{LhsContract: []int{1}, RhsContract: []int{0}})
		},
		ir.ErrAttr, "lhs_contract has axis 1 and rhs_contract axis 0, of operands of rank 1 and 1",
	},
	"convolution of other features":  {types("f32[1,4,5,5]", "f32[2,3,3,3]"), discard(conv(ops.ConvAttrs{})), ir.ErrShape, "has 4 features on axis 1, the kernel takes 3"},
	"convolution of other ranks":     {types("f32[1,4,5]", "f32[2,4,3,3]"), discard(conv(ops.ConvAttrs{})), ir.ErrShape, "rank 3 and rhs of rank 4"},
	"convolution with stride 0":      {types("f32[1,4,5]", "f32[2,4,3]"), discard(conv(ops.ConvAttrs{Strides: []int{0}})), ir.ErrAttr, "strides has 0, lhs_dilation 1 and rhs_dilation 1: they must be 1 or more"},
	"convolution with a list short":  {types("f32[1,4,5,5]", "f32[2,4,3,3]"), discard(conv(ops.ConvAttrs{PadLo: []int{1}})), ir.ErrAttr, "strides, pad_lo, pad_hi, lhs_dilation or rhs_dilation has 1 entries, not one for each of 2 spatial axes"},
	"convolution with odd groups":    {types("f32[1,6,5]", "f32[4,2,3]"), discard(conv(ops.ConvAttrs{FeatureGroups: ir.N(3)})), ir.ErrShape, "4 output features do not divide into 3"},
	"convolution with both groups":   {types("f32[4,4,5]", "f32[4,2,3]"), discard(conv(ops.ConvAttrs{FeatureGroups: ir.N(2), BatchGroups: ir.N(2)})), ir.ErrAttr, "feature_groups is 2 and batch_groups 2: they must be positive, and one of them 1"},
	"conv2d with a weight too long":  {types("f32[1,4,4,2]", "f32[5,5,2,3]"), conv2D(ops.Conv2DAttrs{}), ir.ErrShape, "longer than 4 elements padded by 0 and 0"},
	"conv2d of rank 3":               {types("f32[4,4,2]", "f32[3,3,2,3]"), conv2D(ops.Conv2DAttrs{}), ir.ErrShape, "x of rank 3"},
	"conv2d with a wrong bias":       {types("f32[1,4,4,2]", "f32[3,3,2,3]", "f32[2]"), conv2D(ops.Conv2DAttrs{}), ir.ErrShape, "not f32[3]"},
	"windows of size 0":              {types("f32[5]"), windows(ops.WindowsAttrs{Axes: []int{0}, Sizes: []int{0}}), ir.ErrAttr, "sizes has 0, strides 1 and dilations 1: they must be 1 or more"},
	"windows along an axis twice":    {types("f32[5]"), windows(ops.WindowsAttrs{Axes: []int{0, -1}, Sizes: []int{1, 1}}), ir.ErrAttr, "axis 0 is named twice"},
	"windows with sizes left out":    {types("f32[5]"), windows(ops.WindowsAttrs{Axes: []int{0}}), ir.ErrAttr, "sizes, strides and dilations have 0, 1 and 1 entries, not one for each of 1 axes"},
	"pool longer than the image":     {types("f32[1,3,3,2]"), maxPool(ops.PoolAttrs{Sizes: []int{2, 4}}), ir.ErrShape, "sizes and dilations make a window of 4, longer than 3 elements padded by 0 and 0"},
	"pool padded by its whole size":  {types("f32[1,3,3,2]"), maxPool(ops.PoolAttrs{Sizes: []int{2, 2}, PadLo: []int{2, 0}}), ir.ErrAttr, "pad_lo is 2 and pad_hi 0, not in [0, 2), the extent of a window"},
	"pool of a matrix":               {types("f32[3,3]"), maxPool(ops.PoolAttrs{}), ir.ErrShape, "f32[3,3]"},
	"pool with a size short":         {types("f32[1,3,3,2]"), maxPool(ops.PoolAttrs{Sizes: []int{2}}), ir.ErrAttr, "sizes, pad_lo and pad_hi have 1, 1 and 1 entries, not one for each of 2 spatial axes"},
	"softmax along no axis":          {types("f32[3]"), func(b *ir.Builder, in values) { ops.Softmax(b, in[0], 1) }, ir.ErrAttr, "axis 1 is out of range: the value has rank 1"},
	"softmax of integers":            {types("i32[3]"), func(b *ir.Builder, in values) { ops.Softmax(b, in[0], 0) }, ir.ErrDType, "i32"},
	"loss with float labels":         {types("f32[3,4]", "f32[3]"), loss, ir.ErrDType, "f32"},
	"loss with other labels":         {types("f32[3,4]", "i32[4]"), loss, ir.ErrShape, "labels are [4]"},
	"linear of other features":       {types("f32[3,4]", "f32[5,6]"), linear, ir.ErrShape, "4 features, the weight takes 5"},
	"linear with a wrong bias":       {types("f32[3,4]", "f32[4,6]", "f32[1]"), linear, ir.ErrShape, "not f32[6]"},
	"gather by floats":               {types("f32[3]", "f32[2,1]"), gather(ops.IndexedAxes{Axes: []int{0}}), ir.ErrDType, "f32[2,1]"},
	"gather by tuples of other size": {types("f32[3]", "i32[2,2]"), gather(ops.IndexedAxes{Axes: []int{0}}), ir.ErrShape, "not of size 1, that of axes"},
	"gather by no tuple":             {types("f32[3]", "i32[]"), gather(ops.IndexedAxes{Axes: []int{0}}), ir.ErrShape, "size 1"},
	"gather that does what outside":  {types("f32[3]", "i32[2,1]"), gather(ops.IndexedAxes{Axes: []int{0}, Outside: "wrap"}), ir.ErrAttr, `"wrap"`},
	"take along an axis not there": {
		types("f32[3]", "i32[2]"), func(b *ir.Builder, in values) { ops.Take(b, in[0], in[1], 4, "") }, ir.ErrAttr, "axis 4",
	},
	"scatter of updates of other shape": {
		types("f32[3,2]", "i32[4,1]", "f32[4,3]"),
		func(b *ir.Builder, in values) {
			ops.ScatterAdd(b, in[0], in[1], in[2], ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
		},
		ir.ErrShape, "updates are [4,3], not [4,2] as the indices require",
	},
	"sort along no axis": {types("f32[]"), func(b *ir.Builder, in values) { ops.ArgSort(b, in[0], ops.SortAttrs{}) }, ir.ErrAttr, "rank 0"},
	"sort with a payload of other shape": {
		types("f32[3]", "f32[4]"), func(b *ir.Builder, in values) { ops.Sort(b, ops.SortAttrs{}, in[0], in[1]) }, ir.ErrShape, "f32[4]",
	},
	"top_k of more than there are": {types("f32[3]"), func(b *ir.Builder, in values) { ops.TopK(b, in[0], ops.TopKAttrs{K: 4}) }, ir.ErrAttr, "k is 4"},
	"recurrence of no square of factors": {
		types("f32[3]", "f32[3]", "f32[3]"), func(b *ir.Builder, in values) { ops.LinearRecurrences(b, in[:2], in[2:], ops.CumSumAttrs{}) },
		ir.ErrShape, "3 operands",
	},
	"combination that is not elementwise": {
		types("f32[3]"), func(b *ir.Builder, in values) {
			ops.AssociativeScan(b, ops.AssociativeAttrs{}, in, func(b *ir.Builder, x, y []ir.Value) []ir.Value {
				return []ir.Value{ops.ReduceSum(b, ops.Reshape(b, ops.Add(b, x[0], y[0]), ir.N(1)))}
			})
		}, ir.ErrGraph, "not elementwise",
	},
	"combination of two shapes": {
		types("f32[3]", "f32[4]"), func(b *ir.Builder, in values) {
			ops.AssociativeScan(b, ops.AssociativeAttrs{}, in, func(_ *ir.Builder, x, _ []ir.Value) []ir.Value { return x })
		}, ir.ErrShape, "not one shape",
	},
	"cumsum along no axis":   {types("f32[]"), func(b *ir.Builder, in values) { ops.CumSum(b, in[0], ops.CumSumAttrs{}) }, ir.ErrAttr, "rank 0"},
	"random bits by a float": {types("f32[2]"), func(b *ir.Builder, in values) { ops.RandomBits(b, in[0]) }, ir.ErrDType, "f32[2]"},
	"random integers":        {types("u32[2]"), func(b *ir.Builder, in values) { ops.Uniform(b, in[0], ir.I32) }, ir.ErrDType, "i32"},
	"random bits by a generator that is none": {
		types("u32[2]"), func(b *ir.Builder, in values) { ops.Generator("mersenne").Bits(b, in[0]) }, ir.ErrAttr, `"mersenne"`,
	},
	"uniform numbers by a generator that is none": {
		types("u32[2]"), func(b *ir.Builder, in values) { ops.Generator("both").Uniform(b, in[0], ir.F32) }, ir.ErrAttr, `"both"`,
	},
	"dropout of more than all": {
		types("f32[3]", "u32[2]"), func(b *ir.Builder, in values) { ops.Dropout(b, in[0], in[1], 1.5) }, ir.ErrAttr, "1.5",
	},
	"norm with another scale": {
		types("f32[3,4]", "f32[3]"), func(b *ir.Builder, in values) { ops.RMSNorm(b, in[0], in[1], 1e-5) }, ir.ErrShape, "f32[3], not f32[4]",
	},
	"attention of other sizes": {types("f32[5,4]", "f32[6,3]", "f32[6,3]"), discard(attention(ops.AttentionAttrs{})), ir.ErrShape, "f32[6,3]"},
	"attention of other heads": {
		types("f32[5,2,4]", "f32[2,2,4]", "f32[2,2,4]"), discard(attention(ops.AttentionAttrs{})), ir.ErrShape, "size 5, of k 2",
	},
	"attention with a mask too large": {
		types("f32[5,4]", "f32[6,4]", "f32[6,4]", "bool[6,6]"), discard(attention(ops.AttentionAttrs{})), ir.ErrShape, "[6,6]",
	},
	"attention with a default scale of a symbol": {
		types("f32[5,n]", "f32[6,n]", "f32[6,4]"), discard(attention(ops.AttentionAttrs{})), ir.ErrAttr, "not n",
	},
	"cond on a number": {
		types("f32[]"), func(b *ir.Builder, in values) { ops.Cond(b, in[0], nil, nothing, nothing) }, ir.ErrDType, "bool[]",
	},
	"cond of branches that differ": {
		types("bool[]", "f32[2]"),
		func(b *ir.Builder, in values) {
			ops.Cond(b, in[0], in[1:], identity, func(b *ir.Builder, in values) values { return values{ops.ReduceSum(b, in[0])} })
		},
		ir.ErrShape, "f32[2] of one graph and f32[]",
	},
	"scan that changes its carry": {
		types("f32[2]", "f32[3,2]"),
		func(b *ir.Builder, in values) {
			ops.Scan(b, ops.Loop{Carries: in[:1], Xs: in[1:], Body: func(b *ir.Builder, _, c, _ values) (values, values) {
				return values{ops.ReduceSum(b, c[0])}, nil
			}})
		},
		ir.ErrShape, "carry 0 is f32[2] before a step and f32[] after",
	},
	"scan of lengths that differ": {
		types("f32[2]", "f32[3]"),
		func(b *ir.Builder, in values) {
			ops.Scan(b, ops.Loop{Xs: in, Body: func(_ *ir.Builder, _, _, _ values) (values, values) { return nil, nil }})
		},
		ir.ErrShape, "whose first axis is not of size 2",
	},
	"scan over a scalar": {
		types("f32[]"),
		func(b *ir.Builder, in values) {
			ops.Scan(b, ops.Loop{Xs: in, Length: ir.N(2), Body: func(_ *ir.Builder, _, _, _ values) (values, values) { return nil, nil }})
		},
		ir.ErrShape, "f32[]",
	},
	"scan that loses a carry": {
		types("f32[]"),
		func(b *ir.Builder, in values) {
			ops.Scan(b, ops.Loop{Carries: in, Length: ir.N(2), Body: func(_ *ir.Builder, _, _, _ values) (values, values) { return nil, nil }})
		},
		ir.ErrGraph, "0 values for 1 carries",
	},
	"value of the graph around a step": {
		types("f32[]"),
		func(b *ir.Builder, in values) {
			ops.Scan(b, ops.Loop{Carries: in, Length: ir.N(2), Body: func(b *ir.Builder, _, c, _ values) (values, values) {
				return values{ops.Add(b, c[0], in[0])}, nil
			}})
		},
		ir.ErrGraph, "another graph",
	},
}

func discard(f func(b *ir.Builder, in values) ir.Value) func(b *ir.Builder, in values) {
	return func(b *ir.Builder, in values) { f(b, in) }
}

func last(in values, i int) ir.Value {
	if i < len(in) {
		return in[i]
	}
	return ir.Value{}
}

func conv2D(a ops.Conv2DAttrs) func(b *ir.Builder, in values) {
	return func(b *ir.Builder, in values) { ops.Conv2D(b, in[0], in[1], last(in, 2), a) }
}

func windows(a ops.WindowsAttrs) func(b *ir.Builder, in values) {
	return func(b *ir.Builder, in values) { ops.Windows(b, in[0], a) }
}

func maxPool(a ops.PoolAttrs) func(b *ir.Builder, in values) {
	return func(b *ir.Builder, in values) { ops.MaxPool(b, in[0], a) }
}

func gather(a ops.IndexedAxes) func(b *ir.Builder, in values) {
	return func(b *ir.Builder, in values) { ops.Gather(b, in[0], in[1], ops.GatherAttrs{IndexedAxes: a}) }
}

func loss(b *ir.Builder, in values)   { ops.CrossEntropy(b, in[0], in[1]) }
func linear(b *ir.Builder, in values) { ops.Linear(b, in[0], in[1], last(in, 2)) }

func nothing(*ir.Builder, values) values       { return nil }
func identity(_ *ir.Builder, in values) values { return in }

// types reads types as in the text form; sizes may be symbols.
func types(list ...string) []ir.Type {
	var out []ir.Type
	for _, s := range list {
		name, dims, _ := strings.Cut(strings.TrimSuffix(s, "]"), "[")
		t := ir.Type{}
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.C64, ir.F16, ir.I32, ir.U32, ir.U8, ir.Bool} {
			if d.String() == name {
				t.DType = d
			}
		}
		for _, d := range strings.FieldsFunc(dims, func(r rune) bool { return r == ',' }) {
			size, err := ir.ParseDim(d)
			if err != nil {
				panic(err)
			}
			t.Shape = append(t.Shape, size)
		}
		out = append(out, t)
	}
	return out
}

func sum(b *ir.Builder, in values) { ops.Add(b, in[0], in[1]) }

func TestRefusalsNameOperandAndRequirement(t *testing.T) {
	for name, c := range refusals {
		t.Run(name, func(t *testing.T) {
			_, err := ir.Build("bad", func(b *ir.Builder) {
				var in values
				for i, t := range c.in {
					in = append(in, b.Port(ir.InputPort, "x"+strconv.Itoa(i), t))
				}
				c.build(b, in)
			})
			if !errors.Is(err, c.kind) {
				t.Fatalf("the error is %v, want one of kind %v", err, c.kind)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error %q does not say %q", err, c.says)
			}
		})
	}
}

// TestLabelsOutOfRangeAreErrors runs ops on indices that are out of range.
func TestLabelsOutOfRangeAreErrors(t *testing.T) {
	for name, build := range map[string]func(b *ir.Builder, x, i ir.Value) ir.Value{
		"cross_entropy": func(b *ir.Builder, x, i ir.Value) ir.Value { return ops.CrossEntropy(b, x, i) },
		"embedding":     ops.Embedding,
	} {
		for _, bad := range []int64{-1, 3} {
			g, err := ir.Build(name, func(b *ir.Builder) {
				x := b.Input("x", ir.F32, ir.N(3), ir.N(3))
				b.Output("y", build(b, x, b.Input("i", ir.I32, ir.N(3))))
			})
			if err != nil {
				t.Fatal(err)
			}
			in := map[string]*ir.Array{"x": ir.NewArray(ir.F32, 3, 3), "i": ir.Ints(ir.I32, []int64{0, bad, 2})}
			if _, err := ir.Eval(g, in, ir.EvalOptions{}); !errors.Is(err, ir.ErrIndex) {
				t.Errorf("%s of index %d: the error is %v", name, bad, err)
			}
		}
	}
}
