package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
	"github.com/rlx-go/rlx/native/cpu"
)

// trainingSteps is the number of steps that a model is trained for.
const trainingSteps = 5

// writeTraining writes steps of training: check.py feeds its results of one step to the next, and
// compares the last with those of the CPU backend.
func writeTraining(dir string) error {
	forward, err := mlp()
	if err != nil {
		return err
	}
	for name, optimizer := range map[string]optim.Optimizer{"sgd": optim.SGD{Momentum: 0.9}, "adam": optim.Adam{}, "adamw": optim.AdamW{WeightDecay: 0.1}} {
		step, err := optim.Step(forward, "loss", optimizer, optim.Options{})
		if err != nil {
			return err
		}
		if err := writeSteps(dir, "model_training_"+name, step); err != nil {
			return err
		}
	}
	return nil
}

// writeSteps writes the package of a training step and its values.
func writeSteps(dir, name string, step *ir.Graph) error {
	m, err := ir.NewModule(name, ir.Entry{Name: "step", Graph: step})
	if err != nil {
		return err
	}
	p, err := coreml.New(m, coreml.Options{})
	if err != nil {
		return err
	}
	if err := p.Write(filepath.Join(dir, name+".mlpackage")); err != nil {
		return err
	}
	v, err := trained(p, m)
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]values{p.Program.Functions[0].Name: v})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".json"), text, 0o644)
}

// trained runs the step on the CPU with another batch each time, and returns the model's inputs and
// outputs, by the names of its features.
func trained(p *mil.Package, m *ir.Module) (values, error) {
	ctx, f, step := context.Background(), p.Program.Functions[0], m.Entries[0].Graph
	v := values{Inputs: map[string]array{}, Outputs: map[string]array{}, Next: map[string]string{}}
	program, err := cpu.Backend().Compile(ctx, m, native.Options{})
	if err != nil {
		return v, err
	}
	start := inputs(step)
	start[optim.RateInput] = ir.Floats(ir.F32, []float64{0.05}, []int{}...)
	features := map[string]string{} // inputs by the names of the graph
	for _, in := range f.Inputs {
		_, graphName := roleOf(p, f, in.Name)
		features[graphName] = in.Name
	}
	for _, s := range program.Persistent() { // optimizer states start as zeros
		if s.Role != native.Param {
			start[s.Name] = ir.NewArray(s.DType, s.Dims...)
		}
		if err := program.Set(ctx, s.Name, native.FromArray(start[s.Name])); err != nil {
			return v, err
		}
		v.Inputs[features[s.Name]] = arrayOf(start[s.Name])
	}
	for _, output := range f.Outputs {
		if role, graphName := roleOf(p, f, output); role == "next" {
			v.Next[output] = features[graphName]
		}
	}
	for i := range trainingSteps {
		now, err := ran(ctx, program, p, f, batch(start, program.Slots("step"), i))
		if err != nil {
			return v, err
		}
		v.Steps = append(v.Steps, now)
	}
	return v, program.Close(ctx)
}

// roleOf returns the role of a feature and its name in the graph.
func roleOf(p *mil.Package, f *mil.Function, feature string) (role, name string) {
	words := strings.SplitN(p.Metadata[f.Name+"/"+feature], " ", 3)
	return words[0], words[2]
}

// batch returns the inputs of a step: those of the first one, rotated.
func batch(start map[string]*ir.Array, slots []native.Slot, step int) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for _, s := range slots {
		if s.Role != native.Input {
			continue
		}
		a := start[s.Name].Clone()
		for k := range a.F {
			a.F[k] = start[s.Name].F[(k+step)%len(a.F)]
		}
		out[s.Name] = a
	}
	return out
}

// ran runs one step on the CPU.
func ran(ctx context.Context, program native.Program, p *mil.Package, f *mil.Function, in map[string]*ir.Array) (values, error) {
	v, given := values{Inputs: map[string]array{}, Outputs: map[string]array{}}, map[string]native.Tensor{}
	for name, a := range in {
		given[name] = native.FromArray(a)
	}
	r, err := program.Run(ctx, "step", given)
	if err != nil {
		return v, err
	}
	out, err := r.Wait(ctx)
	if err != nil {
		return v, err
	}
	for _, i := range f.Inputs {
		if _, name := roleOf(p, f, i.Name); in[name] != nil {
			v.Inputs[i.Name] = arrayOf(in[name])
		}
	}
	for _, feature := range f.Outputs {
		role, name := roleOf(p, f, feature)
		t := out[name]
		if role == "next" {
			if t, err = program.Get(ctx, name); err != nil {
				return v, err
			}
		}
		a, err := t.Array()
		if err != nil {
			return v, err
		}
		v.Outputs[feature] = outputOf(f, feature, a, within(1e-5)(a.DType))
	}
	return v, nil
}
