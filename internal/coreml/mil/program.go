package mil

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
)

// ErrPackage: a model package is damaged, or its parts contradict each other.
var ErrPackage = errors.New("bad model package")

// Error is an error with its location in a program. Err is of one of the kinds of package ir, or of
// kind [ErrPackage].
type Error struct {
	Function string // "" outside functions
	Op       string // the operation and the name of its first result, "" for none
	Err      error
}

// Error returns "function main: reduce_sum y: shape mismatch: ...".
func (e *Error) Error() string {
	s := e.Err.Error()
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	if e.Function != "" {
		s = "function " + e.Function + ": " + s
	}
	return s
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Program is the functions of a model. The first one is the default.
type Program struct {
	Opset     Opset
	Functions []*Function
}

// Function returns the function with the given name, nil if there is none.
func (p *Program) Function(name string) *Function {
	i := slices.IndexFunc(p.Functions, func(f *Function) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return p.Functions[i]
}

// Function is a list of operations in topological order.
type Function struct {
	Name    string
	Inputs  []Input
	Ops     []*Op
	Outputs []string // names of results
}

// Input is an input of a function, or a state that it reads and writes.
type Input struct {
	Name  string
	Type  Type
	State bool
}

// Op is one operation. Its single result has the name of the operation; writes to states have none.
type Op struct {
	Kind   string // "const", "add", ...
	Name   string
	Inputs []Argument
	Type   Type   // type of the result
	Value  *Value // value of a const
}

// String returns kind and name.
func (o *Op) String() string { return o.Kind + " " + o.Name }

// hasResult reports whether the operation returns a value.
func (o *Op) hasResult() bool { return o.Kind != opWriteState }

// Argument is the list of values of a parameter of an operation, by name; most parameters take one.
type Argument struct {
	Parameter string
	Values    []string
}

// Value is a constant. Data holds its elements, little-endian and dense; of two 4-bit elements in a
// byte the first is the low one. A string is in Text.
type Value struct {
	Type Type
	Data []byte
	Text string

	elsewhere bool // the data are in a file and were not read
}

// Floats returns a constant of type fp16 or fp32 with the given elements, rounded to the type.
func Floats(d DType, x []float64, dims ...int) *Value {
	v := &Value{Type: TypeOf(d, dims...)}
	for _, f := range x {
		if d == Float16 {
			v.Data = binary.LittleEndian.AppendUint16(v.Data, uint16(dtype.F16.FloatBits(f)))
		} else {
			v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(float32(f)))
		}
	}
	return v
}

// Ints returns a constant of type int32 with the given elements.
func Ints(x []int, dims ...int) *Value {
	v := &Value{Type: TypeOf(Int32, dims...)}
	for _, i := range x {
		v.Data = binary.LittleEndian.AppendUint32(v.Data, uint32(int32(i)))
	}
	return v
}

// Integers returns a constant of an integer type of at most 8 bits with the given elements, which
// must be in its range.
func Integers(d DType, x []int, dims ...int) *Value {
	v := &Value{Type: TypeOf(d, dims...), Data: make([]byte, d.bytes(len(x)))}
	for i, n := range x {
		if dtypes[d].bits == 4 {
			v.Data[i/2] |= byte(n) & 15 << (4 * (i % 2))
		} else {
			v.Data[i] = byte(n)
		}
	}
	return v
}

// Bools returns a constant of type bool with the given elements.
func Bools(x []bool, dims ...int) *Value {
	v := &Value{Type: TypeOf(Bool, dims...), Data: make([]byte, len(x))}
	for i, b := range x {
		if b {
			v.Data[i] = 1
		}
	}
	return v
}

// Ints returns the elements of a constant of type int32.
func (v *Value) Ints() []int {
	out := make([]int, len(v.Data)/4)
	for i := range out {
		out[i] = int(int32(binary.LittleEndian.Uint32(v.Data[4*i:])))
	}
	return out
}

// check reports whether the data have the size of the type.
func (v *Value) check() error {
	if v.Type.DType == String {
		return nil
	}
	if _, known := dtypes[v.Type.DType]; !known {
		return fmt.Errorf("%w: unknown type %s of a constant", ErrPackage, v.Type)
	}
	if want := v.Type.DType.bytes(v.Type.Len()); len(v.Data) != want && !v.elsewhere {
		return ir.Shapef("a constant has %d bytes; %s needs %d", len(v.Data), v.Type, want)
	}
	return nil
}

// Reshaped returns the constant with another shape of the same size. It shares the data.
func (v *Value) Reshaped(dims []int) *Value {
	return &Value{Type: Type{v.Type.DType, slices.Clone(dims)}, Data: v.Data}
}

// Transposed returns the constant with permuted axes. Elements must be whole bytes.
func (v *Value) Transposed(perm []int) *Value {
	size := v.Type.DType.bytes(1)
	out := &Value{Type: Type{v.Type.DType, make([]int, len(perm))}, Data: make([]byte, len(v.Data))}
	steps := make([]int, len(perm)) // source stride of each axis of the result
	for i, p := range perm {
		out.Type.Dims[i], steps[i] = v.Type.Dims[p], size
		for _, d := range v.Type.Dims[p+1:] {
			steps[i] *= d
		}
	}
	at, from := make([]int, len(perm)), 0
	for to := 0; to < len(out.Data); to += size {
		copy(out.Data[to:to+size], v.Data[from:])
		for k := len(at) - 1; k >= 0; k-- {
			at[k]++
			from += steps[k]
			if at[k] < out.Type.Dims[k] {
				break
			}
			from -= at[k] * steps[k]
			at[k] = 0
		}
	}
	return out
}
