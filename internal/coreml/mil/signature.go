package mil

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Operations that programs encode in a special way.
const (
	opConst      = "const"
	opReadState  = "read_state"
	opWriteState = "write_state"
)

// accepts is a set of element types.
type accepts uint16

const (
	floats accepts = 1 << iota
	ints           // int32
	bools
	text
	packed   // int8, uint8, int4, uint4
	states   // a state of any type
	numbers  = floats | ints
	anything = numbers | bools
)

func (a accepts) has(d DType) bool {
	switch d {
	case Float16, Float32:
		return a&floats != 0
	case Int32:
		return a&ints != 0
	case Bool:
		return a&bools != 0
	case String:
		return a&text != 0
	}
	return a&packed != 0
}

// parameter is one parameter of an operation.
type parameter struct {
	name     string
	takes    accepts
	optional bool
	constant bool     // its value must be a constant
	list     bool     // takes several values
	words    []string // the allowed strings, if it is one
}

// need is a required parameter, known a required constant, and may an optional constant.
func need(name string, takes accepts) parameter { return parameter{name: name, takes: takes} }

func known(name string, takes accepts) parameter {
	return parameter{name: name, takes: takes, constant: true}
}

func may(name string, takes accepts, words ...string) parameter {
	return parameter{name: name, takes: takes, optional: true, constant: true, words: words}
}

// signature is the parameters of an operation and the type of its result.
type signature struct {
	since      Opset
	parameters []parameter
	infer      func(c *call) (Type, error)
}

// signatures holds every operation that rlx emits. [Validate] refuses all others.
var signatures = map[string]signature{}

// declare adds operations with one signature. It is called from init functions.
func declare(since Opset, infer func(c *call) (Type, error), parameters []parameter, kinds ...string) {
	for _, kind := range kinds {
		signatures[kind] = signature{since, parameters, infer}
	}
}

// call is an operation with its arguments, for type inference.
type call struct {
	kind  string
	opset Opset
	in    map[string][]Ref
}

// infer checks the arguments and returns the type of the result. The errors are
// of the kinds ErrName, ErrDType, ErrShape and ErrAttr of package ir, and
// ErrUnsupported for an operation that the opset lacks.
func (c *call) infer() (Type, error) {
	s, ok := signatures[c.kind]
	if !ok {
		return Type{}, ir.Errorf(ir.ErrName, "unknown operation")
	}
	if c.opset < s.since {
		return Type{}, ir.Errorf(ir.ErrUnsupported, "the opset is %s; the operation needs %s", c.opset, s.since)
	}
	for name := range c.in {
		if !slices.ContainsFunc(s.parameters, func(p parameter) bool { return p.name == name }) {
			return Type{}, ir.Errorf(ir.ErrName, "unknown parameter %q", name)
		}
	}
	for _, p := range s.parameters {
		if err := c.check(p); err != nil {
			return Type{}, err
		}
	}
	return s.infer(c)
}

// check checks the values of one parameter against its declaration.
func (c *call) check(p parameter) error {
	values, given := c.in[p.name]
	if !given {
		if p.optional {
			return nil
		}
		return ir.Errorf(ir.ErrName, "parameter %q is missing", p.name)
	}
	if len(values) == 0 || len(values) > 1 && !p.list {
		return ir.Errorf(ir.ErrGraph, "parameter %q has %d values; it needs one", p.name, len(values))
	}
	for _, r := range values {
		switch {
		case !r.Valid():
			return ir.Errorf(ir.ErrGraph, "parameter %q is not a value", p.name)
		case r.state != (p.takes&states != 0):
			return ir.DTypef("parameter %q is a state and must not be, or is none and must be", p.name)
		case !r.state && !p.takes.has(r.Type.DType):
			return ir.DTypef("parameter %q cannot be %s", p.name, r.Type)
		case p.constant && r.Value == nil:
			return ir.Errorf(ir.ErrGraph, "parameter %q must be a constant", p.name)
		case p.words != nil && !slices.Contains(p.words, r.Value.Text):
			return ir.Attrf("parameter %q is %q; it must be one of %v", p.name, r.Value.Text, p.words)
		}
	}
	return nil
}

// has reports whether a parameter is present.
func (c *call) has(name string) bool { return len(c.in[name]) > 0 }

// typ returns the type of the value of a parameter.
func (c *call) typ(name string) Type {
	if !c.has(name) {
		return Type{}
	}
	return c.in[name][0].Type
}

// ints returns the elements of a constant parameter, or otherwise if it is absent.
func (c *call) ints(name string, otherwise []int) []int {
	if !c.has(name) || c.in[name][0].Value == nil {
		return otherwise
	}
	return c.in[name][0].Value.Ints()
}

// flag returns a parameter that is one bool, false if it is absent.
func (c *call) flag(name string) bool {
	return c.has(name) && c.in[name][0].Value != nil && slices.Equal(c.in[name][0].Value.Data, []byte{1})
}

// word returns a parameter that is a string.
func (c *call) word(name string) string {
	if !c.has(name) || c.in[name][0].Value == nil {
		return ""
	}
	return c.in[name][0].Value.Text
}

// Number returns element i of a constant as a number.
func (v *Value) Number(i int) float64 {
	switch d := v.Data; v.Type.DType {
	case Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(d[4*i:])))
	case Float16:
		return ir.F16.FloatFromBits(uint64(binary.LittleEndian.Uint16(d[2*i:])))
	case Int32:
		return float64(int32(binary.LittleEndian.Uint32(d[4*i:])))
	case Int8:
		return float64(int8(d[i]))
	case Int4:
		return float64(int8(d[i/2]>>(4*(i%2))<<4) >> 4)
	case UInt4:
		return float64(d[i/2] >> (4 * (i % 2)) & 15)
	default:
		return float64(d[i])
	}
}

// axis returns an axis counted from the front, or an error of kind ErrIndex.
func axis(a, rank int) (int, error) {
	if a < -rank || a >= rank {
		return 0, ir.Errorf(ir.ErrIndex, "axis %d is out of range for rank %d", a, rank)
	}
	if a < 0 {
		a += rank
	}
	return a, nil
}
