package onnx

import (
	"encoding/binary"
	"strconv"
	"testing"
)

// operands declare an operand of some kind.
var operands = []struct {
	kind    string
	declare func(g *graph, name string)
}{
	{"an input", func(g *graph, name string) {
		g.inputs = append(g.inputs, valueInfo{name: name, kind: typeTensor, elem: Float, shaped: true, dims: []dimension{{size: 2, given: true}, {symbol: "n"}, {size: 4, given: true}}})
	}},
	{"a vector that is not known", func(g *graph, name string) {
		g.inputs = append(g.inputs, valueInfo{name: name, kind: typeTensor, elem: Int64, shaped: true, dims: []dimension{{size: 2, given: true}}})
	}},
	{"a known number", func(g *graph, name string) {
		g.initializers = append(g.initializers, &tensor{name: name, elem: Int64, raw: binary.LittleEndian.AppendUint64(nil, 1), hasRaw: true})
	}},
	{"known numbers", func(g *graph, name string) {
		g.initializers = append(g.initializers, &tensor{name: name, elem: Float, dims: []int{2}, raw: make([]byte, 8), hasRaw: true})
	}},
	{"no elements", func(g *graph, name string) {
		g.initializers = append(g.initializers, &tensor{name: name, elem: Int64, dims: []int{0}, raw: []byte{}, hasRaw: true})
	}},
	{"nothing", nil},
}

// TestOpsWithAnyOperands imports each op of two operator sets with no to nine operands, of one kind or of all in turns, and
// without attributes: it is imported, or refused by an error.
func TestOpsWithAnyOperands(t *testing.T) {
	for domain, table := range tables {
		for op := range table {
			for n := range 10 {
				for first := range operands {
					for step := range 3 {
						importAny(t, domain, op, n, first, step)
					}
				}
			}
		}
	}
}

// importAny imports a model of one node that may be refused. Its operands are of the kind first, and of those that follow
// by steps.
func importAny(t *testing.T, domain, op string, n, first, step int) {
	t.Helper()
	g, made := &graph{}, &node{op: op, domain: domain, outputs: []string{"y"}, attrs: map[string]*attribute{}}
	for i := range n {
		name, kind := "x"+strconv.Itoa(i), operands[(first+i*step)%len(operands)]
		if kind.declare == nil {
			name = ""
		} else {
			kind.declare(g, name)
		}
		made.inputs = append(made.inputs, name)
	}
	g.nodes, g.outputs = []*node{made}, []valueInfo{{name: "y"}}
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s.%s of %d operands from %s by %d: %v", domain, op, n, operands[first].kind, step, p)
		}
	}()
	for _, opset := range []int64{9, 21} {
		m := &Model{Opsets: map[string]int64{"": opset, domain: opset}, graph: g}
		if i, err := m.Import(Options{Narrow: true}); err == nil && i.Graph == nil {
			t.Errorf("%s.%s: there is no graph", domain, op)
		}
	}
}
