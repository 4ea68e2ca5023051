package ir

import "testing"

func TestVerifyAcceptsBuiltGraphs(t *testing.T) {
	if err := Verify(everything(t)); err != nil {
		t.Error(err)
	}
	if err := Verify(build(t, func(*Builder) {})); err != nil {
		t.Error(err)
	}
}

func TestVerifyFindsPlantedFaults(t *testing.T) {
	other := build(t, func(b *Builder) { b.Output("x", b.Add1(opTwice, nil, b.Input("x", F32, N(2)))) })
	plant := map[string]func(g *Graph){
		"user before its operand": func(g *Graph) {
			g.nodes[1], g.nodes[3] = g.nodes[3], g.nodes[1]
			g.nodes[1].id, g.nodes[3].id = 1, 3
		},
		"wrong number":          func(g *Graph) { g.nodes[2].id = 1 },
		"node of another graph": func(g *Graph) { other.nodes[1].id = 3; g.nodes[3] = other.nodes[1] },
		"operand of another graph": func(g *Graph) {
			g.nodes[3].inputs[0] = other.nodes[0].Result(0)
		},
		"operand without a node":        func(g *Graph) { g.nodes[3].inputs[0] = Value{} },
		"operand that is its own user":  func(g *Graph) { g.nodes[3].inputs[0] = g.nodes[3].Result(0) },
		"result that is not there":      func(g *Graph) { g.nodes[3].inputs[0].index = 1 },
		"negative result":               func(g *Graph) { g.nodes[3].inputs[0].index = -1 },
		"stored type":                   func(g *Graph) { g.nodes[3].types = []Type{TypeOf(F32, N(3))} },
		"number of results":             func(g *Graph) { g.nodes[3].types = append(g.nodes[3].types, TypeOf(F32)) },
		"operand missing":               func(g *Graph) { g.nodes[3].inputs = g.nodes[3].inputs[:1] },
		"op that is not registered":     func(g *Graph) { g.nodes[3].op = "nope" },
		"port that is not declared":     func(g *Graph) { g.ports = g.ports[:2] },
		"declared port that is missing": func(g *Graph) { g.ports = append(g.ports, g.ports[0]) },
		"port under another name":       func(g *Graph) { g.ports[0].Name = "z" },
		"port of another kind":          func(g *Graph) { g.ports[0].Kind = ParamPort },
		"ports of one name": func(g *Graph) {
			g.ports[1].Name = "x"
			g.nodes[1].attrs = &PortAttrs{Name: "x", Kind: ParamPort}
		},
		"literal of the wrong length": func(g *Graph) { g.nodes[6].attrs = &ConstantAttrs{TypeOf(I32), []byte{1}} },
		"literal of another type":     func(g *Graph) { g.nodes[6].attrs = &ConstantAttrs{TypeOf(F32), make([]byte, 4)} },
		"fault in a subgraph":         func(g *Graph) { g.nodes[7].subs[0].nodes[2].types = []Type{TypeOf(F32)} },
		"fault in a deep subgraph":    func(g *Graph) { g.nodes[7].subs[0].nodes[3].subs[0].outputs = nil },
		"subgraph that is not closed": func(g *Graph) {
			s := g.nodes[7].subs[0]
			s.nodes[2].inputs[0] = g.nodes[0].Result(0)
		},
		"persistent value in a subgraph": func(g *Graph) {
			s := g.nodes[7].subs[0]
			s.ports[0].Kind, s.nodes[0].attrs = ParamPort, &PortAttrs{Name: "p", Kind: ParamPort}
		},
		"state without an update": func(g *Graph) { g.outputs = g.outputs[:2] },
		"update without a state":  func(g *Graph) { g.outputs[0].State = true },
		"update of another type":  func(g *Graph) { g.outputs[2].Value = g.outputs[0].Value },
		"outputs of one name":     func(g *Graph) { g.outputs[1].Name = "y" },
		"output without a name":   func(g *Graph) { g.outputs[1].Name = "" },
		"output without a value":  func(g *Graph) { g.outputs[1].Value = Value{} },
		"attribute that does not come back": func(g *Graph) {
			a := *g.nodes[4].attrs.(*allAttrs)
			a.N = []Dim{invalidDim.Mul(N(2)), {sym: "a b"}}
			g.nodes[4].attrs = &a
		},
	}
	for name, f := range plant {
		t.Run(name, func(t *testing.T) {
			g := everything(t)
			f(g)
			if err := Verify(g); err == nil {
				t.Error("not found")
			}
		})
	}
}
