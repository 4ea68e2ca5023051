package irtest

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

//go:embed functions.txt
var functionLines string

// FunctionCase is an elementwise function at points that are hard to compute: near zeros,
// branch points and overflow, and for subnormal and huge arguments.
type FunctionCase struct {
	Op    ir.Op
	DType ir.DType
	// Sample holds the points, Want the values in f64 by the library named in functions.txt.
	Sample ir.Sample
	Want   []float64
}

// FunctionCases returns the functions at the points that are numbers of f32 or f64.
func FunctionCases(d ir.DType) ([]FunctionCase, error) {
	var out []FunctionCase
	for line := range strings.Lines(functionLines) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		numbers := make([]float64, len(fields)-1)
		held := true
		for i, f := range fields[1:] {
			x, err := strconv.ParseFloat(f, 64)
			if err != nil {
				return nil, fmt.Errorf("functions.txt: %w", err)
			}
			numbers[i] = x
			held = held && (i == len(numbers)-1 || d.Round(x) == x)
		}
		if !held {
			continue
		}
		op, last := ir.Op(fields[0]), len(numbers)-1
		if len(out) == 0 || out[len(out)-1].Op != op {
			out = append(out, FunctionCase{Op: op, DType: d, Sample: ir.Sample{In: make([]*ir.Array, last)}})
		}
		c := &out[len(out)-1]
		c.Want = append(c.Want, numbers[last])
		for i, x := range numbers[:last] {
			if c.Sample.In[i] == nil {
				c.Sample.In[i] = ir.NewArray(d, 0)
			}
			a := c.Sample.In[i]
			a.F, a.Dims[0] = append(a.F, x), a.Dims[0]+1
		}
	}
	return out, nil
}

// functionBounds are the error bounds in f32, in ULPs, of functions with more than 4.
var functionBounds = map[ir.Op]float64{"tan": 5.5, "erfc": 6}

// Check describes the first result whose error exceeds the documented bound of package
// ops, "" if none does. If flushes is set, subnormal f32 results may be 0.
func (c *FunctionCase) Check(got *ir.Array, flushes bool) string {
	bound := max(4, functionBounds[c.Op])
	if c.DType == ir.F64 {
		bound = 4
	}
	for i, want := range c.Want {
		if flushes && c.DType == ir.F32 && got.Float(i) == 0 && math.Abs(want) < 0x1p-126 {
			continue
		}
		if e := ulps(c.DType, got.Float(i), want); !(e <= bound) {
			at := make([]float64, len(c.Sample.In))
			for k, a := range c.Sample.In {
				at[k] = a.F[i]
			}
			return fmt.Sprintf("%s of %v is %v, want %v: %.3g ULP, bound %g", c.DType, at, got.Float(i), c.DType.Round(want), e, bound)
		}
	}
	return ""
}

// ulps returns the distance of two numbers in units in the last place of the second, in
// f32 or f64. It is infinite if one is NaN or infinite and the other is not.
func ulps(d ir.DType, got, want float64) float64 {
	digits, least := 52, -1074
	if d == ir.F32 {
		digits, least = 23, -149
	}
	rounded := d.Round(want)
	if got == rounded || math.IsNaN(got) && math.IsNaN(want) {
		return 0
	}
	if difference := got - rounded; math.IsInf(difference, 0) || math.IsNaN(difference) {
		return math.Inf(1)
	}
	exponent := least
	if want != 0 {
		exponent = max(least, math.Ilogb(want)-digits)
	}
	return math.Abs(math.Ldexp(got, -exponent) - math.Ldexp(want, -exponent))
}
