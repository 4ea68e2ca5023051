package plansim_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// kinds are the kinds of error with which a graph of such a size may be refused.
var kinds = []error{ir.ErrShape, ir.ErrDType, ir.ErrAttr, ir.ErrIndex, ir.ErrUnsupported, ir.ErrNoRule, plan.ErrInvalid}

// absurd are sizes that no memory has: products of two of them overflow 64 bits.
var absurd = []int64{1<<31 + 1, 1 << 40, 1 << 46, 1 << 62}

// TestAbsurdSizesAreRefused builds every sample with operands of absurd sizes: every use of the
// graph returns a plan or a typed error, and takes little memory.
func TestAbsurdSizesAreRefused(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	built := 0
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		for i, s := range d.Samples() {
			// Sizes take turns among the samples: all of them would take minutes.
			for k, all := range []bool{false, true} {
				size := absurd[(i+2*k)%len(absurd)]
				what := fmt.Sprintf("%s, sample %d %s, size %d, all %t", op, i, s.Name, size, all)
				if g := absurdGraph(op, s, size, all); g != nil {
					built++
					absurdUses(t, what, g)
				}
			}
		}
	}
	if built < 500 && math.MaxInt > math.MaxInt32 {
		t.Errorf("%d graphs of absurd sizes were built", built)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(max(built, 1)); each > 16<<20 {
		t.Errorf("%d bytes for each of %d graphs", each, built)
	}
}

// absurdGraph returns the graph of a sample with another size along the first, or along all, of the
// axes longer than 1; nil if the op refuses it.
func absurdGraph(op ir.Op, s ir.Sample, size int64, all bool) *ir.Graph {
	if int64(int(size)) != size {
		return nil // an int has 32 bits here
	}
	g, err := ir.Build("absurd", func(b *ir.Builder) {
		in := make([]ir.Value, len(s.In))
		for i, a := range s.In {
			ty := a.Type()
			shape := append(ir.Shape{}, ty.Shape...)
			for axis, n := range a.Dims {
				if n > 1 {
					shape[axis] = ir.N(int(size))
					if !all {
						break
					}
				}
			}
			in[i] = b.Port(ir.InputPort, fmt.Sprint(i), ir.Type{DType: ty.DType, Shape: shape})
		}
		for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
			b.Output(fmt.Sprint(i), v)
		}
	})
	if err != nil {
		return nil
	}
	return g
}

// absurdUses runs every transform that needs no inputs on a graph.
func absurdUses(t *testing.T, what string, g *ir.Graph) {
	defer func() {
		if r := recover(); r != nil {
			stack := make([]byte, 1<<14)
			t.Errorf("%s: panic: %v\n%s", what, r, stack[:runtime.Stack(stack, false)])
		}
	}()
	typed := func(use string, err error) {
		if err == nil || slices.ContainsFunc(kinds, func(k error) bool { return errors.Is(err, k) }) {
			return
		}
		t.Errorf("%s: %s: an error of no kind: %v", what, use, err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		typed("module", err)
		return
	}
	_, err = plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
	typed("WebGPU", err)
	_, err = plan.Compile(m, plan.WebAssembly(false), wasmsimd.Printer{})
	typed("WebAssembly", err)
}
