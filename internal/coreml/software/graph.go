package software

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Graph returns the graph of a function: its inputs are inputs of their names, its states are
// states. The error is of kind [ir.ErrUnsupported] for an unknown operation or element type, and
// names the operation.
func Graph(f *mil.Function) (*ir.Graph, error) {
	return ir.Build(f.Name, func(b *ir.Builder) {
		r := &reader{Builder: b, values: map[string]ir.Value{}, constants: map[string]*mil.Value{}}
		for _, in := range f.Inputs {
			kind := ir.InputPort
			if in.State {
				kind = ir.StatePort
			}
			r.values[in.Name] = b.Port(kind, in.Name, r.typ(in.Type))
		}
		written := map[string]ir.Value{}
		for _, op := range f.Ops {
			if b.Err() == nil {
				r.operation(op, written)
			}
		}
		for _, in := range f.Inputs {
			if v, ok := written[in.Name]; ok {
				b.SetState(in.Name, v)
			} else if in.State {
				b.SetState(in.Name, r.values[in.Name])
			}
		}
		for _, name := range f.Outputs {
			b.Output(name, r.values[name])
		}
	})
}

// reader reads the operations of one function.
type reader struct {
	*ir.Builder
	values    map[string]ir.Value
	constants map[string]*mil.Value
}

// dtypes are the supported element types.
var dtypes = map[mil.DType]ir.DType{mil.Bool: ir.Bool, mil.Int32: ir.I32, mil.Float16: ir.F16, mil.Float32: ir.F32}

func (r *reader) typ(t mil.Type) ir.Type {
	d, ok := dtypes[t.DType]
	if !ok {
		r.Fail(ir.Errorf(ir.ErrUnsupported, "unknown element type %s", t.DType))
	}
	return ir.Type{DType: d, Shape: ir.Dims(t.Dims...)}
}

func (r *reader) operation(op *mil.Op, written map[string]ir.Value) {
	c := &call{reader: r, op: op}
	switch op.Kind {
	case "const":
		r.constants[op.Name] = op.Value
		if _, ok := dtypes[op.Value.Type.DType]; ok {
			r.values[op.Name] = r.Constant(r.typ(op.Value.Type), op.Value.Data)
		}
		return
	case "read_state":
		state := c.name("input")
		if v, ok := written[state]; ok {
			r.values[op.Name] = v
			return
		}
		r.values[op.Name] = r.values[state]
		return
	case "write_state":
		written[c.name("input")] = c.arg("data")
		return
	}
	implementation, ok := implementations[op.Kind]
	if !ok {
		r.Fail(ir.Errorf(ir.ErrUnsupported, "unknown operation %s", op))
		return
	}
	v := implementation(c)
	if r.Err() == nil && !v.Type().Equal(r.typ(op.Type)) {
		r.Fail(ir.Shapef("%s returns %s; it is declared as %s", op, v.Type(), op.Type))
	}
	r.values[op.Name] = v
}

// call is an operation with its arguments.
type call struct {
	*reader
	op *mil.Op
}

// argument returns the values of a parameter by name, nil if it is absent.
func (c *call) argument(parameter string) []string {
	for _, a := range c.op.Inputs {
		if a.Parameter == parameter {
			return a.Values
		}
	}
	return nil
}

func (c *call) has(parameter string) bool { return c.argument(parameter) != nil }

func (c *call) name(parameter string) string {
	if a := c.argument(parameter); len(a) > 0 {
		return a[0]
	}
	return ""
}

func (c *call) arg(parameter string) ir.Value { return c.values[c.name(parameter)] }
func (c *call) x() ir.Value                   { return c.arg("x") }
func (c *call) y() ir.Value                   { return c.arg("y") }

// ints returns a constant of integers, or otherwise if it is absent.
func (c *call) ints(parameter string, otherwise ...int) []int {
	if v := c.constants[c.name(parameter)]; v != nil {
		return v.Ints()
	}
	return otherwise
}

// axis returns an axis counted from the front.
func (c *call) axis(of ir.Value, otherwise int) int {
	a := c.ints("axis", otherwise)[0]
	if a < 0 {
		a += of.Rank()
	}
	return a
}

func (c *call) axes(of ir.Value) []int {
	var all []int
	for i := range of.Rank() {
		all = append(all, i)
	}
	out := slices.Clone(c.ints("axes", all...))
	for i, a := range out {
		if a < 0 {
			out[i] += of.Rank()
		}
	}
	return out
}

func (c *call) flag(parameter string) bool {
	v := c.constants[c.name(parameter)]
	return v != nil && len(v.Data) == 1 && v.Data[0] == 1
}

func (c *call) word(parameter string) string {
	if v := c.constants[c.name(parameter)]; v != nil {
		return v.Text
	}
	return ""
}

// number returns a constant number.
func (c *call) number(parameter string, otherwise float64) float64 {
	if v := c.constants[c.name(parameter)]; v != nil {
		return v.Number(0)
	}
	return otherwise
}

// like returns a constant of the type of a value.
func (c *call) like(v ir.Value, x float64) ir.Value { return ops.Const(c.Builder, v.DType(), x) }

// dims returns the declared sizes of the result.
func (c *call) dims() []ir.Dim { return ir.Dims(c.op.Type.Dims...) }
