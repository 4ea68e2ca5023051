package mil

import (
	"fmt"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Ref is a value of a function under construction: an input, a state or the
// result of an operation.
type Ref struct {
	Name  string
	Type  Type
	Value *Value // value of a constant, nil for others
	state bool
}

// Valid reports whether r is a value, not the zero Ref that operations return after an error.
func (r Ref) Valid() bool { return r.Name != "" }

// Args maps parameter names of an operation to arguments: values ([Ref], []Ref), or constants: int,
// []int, bool, []bool, string, float64 (of the type of the operand x), and [*Value].
type Args map[string]any

// Builder builds a function. It keeps the first error; later calls return zero values.
type Builder struct {
	f      *Function
	opset  Opset
	names  map[string]bool // names in use, reserved outputs included
	shared map[string]Ref  // constants by type and data
	err    error
}

// NewBuilder returns a builder of a function for an opset.
func NewBuilder(name string, opset Opset) *Builder {
	b := &Builder{f: &Function{Name: name}, opset: opset, names: map[string]bool{}, shared: map[string]Ref{}}
	if !opset.Valid() {
		b.Fail(ir.Errorf(ir.ErrUnsupported, "unknown opset %d: have CoreML5 to CoreML9", int(opset)))
	}
	return b
}

// Opset returns the opset of the function.
func (b *Builder) Opset() Opset { return b.opset }

// Len returns the number of operations so far.
func (b *Builder) Len() int { return len(b.f.Ops) }

// Err returns the first error.
func (b *Builder) Err() error { return b.err }

// Fail records an error, unless it is nil or one was recorded before.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Input declares an input.
func (b *Builder) Input(name string, t Type) Ref { return b.declare(Input{Name: name, Type: t}) }

// State declares a state for [Builder.ReadState] and [Builder.WriteState]. Core ML has states of
// f16 only, from CoreML8 on.
func (b *Builder) State(name string, t Type) Ref {
	return b.declare(Input{Name: name, Type: t, State: true})
}

func (b *Builder) declare(in Input) Ref {
	if !IsName(in.Name) || b.names[in.Name] {
		b.Fail(ir.Errorf(ir.ErrName, "input %q: a name must be letters, digits and underscores, must not begin with a digit, and must be unique", in.Name))
	}
	b.names[in.Name] = true
	b.f.Inputs = append(b.f.Inputs, in)
	return Ref{Name: in.Name, Type: in.Type, state: in.State}
}

// ReadState returns the current value of a state.
func (b *Builder) ReadState(state Ref) Ref { return b.Op(opReadState, Args{"input": state}) }

// WriteState sets a state to a value.
func (b *Builder) WriteState(state, value Ref) {
	b.Op(opWriteState, Args{"input": state, "data": value})
}

// Output makes a value an output with a name from [Builder.Reserve]. It may be an input, or an
// output already.
func (b *Builder) Output(name string, r Ref) {
	if slices.Contains(b.f.Outputs, name) || slices.ContainsFunc(b.f.Inputs, func(in Input) bool { return in.Name == name }) {
		b.Fail(ir.Errorf(ir.ErrName, "output %q has the name of another output or of an input", name))
	}
	b.named(name, "identity", Args{"x": r})
	b.f.Outputs = append(b.f.Outputs, name)
}

// Op adds an operation and returns its result.
func (b *Builder) Op(kind string, args Args) Ref {
	return b.named(b.fresh(kind), kind, args)
}

// named is Op with a name for the result.
func (b *Builder) named(name, kind string, args Args) Ref {
	if b.err != nil {
		return Ref{}
	}
	c := &call{kind: kind, opset: b.opset, in: map[string][]Ref{}}
	for parameter, a := range args {
		c.in[parameter] = b.refs(a, args)
	}
	if b.err != nil {
		return Ref{}
	}
	t, err := c.infer()
	if err != nil {
		b.Fail(&Error{Function: b.f.Name, Op: kind, Err: err})
		return Ref{}
	}
	op := &Op{Kind: kind, Name: name, Type: t}
	for _, p := range signatures[kind].parameters {
		if list, given := c.in[p.name]; given {
			values := make([]string, len(list))
			for i, r := range list {
				values[i] = r.Name
			}
			op.Inputs = append(op.Inputs, Argument{p.name, values})
		}
	}
	b.names[name] = true
	b.f.Ops = append(b.f.Ops, op)
	return Ref{Name: name, Type: t}
}

// refs converts an argument to values.
func (b *Builder) refs(a any, all Args) []Ref {
	switch a := a.(type) {
	case Ref:
		return []Ref{a}
	case []Ref:
		return a
	case *Value:
		return []Ref{b.Const(a)}
	case int:
		return []Ref{b.Const(Ints([]int{a}))}
	case []int:
		return []Ref{b.Const(Ints(a, len(a)))}
	case bool:
		return []Ref{b.Const(Bools([]bool{a}))}
	case []bool:
		return []Ref{b.Const(Bools(a, len(a)))}
	case string:
		return []Ref{b.Const(&Value{Type: TypeOf(String), Text: a})}
	case float64:
		x, _ := all["x"].(Ref)
		return []Ref{b.Const(Floats(x.Type.DType, []float64{a}))}
	}
	b.Fail(ir.Errorf(ir.ErrGraph, "unknown argument type %T", a))
	return nil
}

// sharedBytes is the maximum size of constants that are deduplicated; callers share larger ones
// themselves.
const sharedBytes = 1 << 10

// Const returns a constant. Equal small constants are one operation.
func (b *Builder) Const(v *Value) Ref {
	if b.err != nil {
		return Ref{}
	}
	if err := v.check(); err != nil {
		b.Fail(err)
		return Ref{}
	}
	key := ""
	if len(v.Data) <= sharedBytes {
		key = v.Type.String() + v.Text + "\x00" + string(v.Data)
		if r, ok := b.shared[key]; ok {
			return r
		}
	}
	name := b.fresh("const")
	b.names[name] = true
	b.f.Ops = append(b.f.Ops, &Op{Kind: opConst, Name: name, Type: v.Type, Value: v})
	r := Ref{Name: name, Type: v.Type, Value: v}
	if key != "" {
		b.shared[key] = r
	}
	return r
}

// fresh returns an unused name.
func (b *Builder) fresh(kind string) string {
	for i := len(b.f.Ops); i < math.MaxInt; i++ {
		if name := fmt.Sprintf("%s_%d", kind, i); !b.names[name] {
			return name
		}
	}
	return ""
}

// Reserve reserves a name for an output.
func (b *Builder) Reserve(name string) {
	if !IsName(name) {
		b.Fail(ir.Errorf(ir.ErrName, "output %q: a name must be letters, digits and underscores and must not begin with a digit", name))
	}
	b.names[name] = true
}

// Function returns the finished function without dead operations, or the first error.
func (b *Builder) Function() (*Function, error) {
	if b.err == nil && len(b.f.Outputs) == 0 {
		b.Fail(ir.Errorf(ir.ErrGraph, "function %s has no output", b.f.Name))
	}
	b.f.prune()
	return b.f, b.err
}

// prune removes operations that no output and no state depends on.
func (f *Function) prune() {
	needed := map[string]bool{}
	for _, name := range f.Outputs {
		needed[name] = true
	}
	kept := slices.Clone(f.Ops)
	for i, op := range slices.Backward(f.Ops) {
		if !needed[op.Name] && op.hasResult() {
			kept[i] = nil
			continue
		}
		for _, a := range op.Inputs {
			for _, name := range a.Values {
				needed[name] = true
			}
		}
	}
	f.Ops = slices.DeleteFunc(kept, func(op *Op) bool { return op == nil })
}

// IsName reports whether Core ML accepts a string as the name of a value: letters, digits and
// underscores, not starting with a digit.
func IsName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// Rename replaces the recorded error by one with more context, such as the node of a graph.
func (b *Builder) Rename(err error) { b.err = err }
