package ops_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// A node of a sample, as types.
type sampleNode struct {
	attrs ir.Attrs
	subs  []*ir.Graph
	in    []ir.Type
}

// change makes something wrong with a node: with an operand, by its name, with an
// attribute, or with a graph.
type change struct {
	of   string
	make func(n *sampleNode)
}

// refusal is the error of a changed node.
type refusal struct {
	of  string
	err error
}

// broken changes the nodes of an op's samples one thing at a time, each operand and each
// attribute in several ways, and returns those that are refused.
func broken(d *ir.Def) []refusal {
	var out []refusal
	for _, s := range d.Samples() {
		_, n, err := irtest.SampleGraph(d.Op, s)
		if err != nil {
			continue
		}
		node := func() *sampleNode {
			return &sampleNode{ir.CopyAttrs(n), slices.Clone(n.Subgraphs()), cloneTypes(n.InTypes())}
		}
		for _, c := range changesOf(d, node()) {
			changed := node()
			c.make(changed)
			if err := changed.build(d.Op); err != nil {
				out = append(out, refusal{c.of, err})
			}
		}
	}
	return out
}

func cloneTypes(in []ir.Type) []ir.Type {
	out := slices.Clone(in)
	for i := range out {
		out[i].Shape = out[i].Shape.Clone()
	}
	return out
}

// build adds the node to a graph. A panic is an error too, of no kind.
func (n *sampleNode) build(op ir.Op) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%s of %v with %s: panic: %v", op, n.in, ir.FormatAttrs(n.attrs), fault)
		}
	}()
	_, err = ir.Build("broken", func(b *ir.Builder) {
		var in values
		for i, t := range n.in {
			in = append(in, b.Port(ir.InputPort, "x"+string(rune('0'+i)), t))
		}
		b.AddNode(op, n.attrs, n.subs, in...)
	})
	return err
}

// changesOf lists what may be wrong with a node.
func changesOf(d *ir.Def, n *sampleNode) []change {
	out := attrChanges(n.attrs)
	add := func(of string, f func(n *sampleNode)) { out = append(out, change{of, f}) }
	for i, t := range n.in {
		name := strings.TrimSuffix(d.Operands[min(i, len(d.Operands)-1)], "...")
		for _, d := range []ir.DType{ir.Bool, ir.I32, ir.U8, ir.F16, ir.F32, ir.F64, ir.C64, ir.F8E4M3} {
			add(name, func(n *sampleNode) { n.in[i].DType = d })
		}
		add(name, func(n *sampleNode) { n.in[i].Shape = append(n.in[i].Shape, ir.N(2)) })
		add(name, func(n *sampleNode) { n.in[i].Shape = nil })
		for axis := range t.Shape {
			for _, size := range []ir.Dim{ir.N(0), ir.N(1), ir.N(7919), ir.Sym("other")} {
				add(name, func(n *sampleNode) { n.in[i].Shape[axis] = size })
			}
			add(name, func(n *sampleNode) { n.in[i].Shape = slices.Delete(n.in[i].Shape, axis, axis+1) })
		}
	}
	for count := range 3 {
		add("operands", func(n *sampleNode) { n.in = n.in[:max(0, len(n.in)-1-count)] })
	}
	if len(n.in) > 0 {
		add("operands", func(n *sampleNode) { n.in = append(n.in, n.in[len(n.in)-1]) })
	}
	for i := range n.subs {
		for _, g := range oddGraphs() {
			add("graph", func(n *sampleNode) { n.subs[i] = g })
		}
	}
	return out
}

// attrChanges sets each attribute to values that some ops do not take.
func attrChanges(a ir.Attrs) []change {
	if a == nil {
		return nil
	}
	var names attrNames
	a.Visit(&names)
	var out []change
	for _, name := range names {
		for turn := range 9 {
			out = append(out, change{name, func(n *sampleNode) { n.attrs.Visit(&attrSetter{name, turn}) }})
		}
	}
	return out
}

// attrNames collects the names of attributes.
type attrNames []string

func (a *attrNames) Int(name string, _ *int)        { *a = append(*a, name) }
func (a *attrNames) Ints(name string, _ *[]int)     { *a = append(*a, name) }
func (a *attrNames) Float(name string, _ *float64)  { *a = append(*a, name) }
func (a *attrNames) Bool(name string, _ *bool)      { *a = append(*a, name) }
func (a *attrNames) Text(name string, _ *string)    { *a = append(*a, name) }
func (a *attrNames) DType(name string, _ *ir.DType) { *a = append(*a, name) }
func (a *attrNames) Dims(name string, _ *[]ir.Dim)  { *a = append(*a, name) }

// attrSetter sets one attribute to one of some odd values.
type attrSetter struct {
	name string
	turn int
}

func oneOf[T any](s *attrSetter, name string, p *T, list ...T) {
	if name == s.name {
		*p = list[s.turn%len(list)]
	}
}

func (s *attrSetter) Int(name string, p *int) { oneOf(s, name, p, -1, 0, 1, 2, 3, 5, 7919, -7919) }

func (s *attrSetter) Ints(name string, p *[]int) {
	long := append(slices.Clone(*p), *p...)
	negative := slices.Clone(*p)
	zeros := make([]int, len(*p))
	large := slices.Clone(*p)
	for i := range negative {
		negative[i], large[i] = -1, 7919
	}
	oneOf(s, name, p, nil, long, negative, zeros, large, []int{-1}, []int{0, 0}, []int{7919}, []int{0})
}

func (s *attrSetter) Float(name string, p *float64) {
	oneOf(s, name, p, -1, 0, 1, 2, math.NaN(), math.Inf(1), math.Inf(-1), 1e300)
}

func (s *attrSetter) Bool(name string, p *bool) { oneOf(s, name, p, true, false) }

func (s *attrSetter) Text(name string, p *string) { oneOf(s, name, p, "odd", "", "ij,jk->ikz") }

func (s *attrSetter) DType(name string, p *ir.DType) {
	oneOf(s, name, p, ir.Bool, ir.I32, ir.C64, ir.F8E4M3, ir.F16, ir.U8, ir.F32)
}

func (s *attrSetter) Dims(name string, p *[]ir.Dim) {
	long := append(ir.Shape(slices.Clone(*p)), ir.N(2))
	large := ir.Shape(slices.Clone(*p))
	for i := range large {
		large[i] = ir.N(7919)
	}
	oneOf(s, name, (*ir.Shape)(p), nil, long, large, ir.Shape{ir.Sym("other")}, ir.Shape{{}}, ir.Dims(0), ir.Dims(1, 1), ir.Shape{ir.N(-3)})
}

// oddGraphs are graphs that no node of a sample takes for its own.
func oddGraphs() []*ir.Graph {
	var out []*ir.Graph
	for _, f := range []func(b *ir.Builder){
		func(*ir.Builder) {},
		func(b *ir.Builder) { b.Output("y", b.Param("p", ir.F32, ir.N(2), ir.N(3))) },
		func(b *ir.Builder) { b.Output("y", b.Input("x", ir.U8)) },
	} {
		g, err := ir.Build("odd", f)
		if err == nil {
			out = append(out, g)
		}
	}
	return out
}
