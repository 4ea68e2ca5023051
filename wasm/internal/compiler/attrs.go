package compiler

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/wasm/internal/wire"
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

// keepDims is an option of reductions that is no attribute of the op: whether the
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
			return nil, false, ir.Attrf("keepDims is %s; it must be a boolean", k)
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
		if names := slices.Sorted(maps.Keys(values)); len(names) > 0 {
			return nil, ir.Attrf("unknown attribute %s: have none", hostName(names[0]))
		}
		return nil, nil
	}
	s := &setter{op: d.Op, values: values}
	if d.Reduces != nil {
		s.names = []string{keepDims}
	}
	if len(in) > 0 {
		s.shape = in[0].Shape()
	}
	a := d.NewAttrs()
	a.Visit(s)
	if s.err != nil {
		return nil, s.err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !values[name].used {
			return nil, ir.Attrf("unknown attribute %s: have %s", hostName(name), hostName(strings.Join(s.names, ", ")))
		}
	}
	if c, ok := a.(ir.Defaulter); ok {
		c.Complete(ir.TypesOf(in), func(name string) bool { return values[name] != nil })
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
	names  []string // of all attributes
	shape  ir.Shape // of the first operand
	start  []ir.Dim // of a slice
	err    error
}

func (s *setter) find(name string, tag int) *given {
	s.names = append(s.names, name)
	v := s.values[name]
	if v == nil {
		return nil
	}
	v.used = true
	if v.tag != tag {
		s.fail(name, v, [...]string{"a number", "a boolean", "a text", "a list"}[tag])
		return nil
	}
	return v
}

// fail records that an attribute has the wrong type.
func (s *setter) fail(name string, v *given, wanted string) {
	if s.err == nil {
		s.err = ir.Attrf("%s is %s; it must be %s", hostName(name), v, wanted)
	}
}

// hostName returns a name of an attribute as the host has it: pad_lo is padLo.
func hostName(name string) string {
	var w strings.Builder
	for i, part := range strings.Split(name, "_") {
		if i > 0 && part != "" && 'a' <= part[0] && part[0] <= 'z' {
			w.WriteByte(part[0] - 'a' + 'A')
			part = part[1:]
		}
		w.WriteString(part)
	}
	return w.String()
}

// String returns the given value.
func (v *given) String() string {
	switch v.tag {
	case tagNumber:
		return strconv.FormatFloat(v.number, 'g', -1, 64)
	case tagBool:
		return strconv.FormatBool(v.number != 0)
	case tagText:
		return strconv.Quote(v.text)
	default:
		return "[" + strings.Join(v.list, ", ") + "]"
	}
}

// axis counts a negative axis from the last one, of the result where that has one more.
func (s *setter) axis(name string, n int) int {
	if n < 0 && (strings.HasPrefix(name, "ax") || name == "perm") {
		n += len(s.shape)
		if s.op == ops.OpStack || s.op == ops.OpOneHot {
			n++
		}
	}
	return n
}

func (s *setter) Int(name string, p *int) {
	if v := s.find(name, tagNumber); v != nil {
		if *p = s.axis(name, int(v.number)); float64(int(v.number)) != v.number {
			s.fail(name, v, "a whole number")
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
			s.fail(name, v, "a list of whole numbers")
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
			s.err = ir.Attrf("entry %d of %s is %s; it must be a size", i, hostName(name), t)
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

// relative resolves a negative number of a slice: a start counts from the end of the axis, and a
// size of -1 extends to the end.
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
