package ir

import "testing"

// Golden: a hash is stored with compiled plans and must stay the same from release to release.
func TestHashIsStable(t *testing.T) {
	if got := everything(t).Hash().String(); got != "4ba089004b4078b38aadf12c100b8697" {
		t.Errorf("the hash is now %s", got)
	}
}

func TestHashIgnoresLabelsAndPlaces(t *testing.T) {
	hash := func(label string, line int) Hash {
		g, err := Build(label, func(b *Builder) {
			b.Label(label)
			b.At(Pos{"model.go", line})
			b.Output("y", b.Add1(opTwice, nil, b.Input("x", F32)))
		})
		if err != nil {
			t.Fatal(err)
		}
		return g.Hash()
	}
	if hash("a", 1) != hash("b", 2) {
		t.Error("the hashes differ")
	}
}

func TestGraphsThatDifferHashDifferently(t *testing.T) {
	x := func(b *Builder) Value { return b.Input("x", F32, N(2)) }
	graphs := map[string]func(b *Builder){
		"empty":        func(*Builder) {},
		"base":         func(b *Builder) { b.Output("y", b.Add1(opTwice, nil, x(b))) },
		"port name":    func(b *Builder) { b.Output("y", b.Add1(opTwice, nil, b.Input("z", F32, N(2)))) },
		"port kind":    func(b *Builder) { b.Output("y", b.Add1(opTwice, nil, b.Param("x", F32, N(2)))) },
		"dtype":        func(b *Builder) { b.Output("y", b.Add1(opTwice, nil, b.Input("x", F16, N(2)))) },
		"shape":        func(b *Builder) { b.Output("y", b.Add1(opTwice, nil, b.Input("x", F32, N(3)))) },
		"symbol":       func(b *Builder) { b.Output("y", b.Add1(opTwice, nil, b.Input("x", F32, Sym("n")))) },
		"output name":  func(b *Builder) { b.Output("z", b.Add1(opTwice, nil, x(b))) },
		"output value": func(b *Builder) { v := x(b); b.Add1(opTwice, nil, v); b.Output("y", v) },
		"op":           func(b *Builder) { b.Output("y", b.Add1(opFirst, nil, x(b))) },
		"operands":     func(b *Builder) { v := x(b); b.Output("y", b.Add1(opFirst, nil, v, v)) },
		"dead node":    func(b *Builder) { v := x(b); b.Output("y", b.Add1(opTwice, nil, v)); b.Add1(opTwice, nil, v) },
		"state":        func(b *Builder) { v := b.State("x", F32, N(2)); b.SetState("x", v) },
		"state and output": func(b *Builder) {
			v := b.State("x", F32, N(2))
			b.SetState("x", v)
			b.Output("x", v)
		},
		"attributes": func(b *Builder) { b.Output("y", b.Add1(opShape, &shapeAttrs{[]Dim{N(2)}})) },
		"others":     func(b *Builder) { b.Output("y", b.Add1(opShape, &shapeAttrs{[]Dim{N(3)}})) },
		"literal":    func(b *Builder) { b.Output("y", b.Constant(TypeOf(I8), []byte{1})) },
		"another":    func(b *Builder) { b.Output("y", b.Constant(TypeOf(I8), []byte{2})) },
		"unsigned":   func(b *Builder) { b.Output("y", b.Constant(TypeOf(U8), []byte{2})) },
		"subgraph": func(b *Builder) {
			s := b.Subgraph("s", func(b *Builder) { b.Output("y", b.Add1(opTwice, nil, x(b))) })
			b.Output("y", b.AddNode(opCall, nil, []*Graph{s}, x(b))[0])
		},
		"in the subgraph": func(b *Builder) {
			s := b.Subgraph("s", func(b *Builder) { b.Output("y", b.Add1(opFirst, nil, x(b))) })
			b.Output("y", b.AddNode(opCall, nil, []*Graph{s}, x(b))[0])
		},
	}
	seen := map[string]*Graph{}
	for name, f := range graphs {
		g := build(t, f)
		if !g.Equal(build(t, f)) {
			t.Errorf("%q does not equal itself", name)
		}
		for other, h := range seen {
			if g.Hash() == h.Hash() || g.Equal(h) {
				t.Errorf("%q and %q count as one", name, other)
			}
		}
		seen[name] = g
	}
}

func TestHashDependsOnOperandOrder(t *testing.T) {
	sub := func(swap bool) Hash {
		return build(t, func(b *Builder) {
			x, y := b.Input("x", F32), b.Input("y", F32)
			if swap {
				x, y = y, x
			}
			b.Output("z", b.Add1(opAdd, nil, x, y))
		}).Hash()
	}
	if sub(false) == sub(true) {
		t.Error("one hash for both orders")
	}
}
