package msl

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// types are the names of types. With MSL 3.1, which has bfloat, bf16 is a type; otherwise it is its
// bits, as are floats of 8 bits. A bool in memory is a uint.
type types struct{ bfloat bool }

// of returns the type of a variable.
func (n types) of(t dtype.DType) string {
	if n.bfloat && t == dtype.BF16 {
		return "bfloat"
	}
	return typeNames[t]
}

var typeNames = map[dtype.DType]string{
	dtype.I8: "char", dtype.U8: "uchar", dtype.I16: "short", dtype.U16: "ushort",
	dtype.F8E4M3: "uchar", dtype.F8E5M2: "uchar", dtype.F16: "half", dtype.BF16: "ushort",
	dtype.Bool: "bool", dtype.I32: "int", dtype.U32: "uint", dtype.I64: "long", dtype.U64: "ulong",
	dtype.F32: "float",
}

// element returns the type of an element in memory.
func (n types) element(t dtype.DType) string {
	if t.IsBool() {
		return "uint"
	}
	return n.of(t)
}

// memory returns the type of an array element in memory.
func (n types) memory(a loop.Array) string {
	switch elem := n.element(a.DType); {
	case a.Access == loop.Atomic:
		return "atomic_" + elem
	case a.Width > 1:
		return elem + strconv.Itoa(a.Width)
	default:
		return elem
	}
}

// convert converts a value; MSL rounds to nearest even for all
// float types (Metal Shading Language Specification, "Type Conversions and Re-interpreting Data").
func (n types) convert(w *clike.Writer, x string, from, to dtype.DType) string {
	if !n.bfloat && (from == dtype.BF16 || to == dtype.BF16) { // f32 is the other one
		name := from.String() + "_to_" + to.String()
		w.Need(name)
		return name + "(" + x + ")"
	}
	return n.of(to) + "(" + x + ")"
}

// literal returns a constant whose type does not depend on its context.
func (t types) literal(_ *clike.Writer, n scalar.Expr) string {
	v, _ := n.Value()
	name := t.of(n.Type)
	switch n.Type {
	case dtype.I32:
		if v.I == math.MinInt32 {
			return "(-2147483647 - 1)" // the minus is no part of a literal
		}
		return strconv.FormatInt(v.I, 10)
	case dtype.U32:
		return strconv.FormatInt(v.I, 10) + "u"
	case dtype.I64:
		if v.I == math.MinInt64 {
			return "(-9223372036854775807l - 1)"
		}
		return strconv.FormatInt(v.I, 10) + "l"
	case dtype.U64:
		return strconv.FormatUint(uint64(v.I), 10) + "ul"
	}
	isFinite := !math.IsInf(v.F, 0) && !math.IsNaN(v.F)
	switch {
	case n.Type.IsInteger():
		return fmt.Sprintf("%s(%d)", name, v.I)
	case n.Type == dtype.F32 && isFinite:
		return clike.FloatLiteral(v.F, 32) + "f"
	case n.Type == dtype.F32:
		return fmt.Sprintf("as_type<float>(0x%08xu)", math.Float32bits(float32(v.F)))
	case n.Type == dtype.F16 && isFinite:
		return "half(" + clike.FloatLiteral(v.F, 32) + "f)"
	case n.Type == dtype.F16:
		return fmt.Sprintf("as_type<half>(ushort(0x%04x))", n.Type.FloatBits(v.F))
	}
	bits := fmt.Sprintf("%s(0x%0*x)", typeNames[n.Type], 2*n.Type.Size(), n.Type.FloatBits(v.F))
	if name == "bfloat" {
		return "as_type<bfloat>(" + bits + ")"
	}
	return bits
}
