package stats_test

import (
	"fmt"
	"log"
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/functiontest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/stats"
)

func show(f func(b *ir.Builder, x ir.Value) ir.Value, x []float64, dims ...int) {
	g, err := ir.Build("example", func(b *ir.Builder) { b.Output("y", f(b, ops.Literal(b, ir.Floats(ir.F32, x, dims...)))) })
	if err != nil {
		log.Fatal(err)
	}
	out, err := ir.Eval(g, nil, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v %.4v\n", out[0].Dims, out[0].F)
}

func ExampleNanMean() {
	show(func(b *ir.Builder, x ir.Value) ir.Value { return stats.NanMean(b, x) }, []float64{1, math.NaN(), 3}, 3)
	// Output: [] [2]
}

func ExampleCDist() {
	show(func(b *ir.Builder, x ir.Value) ir.Value { return stats.CDist(b, x, x, 2) }, []float64{0, 0, 3, 4}, 2, 2)
	// Output: [2 2] [0 5 5 0]
}

func TestRefusals(t *testing.T) {
	x := func(b *ir.Builder, d ir.DType) ir.Value { return b.Input("x", d, ir.Dims(2, 3)...) }
	functiontest.Refuse(t, []functiontest.Refusal{
		{Name: "a mean of integers", Build: func(b *ir.Builder) { stats.NanMean(b, x(b, ir.I32)) }, Kind: ir.ErrDType, Text: "must be of a float type"},
		{Name: "another axis", Build: func(b *ir.Builder) { stats.NanSum(b, x(b, ir.F32), 2) }, Kind: ir.ErrAttr, Text: ""},
		{Name: "more corrected than observed", Build: func(b *ir.Builder) { stats.Cov(b, x(b, ir.F32), 3) }, Kind: ir.ErrAttr, Text: "correction is 3: it must be in [0, 3)"},
		{Name: "covariance of a vector", Build: func(b *ir.Builder) { stats.Cov(b, b.Input("x", ir.F32, ir.N(3)), 0) }, Kind: ir.ErrShape, Text: "[..., variables, observations]"},
		{Name: "a norm of negative order", Build: func(b *ir.Builder) { stats.CDist(b, x(b, ir.F32), b.Input("y", ir.F32, ir.Dims(2, 3)...), -1) }, Kind: ir.ErrAttr, Text: "p is -1: it must not be negative"},
		{Name: "rows of two sizes", Build: func(b *ir.Builder) { stats.CDist(b, x(b, ir.F32), b.Input("y", ir.F32, ir.Dims(2, 2)...), 2) }, Kind: ir.ErrShape, Text: "they must be [..., n, size]"},
		{Name: "a rank that is not there", Build: func(b *ir.Builder) { stats.KthSmallest(b, x(b, ir.F32), 3, 1) }, Kind: ir.ErrAttr, Text: "k is 3: it must be in [0, 3)"},
		{Name: "a partition along no axis", Build: func(b *ir.Builder) { stats.ArgPartition(b, x(b, ir.F32), 0, 2) }, Kind: ir.ErrAttr, Text: "axis is 2"},
	})
}

func TestNarrowFloatsKeepTheirType(t *testing.T) {
	functiontest.Keep(t, map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"nan_sum":   func(b *ir.Builder, x ir.Value) ir.Value { return stats.NanSum(b, x) },
		"nan_mean":  func(b *ir.Builder, x ir.Value) ir.Value { return stats.NanMean(b, x, 1) },
		"nan_var":   func(b *ir.Builder, x ir.Value) ir.Value { return stats.NanVar(b, x, 0) },
		"nan_std":   func(b *ir.Builder, x ir.Value) ir.Value { return stats.NanStd(b, x, 0) },
		"nan_max":   func(b *ir.Builder, x ir.Value) ir.Value { return stats.NanMax(b, x) },
		"cov":       func(b *ir.Builder, x ir.Value) ir.Value { return stats.Cov(b, x, 1) },
		"corr_coef": stats.CorrCoef,
		"cdist":     func(b *ir.Builder, x ir.Value) ir.Value { return stats.CDist(b, x, x, 2) },
	}, 2, 3)
}
