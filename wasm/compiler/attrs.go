package compiler

import (
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
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

// readAttrs reads (name, tag, value) triples into the attributes of an op. What
// is not given keeps its default; negative axes count from the last.
func readAttrs(r *wire.Request, d *ir.Def, in []ir.Value) (ir.Attrs, error) {
	values := map[string]*given{}
	r.List(func() {
		name := r.Text()
		values[name] = readValue(r)
	})
	if r.Err() != nil {
		return nil, r.Err()
	}
	if d.NewAttrs == nil {
		if len(values) > 0 {
			return nil, ir.Attrf("the op has no attributes")
		}
		return nil, nil
	}
	s := &setter{values: values}
	if len(in) > 0 {
		s.rank = in[0].Rank()
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
	values map[string]*given
	rank   int
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
	if n < 0 && strings.HasPrefix(name, "ax") {
		return n + s.rank
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
	for i, t := range v.list {
		d, err := ir.ParseDim(t)
		if err != nil {
			s.fail(name)
		}
		(*p)[i] = d
	}
}
