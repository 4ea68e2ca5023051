package coreml

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml/forms"
	"github.com/rlx-go/rlx/native/coreml/mil"
)

// Options steer what a model is made of.
type Options struct {
	// Opset is the set of operations, and with it the oldest system that runs the
	// model; 0 stands for CoreML8, iOS 18 and macOS 15.
	Opset mil.Opset
	// Half computes what the graph has in f32 in fp16, the only type of the Neural
	// Engine. Inputs and outputs stay as they are.
	Half bool
	// States makes states of the module states of Core ML, which stay on the device
	// from run to run. They hold fp16, so that it takes Half or a graph in f16, and
	// CoreML8. Without it a state is an input and, for its next value, an output.
	States bool
	// ParamStates makes states of Core ML of the parameters, too, those apart that are
	// stored: a [Model] is given their values by [Model.Set], when they change, and not
	// with every run. It takes what States takes.
	ParamStates bool
	// Checks lets functions tell of indices out of range, which check_index finds: a
	// [Model] gives an error for them. Without it the results are undefined then.
	// It costs some operations of integers, which are off the Neural Engine.
	Checks bool
	// Weights are the values of parameters, by name, which are stored in the
	// package. Parameters without a value are inputs.
	Weights map[string]native.Tensor
	// Shapes give the sizes of symbolic dimensions. Each of them makes a function of
	// every entry, with memory planned for it; they share the weights. It is nil for
	// a module without symbolic dimensions.
	Shapes []map[string]int
}

// Error is what keeps a module from becoming a model. Err is of one of the kinds of
// package ir and names the node.
type Error struct {
	Entry string
	Err   error
}

// Error returns "coreml: entry step: model.go:12: fft(...): unsupported: ...".
func (e *Error) Error() string {
	if e.Entry == "" {
		return "coreml: " + e.Err.Error()
	}
	return "coreml: entry " + e.Entry + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// mainFunction is what the function of a model with only one must be called.
const mainFunction = "main"

// New makes the model package of a module. The error is an [*Error]: of kind
// [ir.ErrUnsupported] for what MIL cannot say or the opset lacks, [ir.ErrSymbol] for
// a symbolic dimension without sizes, [ir.ErrName] for weights that no entry has and
// for shapes of the same name, [ir.ErrShape] and [ir.ErrDType] for weights of another
// type.
func New(m *ir.Module, o Options) (*mil.Package, error) {
	if o.Opset == 0 {
		o.Opset = mil.CoreML8
	}
	shapes := o.Shapes
	if shapes == nil {
		shapes = []map[string]int{nil}
	}
	w := &writer{Options: o, used: map[string]bool{}, pkg: &mil.Package{
		Program: mil.Program{Opset: o.Opset}, Metadata: map[string]string{},
	}}
	alone := len(m.Entries)*len(shapes) == 1
	for _, entry := range m.Entries {
		for _, sizes := range shapes {
			name := functionName(entry.Name, sizes)
			if alone {
				name = mainFunction
			}
			if err := w.entry(name, entry, sizes); err != nil {
				return nil, &Error{entry.Name, err}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Weights)) {
		if !w.used[name] {
			return nil, &Error{"", ir.Errorf(ir.ErrName, "weights are given for %q, which is no parameter", name)}
		}
	}
	if err := mil.Validate(&w.pkg.Program); err != nil {
		return nil, &Error{"", err}
	}
	return w.pkg, nil
}

// functionName returns the name of an entry's function for some sizes, as in
// "step_batch4".
func functionName(entry string, sizes map[string]int) string {
	name := identifier(entry)
	for _, symbol := range slices.Sorted(maps.Keys(sizes)) {
		name += fmt.Sprintf("_%s%d", identifier(symbol), sizes[symbol])
	}
	return name
}

// identifier returns a name of which Core ML accepts every letter.
func identifier(name string) string {
	out := strings.Map(func(r rune) rune {
		if r < 0x80 && mil.IsName("a"+string(r)) {
			return r
		}
		return '_'
	}, name)
	if !mil.IsName(out) {
		out = "_" + out
	}
	return out
}

// writer makes a package, function by function.
type writer struct {
	Options
	pkg  *mil.Package
	used map[string]bool // weights
}

// entry adds the function of an entry.
func (w *writer) entry(name string, entry ir.Entry, sizes map[string]int) error {
	if w.pkg.Program.Function(name) != nil {
		return ir.Errorf(ir.ErrName, "function %q is there twice", name)
	}
	g, err := entry.Graph.Bind(sizes)
	if err != nil {
		return err
	}
	e := &forms.Emitter{Builder: mil.NewBuilder(name, w.Opset), Half: w.Half}
	if err := e.Err(); err != nil {
		return err
	}
	if e.Packed, err = w.packed(g); err != nil {
		return err
	}
	if g, err = passes.Run(g, passes.Options{Claim: e.Claims}); err != nil {
		return err
	}
	f := &function{Emitter: e, w: w, graph: g, name: name, features: map[string]bool{}, states: map[string]mil.Ref{}}
	w.pkg.Metadata[name] = entry.Name
	ports := make([]forms.Value, len(g.Ports()))
	for i, p := range g.Ports() {
		if ports[i], err = f.port(p); err != nil {
			return err
		}
	}
	f.outputs(ports)
	done, err := f.Function()
	if err == nil {
		w.pkg.Program.Functions = append(w.pkg.Program.Functions, done)
	}
	return err
}

// packed returns the stored weights that are bytes.
func (w *writer) packed(g *ir.Graph) (map[string]*ir.Array, error) {
	out := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		weights, stored := w.Weights[p.Name]
		if d := p.Value.DType(); !stored || p.Kind != ir.ParamPort || d != ir.U8 && d != ir.U32 {
			continue
		}
		a, err := weights.Array()
		if err != nil {
			return nil, p.Value.Node().Fail(err)
		}
		out[p.Name] = a
	}
	return out, nil
}
