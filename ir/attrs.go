package ir

import (
	"slices"
	"strconv"
)

// Attrs are the attributes of an op: a pointer to a struct. Visit passes every field to v with its
// name, always in the same order. Printing, parsing, hashing, comparing and the op's TypeScript
// signature all come from this method.
type Attrs interface {
	Visit(v AttrVisitor)
}

// AttrVisitor receives the fields of an attribute struct. A printer reads through the pointers, a
// parser writes through them. Visit itself must not write to the fields, because graphs share
// attributes.
type AttrVisitor interface {
	Int(name string, p *int)
	Ints(name string, p *[]int)
	Float(name string, p *float64)
	Bool(name string, p *bool)
	Text(name string, p *string)
	DType(name string, p *DType)
	// Dims is a list of sizes, which may be symbolic.
	Dims(name string, p *[]Dim)
}

// Defaulter is implemented by attributes with defaults that depend on the operands. Hosts that set
// attributes by name call Complete before adding the node; given reports which names were set.
type Defaulter interface {
	Complete(in []Type, given func(name string) bool)
}

// ConstantAttrs hold a literal: its type and its elements, little endian, row-major, [Type.Bytes]
// bytes in all.
type ConstantAttrs struct {
	Type Type
	Data []byte
}

// Visit visits nothing: the text form has its own syntax for constants.
func (*ConstantAttrs) Visit(AttrVisitor) {}

// PortAttrs identify the port of a port node.
type PortAttrs struct {
	Name    string
	Kind    PortKind
	Options PortOptions
}

// Visit visits nothing: the text form has its own syntax for ports.
func (*PortAttrs) Visit(AttrVisitor) {}

func init() {
	for _, d := range []*Def{
		{Op: OpPort, Doc: "A value from outside: an input, a parameter or a state."},
		{Op: OpConstant, Doc: "A literal."},
	} {
		d.Infer = func(n *Node) ([]Type, error) { return n.types, nil }
		d.NoGrad, d.NoTranspose, d.NoBatch = "no operands", "no operands", "no operands"
		if err := register(d); err != nil {
			panic(err)
		}
	}
}

// FormatAttrs returns attributes as in the text form, "{axes=[0,1] keep=true}", or "" if there are
// none.
func FormatAttrs(a Attrs) string {
	if a == nil {
		return ""
	}
	f := &attrFormatter{}
	a.Visit(f)
	if len(f.out) == 0 {
		return ""
	}
	return "{" + string(f.out) + "}"
}

// CopyAttrs returns a deep copy of a node's attributes. Those of ports and constants are immutable
// and returned unchanged.
func CopyAttrs(n *Node) Attrs {
	if n.attrs == nil || n.def.NewAttrs == nil {
		return n.attrs
	}
	r := &attrRecorder{}
	n.attrs.Visit(r)
	c := n.def.NewAttrs()
	c.Visit(&attrPlayer{r.fields})
	return c
}

// attrFormatter prints the fields that it visits.
type attrFormatter struct{ out []byte }

func (f *attrFormatter) field(name string) {
	if len(f.out) > 0 {
		f.out = append(f.out, ' ')
	}
	f.out = append(append(f.out, name...), '=')
}

func (f *attrFormatter) Int(name string, p *int) {
	f.field(name)
	f.out = strconv.AppendInt(f.out, int64(*p), 10)
}

func (f *attrFormatter) Ints(name string, p *[]int) {
	f.field(name)
	f.out = append(f.out, '[')
	for i, x := range *p {
		if i > 0 {
			f.out = append(f.out, ',')
		}
		f.out = strconv.AppendInt(f.out, int64(x), 10)
	}
	f.out = append(f.out, ']')
}

func (f *attrFormatter) Float(name string, p *float64) {
	f.field(name)
	f.out = strconv.AppendFloat(f.out, *p, 'g', -1, 64)
}

func (f *attrFormatter) Bool(name string, p *bool) {
	f.field(name)
	f.out = strconv.AppendBool(f.out, *p)
}

func (f *attrFormatter) Text(name string, p *string) {
	f.field(name)
	f.out = strconv.AppendQuote(f.out, *p)
}

func (f *attrFormatter) DType(name string, p *DType) {
	f.field(name)
	f.out = append(f.out, p.String()...)
}

func (f *attrFormatter) Dims(name string, p *[]Dim) {
	f.field(name)
	f.out = append(f.out, Shape(*p).String()...)
}

// attrRecorder copies the fields that it visits; attrPlayer writes them into a struct of the same
// type.
type attrRecorder struct{ fields []any }

func (r *attrRecorder) Int(_ string, p *int)       { r.fields = append(r.fields, *p) }
func (r *attrRecorder) Ints(_ string, p *[]int)    { r.fields = append(r.fields, slices.Clone(*p)) }
func (r *attrRecorder) Float(_ string, p *float64) { r.fields = append(r.fields, *p) }
func (r *attrRecorder) Bool(_ string, p *bool)     { r.fields = append(r.fields, *p) }
func (r *attrRecorder) Text(_ string, p *string)   { r.fields = append(r.fields, *p) }
func (r *attrRecorder) DType(_ string, p *DType)   { r.fields = append(r.fields, *p) }
func (r *attrRecorder) Dims(_ string, p *[]Dim)    { r.fields = append(r.fields, slices.Clone(*p)) }

type attrPlayer struct{ fields []any }

func next[T any](pl *attrPlayer, p *T) {
	*p, pl.fields = pl.fields[0].(T), pl.fields[1:]
}

func (pl *attrPlayer) Int(_ string, p *int)       { next(pl, p) }
func (pl *attrPlayer) Ints(_ string, p *[]int)    { next(pl, p) }
func (pl *attrPlayer) Float(_ string, p *float64) { next(pl, p) }
func (pl *attrPlayer) Bool(_ string, p *bool)     { next(pl, p) }
func (pl *attrPlayer) Text(_ string, p *string)   { next(pl, p) }
func (pl *attrPlayer) DType(_ string, p *DType)   { next(pl, p) }
func (pl *attrPlayer) Dims(_ string, p *[]Dim)    { next(pl, p) }
