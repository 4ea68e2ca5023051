package compiler

import (
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/wasm/wire"
)

// The kinds of attribute value on the wire.
const (
	tagNumber = iota // f64
	tagBool
	tagText
	tagList // of numbers or texts
)

// given is one attribute as the host gave it.
type given struct {
	tag    int
	number float64
	text   string
	list   []string // sizes, each as text
	used   bool
}

// keepDims is what reductions take beyond the attributes of the op: whether the
// axes they reduce stay, with size 1.
const keepDims = "keep_dims"

// readAttrs reads (name, tag, value) triples into the attributes of an op, and
// whether a reduction is to keep its axes. What is not given keeps its default;
// negative axes count from the last.
func readAttrs(r *wire.Request, d *ir.Def, in []ir.Value) (a ir.Attrs, keep bool, err error) {
	values := map[string]*given{}
	r.List(func() {
		name := r.Text()
		values[name] = readValue(r)
	})
	if k := values[keepDims]; k != nil && d.Reduces != nil {
		if keep = k.number != 0; k.tag != tagBool {
			return nil, false, ir.Attrf("%q is of the wrong type", keepDims)
		}
		delete(values, keepDims)
	}
	if r.Err() != nil {
		return nil, false, r.Err()
	}
	a, err = attrsFrom(values, d, in)
	return a, keep, err
}

func attrsFrom(values map[string]*given, d *ir.Def, in []ir.Value) (ir.Attrs, error) {
	if d.NewAttrs == nil {
		if len(values) > 0 {
			return nil, ir.Attrf("the op has no attributes")
		}
		return nil, nil
	}
	s := &setter{op: d.Op, values: values}
	if len(in) > 0 {
		s.shape = in[0].Shape()
	}
	a := d.NewAttrs()
	a.Visit(s)
	if s.err != nil {
		return nil, s.err
	}
	for name, v := range values {
		if !v.used {
			return nil, ir.Attrf("there is no attribute %q", name)
		}
	}
	if c, ok := a.(ir.Completer); ok {
		c.Complete(typesOf(in), func(name string) bool { return values[name] != nil })
	}
	return a, nil
}

func readValue(r *wire.Request) *given {
	v := &given{tag: r.U32()}
	switch v.tag {
	case tagNumber:
		v.number = r.F64()
	case tagBool:
		if r.Bool() {
			v.number = 1
		}
	case tagText:
		v.text = r.Text()
	default:
		v.list = r.Texts()
	}
	return v
}

// setter writes the given values into the fields it is shown.
type setter struct {
	op     ir.Op
	values map[string]*given
	shape  ir.Shape // of the first operand
	start  []ir.Dim // of a slice
	err    error
}

func (s *setter) find(name string, tag int) *given {
	v := s.values[name]
	if v == nil {
		return nil
	}
	v.used = true
	if v.tag != tag {
		s.fail(name)
		return nil
	}
	return v
}

func (s *setter) fail(name string) {
	if s.err == nil {
		s.err = ir.Attrf("%q is of the wrong type", name)
	}
}

// axis counts a negative axis from the last one.
func (s *setter) axis(name string, n int) int {
	if n < 0 && (strings.HasPrefix(name, "ax") || name == "perm") {
		return n + len(s.shape)
	}
	return n
}

func (s *setter) Int(name string, p *int) {
	if v := s.find(name, tagNumber); v != nil {
		if *p = s.axis(name, int(v.number)); float64(int(v.number)) != v.number {
			s.fail(name)
		}
	}
}

func (s *setter) Ints(name string, p *[]int) {
	v := s.find(name, tagList)
	if v == nil {
		return
	}
	*p = make([]int, len(v.list))
	for i, t := range v.list {
		n, ok := atoi(t)
		if !ok {
			s.fail(name)
		}
		(*p)[i] = s.axis(name, n)
	}
}

func (s *setter) Float(name string, p *float64) {
	if v := s.find(name, tagNumber); v != nil {
		*p = v.number
	}
}

func (s *setter) Bool(name string, p *bool) {
	if v := s.find(name, tagBool); v != nil {
		*p = v.number != 0
	}
}

func (s *setter) Text(name string, p *string) {
	if v := s.find(name, tagText); v != nil {
		*p = v.text
	}
}

func (s *setter) DType(name string, p *ir.DType) {
	v := s.find(name, tagText)
	if v == nil {
		return
	}
	d, err := dtype.Parse(v.text)
	if err != nil && s.err == nil {
		s.err = ir.DTypef("%v", err)
	}
	*p = d
}

func (s *setter) Dims(name string, p *[]ir.Dim) {
	v := s.find(name, tagList)
	if v == nil {
		return
	}
	*p = make([]ir.Dim, len(v.list))
	open := -1
	for i, t := range v.list {
		d, err := ir.ParseDim(t)
		if n, ok := atoi(t); ok && n < 0 {
			d, err = s.relative(name, i, n)
			if s.op == ops.OpReshape && n == -1 && open < 0 {
				open, d, err = i, ir.N(1), nil
			}
		}
		if err != nil && s.err == nil {
			s.err = ir.Attrf("%q has %s as entry %d, which is no size", name, t, i)
		}
		(*p)[i] = d
	}
	if open >= 0 {
		rest, err := s.shape.Size().Div(ir.Shape(*p).Size())
		if err != nil && s.err == nil {
			s.err = err
		}
		(*p)[open] = rest
	}
	if name == "start" {
		s.start = *p
	}
}

// relative returns what a negative number stands for in a slice: a start is
// counted from the end of the axis, and a size of -1 is all there is from the
// start on.
func (s *setter) relative(name string, i, n int) (ir.Dim, error) {
	bad := ir.Errorf(ir.ErrSyntax, "%d is not a size", n)
	switch {
	case s.op != ops.OpSlice || i >= len(s.shape):
		return ir.Dim{}, bad
	case name == "start":
		return s.shape[i].Sub(ir.N(-n)), nil
	case n != -1 || i >= len(s.start):
		return ir.Dim{}, bad
	}
	stride := 1
	if v := s.values["stride"]; v != nil && i < len(v.list) {
		stride, _ = atoi(v.list[i])
	}
	rest := s.shape[i].Sub(s.start[i])
	if n, ok := rest.Const(); ok && stride > 1 {
		return ir.N((n + stride - 1) / stride), nil
	}
	return rest.Div(ir.N(stride))
}
