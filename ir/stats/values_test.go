package stats_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/functiontest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/stats"
)

// functions are those of the cases of ir/irtest/cases/functions.json: NumPy's and PyTorch's.
var functions = map[string]functiontest.Function{
	"nan_sum":      along(stats.NanSum),
	"nan_mean":     along(stats.NanMean),
	"nan_mean two": along(stats.NanMean),
	"nan_min":      along(stats.NanMin),
	"nan_max":      along(stats.NanMax),
	"nan_max two":  along(stats.NanMax),
	"nan_var":      of(func(b *ir.Builder, x ir.Value) ir.Value { return stats.NanVar(b, x, 1, 1) }),
	"nan_var two":  of(func(b *ir.Builder, x ir.Value) ir.Value { return stats.NanVar(b, x, 0, -1) }),
	"nan_std two":  of(func(b *ir.Builder, x ir.Value) ir.Value { return stats.NanStd(b, x, 1, 1) }),
	"nan_sum all":  of(func(b *ir.Builder, x ir.Value) ir.Value { return stats.NanSum(b, x) }),
	"cov":          of(func(b *ir.Builder, x ir.Value) ir.Value { return stats.Cov(b, x, 1) }),
	"corr_coef":    of(stats.CorrCoef),
	"cdist 2":      cdist(2), "cdist 1": cdist(1), "cdist 3": cdist(3), "cdist 0": cdist(0), "cdist inf": cdist(math.Inf(1)), "cdist equal": cdist(2),
	"arg_partition": of(func(b *ir.Builder, x ir.Value) ir.Value { return stats.ArgPartition(b, x, 1, -1) }),
	"kth_smallest": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		value, index := stats.KthSmallest(b, in["x"], 1, 1)
		return []ir.Value{value, index}
	},
}

func of(f func(b *ir.Builder, x ir.Value) ir.Value) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value { return []ir.Value{f(b, in["x"])} }
}

func along(f func(b *ir.Builder, x ir.Value, axes ...int) ir.Value) functiontest.Function {
	return of(func(b *ir.Builder, x ir.Value) ir.Value { return f(b, x, 1) })
}

func cdist(p float64) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{stats.CDist(b, in["x"], in["y"], p)}
	}
}

func TestValuesAreThoseOfNumPyAndPyTorch(t *testing.T) {
	functiontest.Run(t, "../irtest/cases/functions.json", "stats.", functions)
}
