package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

var runCommand = command{
	name: "run", args: "FILE", short: "run an entry of a model and print its outputs",
	long: `Runs an entry once, with inputs from the command line or random ones, and prints its outputs. Inputs
with nested lists, or from files, set the sizes of their symbols.
Parameters come from -weights or are drawn by the rules that the model declares. FILE may also be a
plan of "rlx plan", which WebGPU runs: its parameters come from -weights or are random. The sizes that
-buckets left open come from -size or from inputs.`,
	define: func(f *flag.FlagSet) runner {
		o := openFlags(f)
		asJSON, in := jsonFlag(f), inputsFlag(f)
		out := f.String("out", "", "`FILE` to write the outputs to: npz by its ending, else safetensors")
		return func(ctx context.Context, std stdio, args []string) error {
			if err := checkWritable(*out); err != nil {
				return err
			}
			w, inputs, err := o.openWithInputs(ctx, args, in, std)
			if err != nil {
				return err
			}
			defer w.session.Close(context.WithoutCancel(ctx))
			begin := time.Now()
			outputs, err := w.program.Call(ctx, w.entry, inputs)
			if err != nil {
				return err
			}
			took := time.Since(begin)
			if *out != "" {
				if err := writeTensors(*out, outputs); err != nil {
					return err
				}
			}
			return writeOutputs(std, w, outputs, took, *asJSON)
		}
	},
}

// openOptions are the flags of commands that run an entry on a device.
type openOptions struct {
	sizes                  sizes
	device, entry, weights string
	precision              string
	seed                   seed
	tune                   bool
}

func openFlags(f *flag.FlagSet) *openOptions {
	o := &openOptions{sizes: sizesFlag(f)}
	deviceFlag(f, &o.device)
	precisionFlag(f, &o.precision)
	f.StringVar(&o.entry, "entry", "", "`NAME` of the entry; the first by default")
	f.StringVar(&o.weights, "weights", "", "safetensors or npz `FILE` with the parameters")
	o.seed.flag(f, "random inputs and parameters")
	f.BoolVar(&o.tune, "tune", false, "measure schedules first (CUDA)")
	return o
}

func deviceFlag(f *flag.FlagSet, to *string) {
	f.StringVar(to, "device", "", "`NAMES` of devices, the first choice first, as cuda,webgpu,cpu; "+rlx.DeviceVariable+" or the fastest that can compute the model by default")
}

func activationsFlag(f *flag.FlagSet, to *int) {
	f.IntVar(to, "activations", 0, "`BITS` to which inputs of packed weights are rounded, in blocks of 32: 8, or 0 for none")
}

// precisions are the precisions of products by name.
var precisions = map[string]rlx.Precision{"f32": rlx.AsWritten, "tf32": rlx.TF32, "bf16": rlx.MixedBF16, "f16": rlx.MixedF16}

func precisionFlag(f *flag.FlagSet, to *string) {
	f.StringVar(to, "precision", "f32", "`TYPE` that products of f32 are computed in: f32, tf32, bf16 or f16")
}

func precisionOf(name string) (rlx.Precision, error) {
	p, ok := precisions[name]
	if !ok {
		return p, usagef("unknown precision %q: have %q", name, slices.Sorted(maps.Keys(precisions)))
	}
	return p, nil
}

// work is an entry that is ready to run.
type work struct {
	session *rlx.Session
	program *rlx.Program
	module  *ir.Module
	entry   string
	compile time.Duration
	bound   []native.Slot // the inputs of an entry with open sizes, as -size and -in bind them
}

// slots returns the inputs of the entry, without open sizes.
func (w *work) slots() []native.Slot {
	if w.bound != nil {
		return w.bound
	}
	return w.program.Slots(w.entry)
}

// openSession opens the device that the policy of a list chooses for a module.
func openSession(m *ir.Module, list string) (*rlx.Session, error) {
	var policy rlx.Policy // the zero one has OpenFor read the environment
	if list != "" {
		var err error
		if policy, err = rlx.ParsePolicy(list); err != nil {
			return nil, err
		}
	}
	return rlx.OpenFor(m, policy)
}

// openWithInputs opens the file that the arguments name, and returns the inputs of its entry.
func (o *openOptions) openWithInputs(ctx context.Context, args []string, in *given, std stdio) (*work, rlx.Inputs, error) {
	file, err := one(args, "FILE")
	if err != nil {
		return nil, nil, err
	}
	w, err := o.open(ctx, file, in, std)
	if err != nil {
		return nil, nil, err
	}
	inputs, err := in.inputs(w.slots(), uint64(o.seed))
	if err != nil {
		return nil, nil, errors.Join(err, w.session.Close(context.WithoutCancel(ctx)))
	}
	return w, inputs, nil
}

// open loads a file, opens a device for it and compiles it. Inputs bind the symbols without a size.
func (o *openOptions) open(ctx context.Context, file string, in *given, std stdio) (*work, error) {
	precision, err := precisionOf(o.precision)
	if err != nil {
		return nil, err
	}
	loaded, err := loadAny(file, std.in, o.sizes)
	if err != nil {
		return nil, err
	}
	if loaded.module == nil {
		return o.openPlan(ctx, loaded, in)
	}
	if err := in.addSizes(o.sizes, loaded.module); err != nil {
		return nil, err
	}
	if loaded.module, err = o.sizes.bind(loaded); err != nil {
		return nil, err
	}
	m := loaded.module
	e, err := entryOf(m, o.entry)
	if err != nil {
		return nil, err
	}
	s, err := openSession(m, o.device)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	p, err := s.CompileWith(ctx, m, rlx.CompileOptions{Precision: precision, Tune: o.tune})
	if err != nil {
		return nil, err
	}
	w := &work{session: s, program: p, module: m, entry: e.Name, compile: time.Since(begin)}
	if loaded.weights != nil && o.weights == "" {
		return w, p.Load(ctx, loaded.weights)
	}
	return w, setParams(ctx, p, m, o.weights, uint32(o.seed))
}

// openPlan opens a plan on the first usable device of the list that runs plans, webgpu by default. What a plan
// is compiled for cannot be changed; inputs and -size bind the sizes that it leaves open.
func (o *openOptions) openPlan(ctx context.Context, of *model, in *given) (*work, error) {
	for name, given := range map[string]bool{"-size": len(o.sizes) > 0 && of.open == nil, "-precision": o.precision != "f32", "-tune": o.tune} {
		if given {
			return nil, usagef("%s is for graphs: a plan is compiled already", name)
		}
	}
	entry, err := of.planEntry(o.entry)
	if err != nil {
		return nil, err
	}
	w := &work{entry: entry}
	if of.open != nil {
		if w.bound, err = o.bindOpen(of.open, entry, in); err != nil {
			return nil, err
		}
	}
	if w.session, err = rlx.Open(cmp.Or(o.device, os.Getenv(rlx.DeviceVariable), "webgpu")); err != nil {
		return nil, err
	}
	begin := time.Now()
	if w.program, err = w.session.OpenPlan(ctx, of.file); err != nil {
		return nil, errors.Join(err, w.session.Close(context.WithoutCancel(ctx)))
	}
	w.compile = time.Since(begin)
	return w, setPlanParams(ctx, w.program, of.plans(), o.weights, uint64(o.seed))
}

// bindOpen returns the inputs of an entry with open sizes, of the sizes of -size and of the inputs given; nil for
// an entry without open sizes. The error is a [usageError] that names the symbols without a size, or the names
// that are no symbols.
func (o *openOptions) bindOpen(of *plan.Open, entry string, in *given) (bound []native.Slot, err error) {
	i := slices.IndexFunc(of.Entries, func(e plan.OpenEntry) bool { return e.Name == entry })
	if i < 0 {
		return nil, o.sizes.check(nil)
	}
	e := &of.Entries[i]
	if err := o.sizes.check(e.Symbols); err != nil {
		return nil, err
	}
	for _, p := range e.Inputs {
		if err := in.addSizesOf(o.sizes, p.Name, p.Shape); err != nil {
			return nil, err
		}
	}
	if err := o.sizes.checkAll(e.Symbols); err != nil {
		return nil, err
	}
	for _, p := range e.Inputs {
		slot := native.Slot{Name: p.Name, Role: native.Input, DType: p.DType, Dims: make([]int, len(p.Shape))}
		for axis, d := range p.Shape {
			if slot.Dims[axis], err = d.Bind(o.sizes); err != nil {
				return nil, err
			}
		}
		bound = append(bound, slot)
	}
	return bound, nil
}

// runJSON is the output of "run".
type runJSON struct {
	Device  string             `json:"device"`
	Entry   string             `json:"entry"`
	Millis  float64            `json:"ms"`
	Outputs map[string]summary `json:"outputs"`
}

func writeOutputs(std stdio, w *work, outputs rlx.Outputs, took time.Duration, asJSON bool) error {
	r := runJSON{Device: w.session.Device().Name, Entry: w.entry, Millis: millis(took), Outputs: map[string]summary{}}
	for name, x := range outputs {
		s, err := summarize(x, asJSON)
		if err != nil {
			return err
		}
		r.Outputs[name] = s
	}
	if asJSON {
		return writeJSON(std.out, r)
	}
	fmt.Fprintf(std.out, "entry %q on %s, %.3g ms\n", r.Entry, r.Device, r.Millis)
	for _, name := range slices.Sorted(maps.Keys(r.Outputs)) {
		fmt.Fprintf(std.out, "%s  %s\n", name, r.Outputs[name])
	}
	return nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
