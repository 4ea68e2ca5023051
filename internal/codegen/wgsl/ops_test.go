package wgsl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/irtest"
	_ "github.com/rlx-go/rlx/ir/irtest/ownop" // an op with kernels of its own
	"github.com/rlx-go/rlx/ir/ops"
)

// TestTintAcceptsTheKernelsOfAllOps prints the kernels of every sample of every
// op that WebGPU has types for, for every device and for those with subgroups. Tint reads equal ones once.
func TestTintAcceptsTheKernelsOfAllOps(t *testing.T) {
	folder, seen := t.TempDir(), map[string]bool{}
	for name, target := range map[string]plan.Target{"plain": plan.WebGPU(), "subgroups": plan.WebGPU().WithSubgroups(32)} {
		for _, op := range ir.Ops() {
			d, _ := ir.Lookup(op)
			if d.Samples == nil {
				continue
			}
			for i, s := range d.Samples() {
				p, err := compileSample(op, s, target)
				if err != nil {
					t.Errorf("%s, sample %d, %s: %v", op, i, name, err)
					continue
				}
				for j, k := range p.Kernels {
					if seen[k.Source] {
						continue
					}
					seen[k.Source] = true
					file := fmt.Sprintf("%s_%d_%d_%s.wgsl", op, i, j, name)
					if err := os.WriteFile(filepath.Join(folder, file), []byte(k.Source), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if out, err := node(t, nil, "check/tint.mjs", folder); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The product of a linear layer, with what follows it, is in subgroup matrices where a
// device has them, and the plan requires these.
func TestTintAcceptsProductsInSubgroupMatrices(t *testing.T) {
	g, err := ir.Build("linear", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(512, 300)...), b.Input("w", ir.F32, ir.Dims(300, 256)...)
		b.Output("y", ops.Gelu(b, ops.Linear(b, x, w, b.Input("b", ir.F32, ir.N(256)))))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("linear", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		target   plan.Target
		features []string
	}{
		"fragments": {plan.WebGPU().WithFragments(), []string{"subgroups", "subgroup-size-control", "chromium-experimental-subgroup-matrix"}},
		"subgroups": {plan.WebGPU().WithSubgroups(32), nil}, // tiles have none
	} {
		p, err := plan.Compile(m, c.target, wgsl.Printer{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.Requires.Features, c.features) {
			t.Errorf("%s: the plan requires %q, not %q", name, p.Requires.Features, c.features)
		}
		folder := t.TempDir()
		for i, k := range p.Kernels {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("kernel_%d.wgsl", i)), []byte(k.Source), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := node(t, nil, "check/tint.mjs", folder); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// compileSample returns the plan of a sample, an empty one where WebGPU lacks a
// type.
func compileSample(op ir.Op, s ir.Sample, target plan.Target) (*plan.Plan, error) {
	g, _, err := irtest.SampleGraph(op, s)
	if err != nil {
		return nil, err
	}
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			if plan.WebGPU().Support(t.DType) == dtype.Unsupported {
				return &plan.Plan{}, nil
			}
		}
	}
	m, err := ir.NewModule("sample", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		return nil, err
	}
	return plan.Compile(m, target, wgsl.Printer{})
}
