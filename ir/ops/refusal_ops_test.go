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

func list(in ...string) []string { return in }

// refusedOps are operands and attributes that ops must not accept, by name: the
// kind of the error, and what its text says.
var refusedOps = []struct {
	op    ir.Op
	attrs ir.Attrs
	in    []string
	kind  error
	says  string
}{
	{ops.OpDynamicSlice, &ops.DynamicSliceAttrs{Sizes: ir.Dims(5)}, list("f32[4]", "i32[1]"), ir.ErrShape, "a part of 5 elements along axis 0 of size 4"},
	{ops.OpDynamicSlice, &ops.DynamicSliceAttrs{Sizes: ir.Dims(2)}, list("f32[4,3]", "i32[2]"), ir.ErrShape, "sizes has 1 entries, not one for each of 2 axes"},
	{ops.OpDynamicSlice, &ops.DynamicSliceAttrs{Sizes: ir.Dims(2)}, list("f32[4]", "i32[]"), ir.ErrShape, "start is i32[], not i32[1]"},
	{ops.OpDynamicUpdateSlice, nil, list("f32[4]", "f16[2]", "i32[1]"), ir.ErrDType, "the update is f16[2], not of the type of x, f32[4]"},
	{ops.OpSplit, &ops.SplitAttrs{Sizes: ir.Dims(2, 1), Axis: 0}, list("f32[4]"), ir.ErrShape, "make up 3 elements of axis 0, of size 4"},
	{ops.OpUnstack, &ops.AxisAttrs{Axis: 0}, list("f32[n]"), ir.ErrShape, "axis 0 has the symbolic size n"},
	{ops.OpTensorDot, &ops.TensorDotAttrs{Count: 2}, list("f32[3]", "f32[3,4]"), ir.ErrAttr, "count, of axes, is 2"},
	{ops.OpFlatten, &ops.FlattenAttrs{AxisFrom: 2}, list("f32[3]"), ir.ErrAttr, "axis is 2, not from 0 to the rank of x, 1"},
	{ops.OpSearchSorted, &ops.SearchAttrs{}, list("f32[3,2]", "f32[2]"), ir.ErrShape, "sorted is f32[3,2], not of rank 1 and constant size"},
	{ops.OpSegmentReduce, &ops.SegmentAttrs{Segments: ir.N(2), Reduction: "median"}, list("f32[3]", "i32[3]"), ir.ErrAttr, `reduction is "median"`},
	{ops.OpSegmentReduce, &ops.SegmentAttrs{Segments: ir.N(2), Reduction: "mean"}, list("i32[3]", "i32[3]"), ir.ErrDType, "x is i32[3], not float, as a mean needs"},
	{ops.OpSegmentReduce, &ops.SegmentAttrs{Segments: ir.N(2), Reduction: "sum"}, list("f32[3]", "i32[4]"), ir.ErrShape, "ids are [4], not the first axis of x, [3]"},
	{ops.OpUnique, &ops.SizeAttrs{Size: ir.N(2)}, list("f32[n]"), ir.ErrShape, "size is 2, not from 0 to the number of elements of f32[n]"},
	{ops.OpQuantile, &ops.QuantileAttrs{Q: 1.5}, list("f32[3]"), ir.ErrAttr, "q is 1.5"},
	{ops.OpQuantile, &ops.QuantileAttrs{Q: 0.5}, list("f32[0]"), ir.ErrShape, "axis 0 of size 0"},

	{ops.OpLSTM, &ops.RecurrentAttrs{}, list("f32[5,2,3]", "f32[1,2,4]", "f32[1,2,4]", "f32[3,16]"), ir.ErrShape, "1 weights are not four for each layer and direction"},
	{ops.OpLSTM, &ops.RecurrentAttrs{}, list("f32[5,2,3]", "f32[1,2,4]", "f32[1,3,4]", "f32[3,16]", "f32[4,16]", "f32[16]", "f32[16]"), ir.ErrShape, "a carry is f32[1,3,4], not f32[1,2,4]"},
	{ops.OpGRU, &ops.RecurrentAttrs{}, list("f32[5,2,3]", "f32[1,2,4]", "f32[3,12]", "f32[4,16]", "f32[12]", "f32[12]"), ir.ErrShape, "weight 1 is f32[4,16], not f32[4,12]"},
	{ops.OpRNN, &ops.RecurrentAttrs{}, list("f32[5,3]", "f32[1,2,4]"), ir.ErrShape, "x is f32[5,3] and h f32[1,2,4], not both of rank 3"},
	{ops.OpSelectiveScan, nil, list("f32[2,5,3]", "f32[2,5,4]", "f32[3,2]", "f32[2,5,2]", "f32[2,5,2]"), ir.ErrShape, "axis 2 of delta has size 4, not 3"},
	{ops.OpSSD, &ops.ChunkAttrs{Chunk: 2}, list("f32[2,5,3,2]", "f32[2,5,3]", "f32[3]", "f32[2,5,2,4]", "f32[2,5,2,4]"), ir.ErrShape, "3 heads do not divide into 2 groups"},
	{ops.OpSSD, &ops.ChunkAttrs{}, list("f32[2,5,3,2]", "f32[2,5,3]", "f32[3]", "f32[2,5,1,4]", "f32[2,5,1,4]"), ir.ErrAttr, "chunk is 0, less than 1"},
	{ops.OpGatedDelta, &ops.ScaleAttrs{}, list("f32[2,5,3,2]", "f32[2,5,3,2]", "f32[2,5,3]", "f32[2,5,3]", "f32[2,5,3]"), ir.ErrShape, "v has rank 3, not 4"},

	{ops.OpRope, &ops.RopeAttrs{}, list("f32[3,4]", "f32[3,3]", "f32[3,3]"), ir.ErrShape, "x has 4 elements along the last axis, fewer than the tables of 3 pairs rotate"},
	{ops.OpRope, &ops.RopeAttrs{}, list("f32[3,4]", "f32[5,2]", "f32[5,2]"), ir.ErrShape, "tables [5,2] do not broadcast to the pairs [3,2]"},
	{ops.OpRopeTable, &ops.RopeTableAttrs{Size: 3, Base: 10}, list("i32[3]"), ir.ErrAttr, "size is 3 and base 10: size must be even and in [2, 1048576], and base positive"},
	{ops.OpAxialRope, &ops.AxialRopeAttrs{Width: 2, Base: 10}, list("f32[3,6]"), ir.ErrShape, "f32[3,6] is not [..., positions, d]"},
	{ops.OpAxialRope, &ops.AxialRopeAttrs{Base: 10}, list("f32[3,4]"), ir.ErrAttr, "width is 0 and base 10: they must be positive"},
	{ops.OpALiBi, &ops.ALiBiAttrs{Shape: ir.Dims(2, 3)}, nil, ir.ErrAttr, "shape is [2,3]: it must have the sizes that the constraints list, none negative"},
	{ops.OpWindowMask, &ops.WindowMaskAttrs{Shape: ir.Dims(2)}, nil, ir.ErrAttr, "shape is [2]: it must have the sizes that the constraints list, none negative"},
	{ops.OpSinkAttention, &ops.AttentionAttrs{Scale: 1}, list("f32[2,5,4]", "f32[2,5,4]", "f32[2,5,4]", "f32[3]"), ir.ErrShape, "sink is f32[3], not of the type of q, f32[2,5,4], with an element for each head"},
	{ops.OpMoERoute, &ops.MoERouteAttrs{K: 5}, list("f32[7,4]"), ir.ErrAttr, "k is 5, not in [1, 4], the experts, or capacity, 0, is negative"},
	{ops.OpMoERoute, &ops.MoERouteAttrs{K: 1}, list("f32[7]"), ir.ErrShape, "not [tokens, experts]"},
	{ops.OpMoEDispatch, &ops.RowsAttrs{Rows: ir.N(4)}, list("f32[7,4]", "i32[6,2]"), ir.ErrShape, "slots are [6,2], not [7, k], for rows of [7,4]"},
	{ops.OpMoECombine, nil, list("f32[7,4]", "f32[6,2]", "i32[6,1]"), ir.ErrShape, "weights are [6,2], not [6,1] as slots are"},
	{ops.OpGroupedMatMul, &ops.GroupedAttrs{Block: 4}, list("f32[7,4]", "f32[2,3,5]", "i32[7]"), ir.ErrShape, "not [m, k] and [g, k, n]"},
	{ops.OpGroupedMatMul, &ops.GroupedAttrs{Block: 4}, list("f32[7,4]", "f32[2,4,5]", "i32[6]"), ir.ErrShape, "groups are i32[6], not i32[7]"},
	{ops.OpQuantizedGroupedMatMul, &ops.PackedProductAttrs{PackedAttrs: ops.PackedAttrs{Format: "q8_0", DType: ir.F32}}, list("f32[7,32]", "u8[2,5,34]", "i32[6]"), ir.ErrShape, "groups are i32[6], not i32[7]"},
	{ops.OpQuantizedGroupedMatMul, &ops.PackedProductAttrs{PackedAttrs: ops.PackedAttrs{Format: "q8_0", DType: ir.F32}}, list("f32[7,33]", "u8[2,5,34]", "i32[7]"), ir.ErrShape, "rows of 32 elements"},
	{ops.OpQuantizedGroupedMatMul, &ops.PackedProductAttrs{PackedAttrs: ops.PackedAttrs{Format: "q9", DType: ir.F32}}, list("f32[7,32]", "u8[2,5,34]", "i32[7]"), ir.ErrAttr, "format is"},
	{ops.OpLoRAMatMul, &ops.ScaleAttrs{}, list("f32[7,4]", "f32[4,5]", "f32[4,2]", "f32[3,5]"), ir.ErrShape, "rows of [7,2] have 2 elements, columns of [3,5] have 3"},

	{ops.OpDequantize, &ops.PackedAttrs{Format: "q9", DType: ir.F32}, list("u8[36]"), ir.ErrAttr, `format is "q9", not one of f8_e4m3`},
	{ops.OpDequantize, &ops.PackedAttrs{Format: "q4_0", DType: ir.F32}, list("u8[35]"), ir.ErrShape, "rows of 35 bytes hold no whole blocks of 18"},
	{ops.OpDequantize, &ops.PackedAttrs{Format: "q4_k", DType: ir.F32}, list("u32[35]"), ir.ErrShape, "rows of 35 words hold no whole blocks of 144 bytes"},
	{ops.OpDequantize, &ops.PackedAttrs{Format: "q4_0", DType: ir.I32}, list("u8[36]"), ir.ErrDType, ", not float"},
	{ops.OpQuantizedMatMul, &ops.PackedProductAttrs{PackedAttrs: ops.PackedAttrs{Format: "q8_0", DType: ir.F32}, ActivationBits: 4}, list("f32[3,32]", "u8[5,34]"), ir.ErrAttr, "activation_bits is 4: it must be 0 or 8"},
	{ops.OpQuantizedMatMul, &ops.PackedProductAttrs{PackedAttrs: ops.PackedAttrs{Format: "f8_e5m2", DType: ir.F32}, ActivationBits: 8}, list("f32[3,33]", "u8[5,33]"), ir.ErrShape, "need blocks of 32"},
	{ops.OpQuantizedMatMul, &ops.PackedProductAttrs{PackedAttrs: ops.PackedAttrs{Format: "q8_0", DType: ir.F32}}, list("f32[3,33]", "u8[5,34]"), ir.ErrShape, "x is [3,33] and rows of w have 32 elements"},
	{ops.OpQuantizeLinear, &ops.LinearQuantAttrs{DType: ir.F32}, list("f32[3]", "f32[]"), ir.ErrDType, "dtype is f32, not an integer type of at most 16 bits or i32"},
	{ops.OpQuantizeLinear, &ops.LinearQuantAttrs{DType: ir.I8}, list("f32[3]", "f32[2]"), ir.ErrShape, "the scale is [2], neither [] nor [3]"},
	{ops.OpDequantizeLinear, &ops.AxisAttrs{}, list("i32[3]", "f32[]", "u8[]"), ir.ErrShape, "the zero point is u8[], not i32[]"},
	{ops.OpQMatMul, &ops.RequantAttrs{Mult: math.Inf(1), DType: ir.I8}, list("u8[3,4]", "u8[4,5]"), ir.ErrAttr, "mult is +Inf"},
	{ops.OpQMatMul, &ops.RequantAttrs{Mult: 1, DType: ir.I8}, list("u8[3,4]", "u8[4,5]", "i32[4]"), ir.ErrShape, "the bias is i32[4], not i32[5]"},
	{ops.OpQConv2D, &ops.QConv2DAttrs{RequantAttrs: ops.RequantAttrs{Mult: 1, DType: ir.I8}}, list("u8[4,4,2]", "u8[2,2,2,3]"), ir.ErrShape, "x of rank 3"},
	{ops.OpFakeQuant, &ops.FakeQuantAttrs{Bits: 1, STE: ops.STEIdentity, Scale: ops.ScaleBatch}, list("f32[3]", "f32[]"), ir.ErrAttr, "bits is 1, not in [2, 16]"},
	{ops.OpFakeQuant, &ops.FakeQuantAttrs{Bits: 8, STE: "none", Scale: ops.ScaleBatch}, list("f32[3]", "f32[]"), ir.ErrAttr, `ste is "none"`},
	{ops.OpFakeQuantLSQ, &ops.LSQAttrs{Bits: 8, Axes: []int{1}}, list("f32[3,4]", "f32[3]"), ir.ErrShape, "operand 1 is f32[3], not f32[4]"},

	{ops.OpRandomGamma, nil, list("f32[3]", "u32[3]"), ir.ErrDType, "the key is u32[3]"},
	{ops.OpRandomBeta, nil, list("f32[3]", "f32[4]", "u32[2]"), ir.ErrShape, "a is f32[3], b is f32[4]"},
	{ops.OpPermutation, &ops.SizeAttrs{Size: ir.N(3)}, list("u32[3]"), ir.ErrDType, "the key is u32[3]"},
	{ops.OpSampleToken, &ops.SampleAttrs{Temperature: 1, TopP: 0}, list("f32[3,9]", "u32[2]"), ir.ErrAttr, "top_p is 0, not in (0, 1]"},
	{ops.OpSampleToken, &ops.SampleAttrs{Temperature: 1, TopP: 1}, list("f32[3,0]", "u32[2]"), ir.ErrShape, "logits are f32[3,0]"},
	{ops.OpCTC, &ops.CTCAttrs{LossAttrs: reducedBy(ops.LossMean), Blank: 4}, list("f32[5,2,4]", "i32[2,3]", "i32[2]", "i32[2]"), ir.ErrAttr, "blank is 4, not in [0, 4), the classes"},
	{ops.OpCTC, &ops.CTCAttrs{LossAttrs: reducedBy(ops.LossMean)}, list("f32[5,2,4]", "i32[2,3]", "i32[3]", "i32[2]"), ir.ErrShape, "times are i32[3], not i32[2]"},
	{ops.OpAdaptiveAvgPool, &ops.SizesAttrs{Sizes: []int{2}}, list("f32[1,4,4,2]"), ir.ErrShape, "sizes has 1 entries, not one for each axis of x, f32[1,4,4,2], but the first and the last"},
	{ops.OpAdaptiveMaxPool, &ops.SizesAttrs{Sizes: []int{2}}, list("f32[1,0,2]"), ir.ErrShape, "axis 1 of size 0 cannot become 2"},
	{ops.OpPixelShuffle, &ops.FactorAttrs{Factor: 2}, list("f32[1,4,4,6]"), ir.ErrShape, "6 channels do not divide by the square of factor, 2"},
	{ops.OpPixelUnshuffle, &ops.FactorAttrs{Factor: 0}, list("f32[1,4,4,6]"), ir.ErrAttr, "factor is 0, less than 1"},
	{ops.OpAdaNorm, &ops.AdaNormAttrs{}, list("f32[3,4]", "f32[3]", "f32[4]"), ir.ErrShape, "scale is [3], which does not broadcast to x, [3,4]"},
	{ops.OpWeightNorm, &ops.AxisAttrs{Axis: 1}, list("f32[3,4]", "f32[3]"), ir.ErrShape, "g is f32[3], not f32[4]"},
}

func TestOpErrorsNameOperandAndRequirement(t *testing.T) {
	for i, c := range refusedOps {
		t.Run(strconv.Itoa(i)+" "+string(c.op), func(t *testing.T) {
			_, err := ir.Build("bad", func(b *ir.Builder) {
				var in values
				for i, t := range types(c.in...) {
					in = append(in, b.Port(ir.InputPort, "x"+strconv.Itoa(i), t))
				}
				b.Add(c.op, c.attrs, in...)
			})
			if !errors.Is(err, c.kind) {
				t.Fatalf("the error is %v, want one of kind %v", err, c.kind)
			}
			if text := err.Error(); !strings.Contains(text, c.says) || !strings.Contains(text, string(c.op)+"(") {
				t.Errorf("the error %q does not say %q, or not of which op", err, c.says)
			}
		})
	}
}
