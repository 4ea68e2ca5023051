package main

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// attribute is one attribute of an op as TypeScript knows it.
type attribute struct {
	name, typ string
	required  bool
	byDefault string // the default in words, "" if it cannot be stated
}

// mark returns the suffix of an optional attribute's name.
func (a attribute) mark() string {
	if a.required {
		return ""
	}
	return "?"
}

// attributesOf returns the attributes of an op in their order.
func attributesOf(d *ir.Def) []attribute {
	if d.NewAttrs == nil {
		return nil
	}
	l := &lister{}
	d.NewAttrs().Visit(l)
	for i, a := range l.list {
		if l.list[i].required = required(d, a.name); !l.list[i].required {
			l.list[i].byDefault = byDefault(d, a.name)
		}
	}
	if d.Reduces != nil {
		l.list = append(l.list, attribute{name: "keep_dims", typ: "boolean", byDefault: "false"})
	}
	return l.list
}

// required reports whether no sample of the op, other than those of rank 0, is
// valid when the attribute has its default.
func required(d *ir.Def, name string) bool {
	for _, s := range d.Samples() {
		if s.Attrs == nil || len(s.In) > 0 && len(s.In[0].Type().Shape) == 0 {
			continue
		}
		if _, err := infer(d, s, without(d, s, name)); err == nil {
			return false
		}
	}
	return true
}

// without returns the attributes of a sample, of which the named one has its default.
func without(d *ir.Def, s ir.Sample, name string) ir.Attrs {
	given := &recorder{fields: map[string]any{}}
	s.Attrs.Visit(given)
	delete(given.fields, name)
	a := d.NewAttrs()
	a.Visit(&player{fields: given.fields})
	if c, ok := a.(ir.Defaulter); ok {
		c.Complete(typesOf(s.In), func(n string) bool { return n != name })
	}
	return a
}

// byDefault describes the default of an attribute: a statement that holds for all samples.
func byDefault(d *ir.Def, name string) string {
	words := map[string]int{}
	samples := 0
	for _, s := range d.Samples() {
		types := typesOf(s.In)
		if s.Attrs == nil || len(types) > 0 && len(types[0].Shape) == 0 {
			continue
		}
		samples++
		a := d.NewAttrs()
		if c, ok := a.(ir.Defaulter); ok {
			c.Complete(types, func(string) bool { return false })
		}
		given := &recorder{fields: map[string]any{}}
		a.Visit(given)
		for _, w := range describe(given.fields[name], types) {
			words[w]++
		}
	}
	for _, w := range slices.Sorted(maps.Keys(words)) {
		if words[w] == samples {
			return w
		}
	}
	return ""
}

// describe returns the statements that hold for a default value, given operands of some types.
func describe(value any, in []ir.Type) []string {
	var shape ir.Shape
	if len(in) > 0 {
		shape = in[0].Shape
	}
	switch v := value.(type) {
	case int:
		if len(shape) > 0 && v == len(shape)-1 {
			return []string{fmt.Sprint(v), "the last one"}
		}
		return []string{fmt.Sprint(v)}
	case []int:
		all := len(v) > 0 && len(v) == len(shape)
		for i, axis := range v {
			all = all && axis == i
		}
		if all {
			return []string{"all axes"}
		}
	case float64:
		if n, ok := last(shape).Const(); ok && n > 1 && v == 1/math.Sqrt(float64(n)) {
			return []string{"1/√d for operands [..., d]"}
		}
		return []string{fmt.Sprintf("%g", v)}
	case bool:
		return []string{fmt.Sprint(v)}
	case ir.DType:
		if v.Valid() {
			return []string{"'" + v.String() + "'"}
		}
	}
	return nil
}

// last returns the size of the last axis, 0 if there is none.
func last(shape ir.Shape) ir.Dim {
	if len(shape) == 0 {
		return ir.N(0)
	}
	return shape[len(shape)-1]
}

// infer returns the types of the results of a sample with other attributes.
func infer(d *ir.Def, s ir.Sample, a ir.Attrs) ([]ir.Type, error) {
	var types []ir.Type
	_, err := ir.Build("sample", func(b *ir.Builder) {
		var in []ir.Value
		for _, x := range s.In {
			in = append(in, b.Constant(x.Type(), x.Bytes()))
		}
		for _, v := range b.AddNode(d.Op, a, s.Subs, in...) {
			types = append(types, v.Type())
		}
	})
	return types, err
}

func typesOf(in []*ir.Array) []ir.Type {
	out := make([]ir.Type, len(in))
	for i, a := range in {
		out[i] = a.Type()
	}
	return out
}

// lister lists the fields it is shown with their types in TypeScript.
type lister struct{ list []attribute }

func (l *lister) add(name, typ string) { l.list = append(l.list, attribute{name: name, typ: typ}) }

func (l *lister) Int(name string, _ *int)        { l.add(name, "number") }
func (l *lister) Ints(name string, _ *[]int)     { l.add(name, intsType(name)) }
func (l *lister) Float(name string, _ *float64)  { l.add(name, "number") }
func (l *lister) Bool(name string, _ *bool)      { l.add(name, "boolean") }
func (l *lister) Text(name string, _ *string)    { l.add(name, "string") }
func (l *lister) DType(name string, _ *ir.DType) { l.add(name, "DType") }
func (l *lister) Dims(name string, _ *[]ir.Dim)  { l.add(name, "readonly Dim[]") }

// intsType returns the type of a list of whole numbers: a single axis needs no brackets.
func intsType(name string) string {
	if name == "axes" {
		return "Axes"
	}
	return "readonly number[]"
}

// recorder keeps the fields it is shown by name, player sets the fields that
// it has a value for.
type recorder struct{ fields map[string]any }

func (r *recorder) Int(name string, p *int)        { r.fields[name] = *p }
func (r *recorder) Ints(name string, p *[]int)     { r.fields[name] = *p }
func (r *recorder) Float(name string, p *float64)  { r.fields[name] = *p }
func (r *recorder) Bool(name string, p *bool)      { r.fields[name] = *p }
func (r *recorder) Text(name string, p *string)    { r.fields[name] = *p }
func (r *recorder) DType(name string, p *ir.DType) { r.fields[name] = *p }
func (r *recorder) Dims(name string, p *[]ir.Dim)  { r.fields[name] = *p }

type player struct{ fields map[string]any }

func set[T any](fields map[string]any, name string, p *T) {
	if v, ok := fields[name]; ok {
		*p = v.(T)
	}
}

func (pl *player) Int(name string, p *int)        { set(pl.fields, name, p) }
func (pl *player) Ints(name string, p *[]int)     { set(pl.fields, name, p) }
func (pl *player) Float(name string, p *float64)  { set(pl.fields, name, p) }
func (pl *player) Bool(name string, p *bool)      { set(pl.fields, name, p) }
func (pl *player) Text(name string, p *string)    { set(pl.fields, name, p) }
func (pl *player) DType(name string, p *ir.DType) { set(pl.fields, name, p) }
func (pl *player) Dims(name string, p *[]ir.Dim)  { set(pl.fields, name, p) }
