package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest/families"
	"github.com/rlx-go/rlx/ir/ops"
)

// familyTimes is by how much the batches are multiplied, as in native/cuda's BenchmarkFamilies by default.
const familyTimes = 8

// familyBytes is the maximum size of a tensor of a family.
const familyBytes = 1<<31 - 1<<8

// writeFamilies writes a plan for the training step of each family, with a variant for devices without subgroups, and the
// list of their names.
func writeFamilies(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var names []string
	for _, f := range families.Every() {
		name := strings.ReplaceAll(f.Name, " ", "_")
		names = append(names, name)
		m, err := resident(f)
		if err != nil {
			return err
		}
		j := job{bytes: familyBytes}
		p, err := plan.Compile(m, j.target(), wgsl.Printer{})
		if err != nil {
			return err
		}
		if subgroup > 0 {
			plain, err := plan.Compile(m, j.plainTarget(), wgsl.Printer{})
			if err != nil {
				return err
			}
			p.Variants = []*plan.Plan{plain}
		}
		if err := writePlan(filepath.Join(folder, "family-"+name+".rlxp"), p); err != nil {
			return err
		}
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "families.json"), text, 0o644)
}

// resident returns the training step of a family, or its loss, with its inputs and its loss as states, so that
// they stay on the device, and an entry "fill", which sets all states to random numbers.
func resident(f families.Family) (*ir.Module, error) {
	graph := f.Step
	if forward {
		graph = f.Loss
	}
	g, below, err := graph(familyTimes)
	if err != nil {
		return nil, err
	}
	step, err := ir.Build("step", func(b *ir.Builder) {
		in := map[string]ir.Value{}
		for _, p := range g.Ports() {
			if p.Kind == ir.InputPort {
				in[p.Name] = b.Param("input/"+p.Name, p.Value.DType(), p.Value.Shape()...)
			}
		}
		for name, v := range b.Call(g, in) {
			b.State("output/"+name, v.DType(), v.Shape()...)
			b.SetState("output/"+name, v)
		}
	})
	if err != nil {
		return nil, err
	}
	fill, err := ir.Build("fill", func(b *ir.Builder) {
		for i, p := range step.Ports() {
			v := p.Value
			b.State(p.Name, v.DType(), v.Shape()...)
			b.SetState(p.Name, random(b, i, v.Type(), below[strings.TrimPrefix(p.Name, "input/")]))
		}
	})
	if err != nil {
		return nil, err
	}
	return ir.NewModule(f.Name, ir.Entry{Name: "fill", Graph: fill}, ir.Entry{Name: "step", Graph: step})
}

// random returns numbers in [0, 1/16) of a floating type, where deep networks stay finite, or integers
// in [0, below) of another.
func random(b *ir.Builder, seed int, t ir.Type, below int) ir.Value {
	u := ops.Uniform(b, ops.Key(b, uint64(seed+1)), ir.F32, t.Shape...)
	if t.DType.IsFloat() {
		return ops.Convert(b, ops.Mul(b, u, ops.Const(b, ir.F32, 1./16)), t.DType)
	}
	return ops.Convert(b, ops.Mul(b, u, ops.Const(b, ir.F32, float64(max(below, 1)))), t.DType)
}
