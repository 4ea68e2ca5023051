package ir

import (
	"os"
	"testing"
)

// The tests of this package define a few ops: the real ones
// import this package.

const (
	opAdd   Op = "test.add"   // two operands of one type
	opFirst Op = "test.first" // any number of operands, the first comes back
	opSplit Op = "test.split" // one operand, two results
	opTwice Op = "test.twice" // a composite of opAdd
	opAttrs Op = "test.attrs" // one attribute of each kind
	opShape Op = "test.shape" // a value of a shape given by an attribute
	opCall  Op = "test.call"  // calls its subgraph
	opLiar  Op = "test.liar"  // its Eval does not keep to its Infer
)

type allAttrs struct {
	I int
	L []int
	F float64
	B bool
	S string
	D DType
	N []Dim
}

func (a *allAttrs) Visit(v AttrVisitor) {
	v.Int("i", &a.I)
	v.Ints("l", &a.L)
	v.Float("f", &a.F)
	v.Bool("b", &a.B)
	v.Text("s", &a.S)
	v.DType("d", &a.D)
	v.Dims("n", &a.N)
}

type shapeAttrs struct{ Shape []Dim }

func (a *shapeAttrs) Visit(v AttrVisitor) { v.Dims("shape", &a.Shape) }

func sameTypes(n *Node) ([]Type, error) {
	if len(n.inputs) == 0 {
		return []Type{{F32, nil}}, nil
	}
	t := n.Input(0).Type()
	for _, v := range n.inputs {
		if !v.Type().Equal(t) {
			return nil, mismatch(t, v.Type(), "%s and %s", t, v.Type())
		}
	}
	return []Type{t}, nil
}

func testDefs() []*Def {
	return []*Def{
		{
			Op: opAdd, Operands: []string{"x", "y"}, Infer: sameTypes,
			Eval: func(c *EvalContext, _ *Node, in []*Array) ([]*Array, error) {
				out := in[0].Clone()
				for i, y := range in[1].F {
					out.F[i] += y
				}
				for i, y := range in[1].I {
					out.I[i] += y
				}
				return []*Array{c.Round(out)}, nil
			},
		},
		{
			Op: opFirst, Operands: []string{"x", "rest..."}, Infer: sameTypes,
			Eval: func(_ *EvalContext, _ *Node, in []*Array) ([]*Array, error) { return in[:1], nil },
		},
		{
			Op: opSplit, Operands: []string{"x"},
			Infer: func(n *Node) ([]Type, error) { return []Type{n.Input(0).Type(), TypeOf(I32)}, nil },
			Eval: func(_ *EvalContext, _ *Node, in []*Array) ([]*Array, error) {
				return []*Array{in[0], Int(I32, 7)}, nil
			},
		},
		{
			Op: opTwice, Operands: []string{"x"}, Infer: sameTypes,
			Body: func(b *Builder, _ *Node, in []Value) []Value { return b.Add(opAdd, nil, in[0], in[0]) },
		},
		{
			Op: opAttrs, Operands: []string{"x", "y"}, Optional: 1, Infer: sameTypes,
			NewAttrs: func() Attrs { return &allAttrs{} },
		},
		{
			Op: opShape, NewAttrs: func() Attrs { return &shapeAttrs{} },
			Infer: func(n *Node) ([]Type, error) { return []Type{{F32, n.Attrs().(*shapeAttrs).Shape}}, nil },
		},
		{
			Op: opCall, Operands: []string{"x..."}, Subgraphs: 1,
			Infer: func(n *Node) ([]Type, error) {
				var out []Type
				for _, o := range n.Subgraphs()[0].Outputs() {
					out = append(out, o.Value.Type())
				}
				return out, nil
			},
			Eval: func(c *EvalContext, n *Node, in []*Array) ([]*Array, error) { return c.Call(n.Subgraphs()[0], in) },
		},
		{
			Op: opLiar, Operands: []string{"x"}, Infer: sameTypes,
			Eval: func(*EvalContext, *Node, []*Array) ([]*Array, error) { return []*Array{NewArray(I8, 3)}, nil },
		},
	}
}

func TestMain(m *testing.M) {
	for _, d := range testDefs() {
		if d.Body == nil {
			d.NoGrad, d.Lower = "a test", &ControlLowering{}
		}
		if err := Register(d); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func build(t *testing.T, f func(b *Builder)) *Graph {
	t.Helper()
	g, err := Build("test", f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// everything returns a graph that has one of each thing.
func everything(t *testing.T) *Graph {
	batch := Sym("batch")
	return build(t, func(b *Builder) {
		x := b.Input("x", F32, batch, N(4))
		w := b.Param("w", F32, batch, N(4))
		m := b.State("m\n\"quoted\"", F32, batch, N(4))
		b.Label("sum of x and w")
		sum := b.Add1(opAdd, nil, x, w)
		b.Label("")
		attrs := &allAttrs{-3, []int{1, -2}, 0.1, true, "a \"b\" \xff ü", BF16, []Dim{N(2), batch.Mul(batch).Sub(N(3))}}
		y := b.Add1(opAttrs, attrs, sum)
		parts := b.Add(opSplit, nil, y)
		c := b.Constant(TypeOf(I32), []byte{1, 0, 0, 0})
		body := b.Subgraph("body", func(b *Builder) {
			p, q := b.Input("p", F32, batch, N(4)), b.Input("q", I32)
			inner := b.Subgraph("inner", func(b *Builder) { b.Output("r", b.Input("r", I32)) })
			b.Output("0", b.Add1(opTwice, nil, p))
			b.Output("1", b.AddNode(opCall, nil, []*Graph{inner}, q)[0])
		})
		out := b.AddNode(opCall, nil, []*Graph{body}, parts[0], parts[1])
		b.Output("y", b.Add1(opAdd, nil, out[1], c))
		b.Output("again", x)
		b.SetState("m\n\"quoted\"", b.Add1(opFirst, nil, out[0], m, m))
	})
}
