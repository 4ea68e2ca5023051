package coreml

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/coreml/forms"
	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Options control the conversion of a module to a model.
type Options struct {
	// Opset is the set of operations, which determines the oldest system that runs the
	// model; 0 means CoreML8, iOS 18 and macOS 15.
	Opset Opset
	// Half computes the graph's f32 in fp16, the only type of the Neural Engine. Inputs and
	// outputs keep their types.
	Half bool
	// States maps the module's states to states of Core ML, which stay on the device
	// between runs. They are fp16, so it needs Half or a graph in f16, and CoreML8. Without
	// it a state is an input and, for its next value, an output.
	States bool
	// ParamStates also maps parameters that are not stored to states of Core ML:
	// [Model.Set] sets them when they change. It has the requirements of States.
	ParamStates bool
	// Checks makes functions report indices out of range found by check_index: a [Model]
	// then returns an error. Without it the results are undefined. It costs some integer
	// operations, which do not run on the Neural Engine.
	Checks bool
	// Weights are the values of parameters by name, stored in the package. Parameters
	// without a value are inputs.
	Weights map[string]native.Tensor
	// Shapes lists sizes for the symbolic dimensions. Each becomes a function of every entry; the
	// functions share the weights. It is nil for a module without symbolic dimensions.
	Shapes []map[string]int
}

// Error reports why a module cannot become a model. Err is of a kind of package ir and
// names the node.
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

// mainFunction is the required name of the only function of a model.
const mainFunction = "main"

// New converts a module to a model package. The error is an [*Error]: of kind
// [ir.ErrUnsupported] for ops that MIL or the opset lacks, [ir.ErrSymbol] for a symbolic
// dimension without sizes, [ir.ErrName] for unknown weights and duplicate shapes,
// [ir.ErrShape] and [ir.ErrDType] for weights of another type.
func New(m *ir.Module, o Options) (*Package, error) {
	if o.Opset == 0 {
		o.Opset = CoreML8
	}
	shapes := o.Shapes
	if shapes == nil {
		shapes = []map[string]int{nil}
	}
	w := &writer{Options: o, used: map[string]bool{}, pkg: &Package{
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
			return nil, &Error{"", ir.Errorf(ir.ErrName, "unknown parameter %q in Weights", name)}
		}
	}
	if err := mil.Validate(&w.pkg.Program); err != nil {
		return nil, &Error{"", err}
	}
	return w.pkg, nil
}

// functionName returns the name of an entry's function for some sizes, such as
// "step_batch4".
func functionName(entry string, sizes map[string]int) string {
	name := identifier(entry)
	for _, symbol := range slices.Sorted(maps.Keys(sizes)) {
		name += fmt.Sprintf("_%s%d", identifier(symbol), sizes[symbol])
	}
	return name
}

// identifier returns a name that Core ML accepts.
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

// writer builds a package, function by function.
type writer struct {
	Options
	pkg  *Package
	used map[string]bool // weights
}

// entry adds the functions of an entry.
func (w *writer) entry(name string, entry ir.Entry, sizes map[string]int) error {
	if w.pkg.Program.Function(name) != nil {
		return ir.Errorf(ir.ErrName, "function %q is declared twice", name)
	}
	g, err := entry.Graph.Bind(sizes)
	if err != nil {
		return err
	}
	e := forms.NewEmitter(mil.NewBuilder(name, w.Opset))
	e.Half = w.Half
	if err := e.Err(); err != nil {
		return err
	}
	if e.Packed, err = w.packed(g); err != nil {
		return err
	}
	if g, err = passes.Run(g, passes.Options{Claim: e.Claims}); err != nil {
		return err
	}
	f := &function{e: e, w: w, graph: g, name: name, features: map[string]bool{}, states: map[string]mil.Ref{}}
	w.pkg.Metadata[name] = entry.Name
	ports := make([]forms.Value, len(g.Ports()))
	for i, p := range g.Ports() {
		if ports[i], err = f.port(p); err != nil {
			return err
		}
	}
	f.outputs(ports)
	done, err := f.e.Function()
	if err == nil {
		w.pkg.Program.Functions = append(w.pkg.Program.Functions, done)
	}
	return err
}

// packed returns the stored weights that are packed bytes.
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
