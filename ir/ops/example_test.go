package ops_test

import (
	"fmt"
	"log"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// show prints the elements of a value that f computes from arrays, with their shape.
func show(f func(b *ir.Builder, in []ir.Value) ir.Value, arrays ...*ir.Array) {
	given := map[string]*ir.Array{}
	g, err := ir.Build("example", func(b *ir.Builder) {
		var in []ir.Value
		for i, a := range arrays {
			name := fmt.Sprint(i)
			given[name] = a
			in = append(in, b.Port(ir.InputPort, name, a.Type()))
		}
		b.Output("y", f(b, in))
	})
	if err != nil {
		log.Fatal(err)
	}
	out, err := ir.Eval(g, given, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	var elements []float64
	for i := range out[0].Len() {
		elements = append(elements, math.Round(out[0].Float(i)*1e4)/1e4)
	}
	fmt.Println(out[0].Dims, elements)
}

func floats(x []float64, dims ...int) *ir.Array { return ir.Floats(ir.F32, x, dims...) }

func ExampleAdd() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Add(b, in[0], in[1]) }, // shapes broadcast
		floats([]float64{1, 2, 3, 4}, 2, 2), floats([]float64{10, 20}))
	// Output: [2 2] [11 22 13 24]
}

func ExampleMatMul() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.MatMul(b, in[0], in[1]) },
		floats([]float64{1, 2, 3, 4}, 2, 2), floats([]float64{1, 0, 0, 2}, 2, 2))
	// Output: [2 2] [1 4 3 8]
}

func ExampleLinear() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Linear(b, in[0], in[1], in[2]) }, // weight is [in, out]
		floats([]float64{1, 2}, 1, 2), floats([]float64{1, 0, -1, 3, 1, 0}, 2, 3), floats([]float64{0, 0, 5}))
	// Output: [1 3] [7 2 4]
}

func ExampleEinsum() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Einsum(b, "ij,ij->i", in[0], in[1]) },
		floats([]float64{1, 2, 3, 4}, 2, 2), floats([]float64{5, 6, 7, 8}, 2, 2))
	// Output: [2] [17 53]
}

func ExampleReduceSum() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.ReduceSum(b, in[0], 0) }, floats([]float64{1, 2, 3, 4}, 2, 2))
	// Output: [2] [4 6]
}

func ExampleMean() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Mean(b, in[0], -1) }, floats([]float64{1, 2, 3, 4}, 2, 2))
	// Output: [2] [1.5 3.5]
}

func ExampleArgMax() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.ArgMax(b, in[0], -1) }, floats([]float64{1, 5, 2, 7, 7, 0}, 2, 3))
	// Output: [2] [1 0]
}

func ExampleSoftmax() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Softmax(b, in[0], -1) }, floats([]float64{0, math.Log(3)}))
	// Output: [2] [0.25 0.75]
}

func ExampleRelu() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Relu(b, in[0]) }, floats([]float64{-1, 0, 2}))
	// Output: [3] [0 0 2]
}

func ExampleSelect() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value {
		return ops.Select(b, ops.Lt(b, in[0], in[1]), in[0], ops.Neg(b, in[1]))
	}, floats([]float64{1, 5}), floats([]float64{2, 2}))
	// Output: [2] [1 -2]
}

func ExampleClamp() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value {
		return ops.Clamp(b, in[0], ops.Const(b, ir.F32, 0), ops.Const(b, ir.F32, 1))
	}, floats([]float64{-3, 0.5, 7}))
	// Output: [3] [0 0.5 1]
}

func ExampleReshape() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Reshape(b, in[0], ir.Dims(3, 2)...) }, floats([]float64{1, 2, 3, 4, 5, 6}, 2, 3))
	// Output: [3 2] [1 2 3 4 5 6]
}

func ExampleTranspose() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Transpose(b, in[0], 1, 0) }, floats([]float64{1, 2, 3, 4, 5, 6}, 2, 3))
	// Output: [3 2] [1 4 2 5 3 6]
}

func ExampleConcatenate() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Concatenate(b, 0, in...) }, floats([]float64{1, 2}), floats([]float64{3}))
	// Output: [3] [1 2 3]
}

func ExampleStack() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Stack(b, 0, in...) }, floats([]float64{1, 2}), floats([]float64{3, 4}))
	// Output: [2 2] [1 2 3 4]
}

func ExampleSlice() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value {
		return ops.Slice(b, in[0], ir.Dims(0, 1), ir.Dims(2, 2), nil) // rows 0 and 1, columns 1 and 2
	}, floats([]float64{1, 2, 3, 4, 5, 6}, 2, 3))
	// Output: [2 2] [2 3 5 6]
}

func ExamplePad() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value {
		return ops.Pad(b, in[0], ops.Const(b, ir.F32, 9), []int{1}, []int{2}, nil)
	}, floats([]float64{1, 2}))
	// Output: [5] [9 1 2 9 9]
}

func ExampleTake() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Take(b, in[0], in[1], 0, "") }, // rows of a table
		floats([]float64{1, 2, 3, 4, 5, 6}, 3, 2), ir.Ints(ir.I32, []int64{2, 0}))
	// Output: [2 2] [5 6 1 2]
}

// Index tuples of two numbers choose elements.
func ExampleGather() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value {
		return ops.Gather(b, in[0], in[1], ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}}})
	}, floats([]float64{1, 2, 3, 4, 5, 6}, 3, 2), ir.Ints(ir.I32, []int64{2, 1, 0, 0}, 2, 2))
	// Output: [2] [6 1]
}

func ExampleEmbedding() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Embedding(b, in[0], in[1]) }, // rows of a table
		floats([]float64{1, 2, 3, 4, 5, 6}, 3, 2), ir.Ints(ir.I32, []int64{2, 0, 2}))
	// Output: [3 2] [5 6 1 2 5 6]
}

func ExampleTopK() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value {
		values, _ := ops.TopK(b, in[0], ops.TopKAttrs{K: 2})
		return values
	}, floats([]float64{3, 9, 1, 7}))
	// Output: [2] [9 7]
}

func ExampleCumSum() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.CumSum(b, in[0], ops.CumSumAttrs{}) }, floats([]float64{1, 2, 3}))
	// Output: [3] [1 3 6]
}

func ExampleConvert() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Convert(b, in[0], ir.I32) }, floats([]float64{1.9, -1.9}))
	// Output: [2] [1 -1]
}

func ExampleConv2D() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { // [batch, height, width, channels], [height, width, in, out]
		return ops.Conv2D(b, in[0], in[1], ir.Value{}, ops.Conv2DAttrs{})
	}, floats([]float64{1, 2, 3, 4, 5, 6}, 1, 2, 3, 1), floats([]float64{1, 10, 100, 1000}, 2, 2, 1, 1))
	// Output: [1 1 2 1] [5421 6532]
}

func ExampleMaxPool() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value {
		return ops.MaxPool(b, in[0], ops.PoolAttrs{Sizes: []int{2, 2}})
	},
		floats([]float64{1, 2, 3, 4, 8, 7, 6, 5}, 1, 2, 4, 1))
	// Output: [1 1 2 1] [8 6]
}

func ExampleLayerNorm() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.LayerNorm(b, in[0], in[1], in[2], 0) },
		floats([]float64{1, 3}, 1, 2), floats([]float64{1, 1}), floats([]float64{0, 5}))
	// Output: [1 2] [-1 6]
}

func ExampleRMSNorm() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.RMSNorm(b, in[0], in[1], 0) }, // mean(x²) is 25
		floats([]float64{1, 7}, 1, 2), floats([]float64{5, 10}))
	// Output: [1 2] [1 14]
}

// The first query attends to the first key alone, the second one to both, which it weighs the same.
func ExampleAttention() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { // [heads, rows, width]
		return ops.Attention(b, in[0], in[1], in[2], ir.Value{}, ops.AttentionAttrs{Causal: true})
	}, floats([]float64{1, 1}, 1, 2, 1), floats([]float64{5, 5}, 1, 2, 1), floats([]float64{10, 20}, 1, 2, 1))
	// Output: [1 2 1] [10 15]
}

func ExampleCrossEntropyMean() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { return ops.CrossEntropyMean(b, in[0], in[1]) },
		floats([]float64{0, 0, 0, math.Log(3)}, 2, 2), ir.Ints(ir.I32, []int64{0, 1})) // (log 2 + log 4/3)/2
	// Output: [] [0.4904]
}

func ExampleScan() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value { // a balance with 50 % interest a step
		_, balances := ops.Scan(b, ops.Loop{
			Carries: []ir.Value{ops.Const(b, ir.F32, 0)}, Xs: []ir.Value{in[0]},
			Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
				balance := ops.Add(b, ops.Mul(b, carries[0], ops.Const(b, ir.F32, 1.5)), xs[0])
				return []ir.Value{balance}, []ir.Value{balance}
			},
		})
		return balances[0]
	}, floats([]float64{100, 0, 10}))
	// Output: [3] [100 150 235]
}

func ExampleCond() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value {
		positive := ops.Gt(b, in[0], ops.Const(b, ir.F32, 0))
		return ops.Cond(b, positive, []ir.Value{in[0]},
			func(b *ir.Builder, x []ir.Value) []ir.Value { return []ir.Value{ops.Sqrt(b, x[0])} },
			func(b *ir.Builder, x []ir.Value) []ir.Value { return []ir.Value{ops.Neg(b, x[0])} })[0]
	}, ir.Float(ir.F32, 9))
	// Output: [] [3]
}

func ExampleSwitch() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value {
		times := func(n float64) ops.Branch {
			return func(b *ir.Builder, x []ir.Value) []ir.Value {
				return []ir.Value{ops.Mul(b, x[0], ops.ConstLike(b, x[0], n))}
			}
		}
		return ops.Switch(b, ops.Const(b, ir.I32, 2), in, times(1), times(10), times(100))[0]
	}, floats([]float64{1, 2}, 2))
	// Output: [2] [100 200]
}

func ExampleLerp() {
	show(func(b *ir.Builder, in []ir.Value) ir.Value {
		return ops.Lerp(b, in[0], in[1], ops.Const(b, ir.F32, 0.25))
	}, floats([]float64{0, 10}, 2), floats([]float64{8, 20}, 2))
	// Output: [2] [2 12.5]
}

// Products of 2×2 matrices, as four operands: those of Fibonacci's matrix have his numbers.
func ExampleAssociativeScan() {
	show(func(b *ir.Builder, _ []ir.Value) ir.Value {
		one, zero := ops.Ones(b, ir.F32, ir.N(8)), ops.Zeros(b, ir.F32, ir.N(8))
		matrices := []ir.Value{one, one, one, zero}
		product := func(b *ir.Builder, x, y []ir.Value) []ir.Value {
			element := func(i, j int) ir.Value {
				return ops.Add(b, ops.Mul(b, x[2*i], y[j]), ops.Mul(b, x[2*i+1], y[2+j]))
			}
			return []ir.Value{element(0, 0), element(0, 1), element(1, 0), element(1, 1)}
		}
		return ops.AssociativeScan(b, ops.AssociativeAttrs{}, matrices, product)[1]
	})
	// Output: [8] [1 1 2 3 5 8 13 21]
}
