package onnx

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// modelBuilder adds nodes to a model.
type modelBuilder struct {
	main     *graph
	at       *graph  // the graph that nodes are added to: the main one or one within a node
	literals []*node // constants, before all other nodes
	sizes    *graph  // nodes that compute sizes, before all others but constants
	names    map[string]bool
	consts   map[string]tensorRef
	small    map[string]tensorRef  // integers of 8 and 16 bits, by the names of what they were cast to
	syms     map[string]symbolAxis // symbols, by an axis of an input
	prefix   string                // of names: the label of the node that is exported
	count    int
	err      error
}

// modelMoves adds what takes several nodes.
type modelMoves struct{ *modelBuilder }

// exporter builds the model of one graph.
type exporter struct {
	modelMoves
	o     ExportOptions
	forms map[ir.Op]form
}

// tensorRef is a tensor in the model: its name, its element type, which is one of those of held, and its
// sizes.
type tensorRef struct {
	name  string
	dtype ir.DType
	dims  ir.Shape
}

// exported is a value of a graph in the model: a tensor of its shape, or one that ONNX's
// elementwise ops broadcast to that shape.
type exported struct {
	tensorRef
	shape ir.Shape
}

// symbolAxis is where the value of a symbol is read.
type symbolAxis struct {
	input string
	axis  int
}

// fail keeps the first error.
func (e *modelBuilder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *modelBuilder) unsupported(text string, args ...any) {
	e.fail(ir.Errorf(ir.ErrUnsupported, text, args...))
}

// held returns the element type in which the values of a type are computed: ONNX's runtimes have
// few kernels for narrow and unsigned types. Each result is cut or rounded to its type: see narrow.
func held(d ir.DType) ir.DType {
	switch {
	case d == ir.BF16 || d.IsFloat8():
		return ir.F32
	case d.IsInteger() && d.Size() < 4:
		return ir.I32
	case d.IsUnsigned():
		return ir.I64
	}
	return d
}

// fresh returns a name that no tensor has.
func (e *modelBuilder) fresh(base string) string {
	for {
		e.count++
		name := base + "_" + strconv.Itoa(e.count)
		if !e.names[name] {
			e.names[name] = true
			return name
		}
	}
}

// node adds a node and returns the names of its results.
func (e *modelBuilder) node(op string, results int, in []string, attrs ...*attribute) []string {
	n := &node{op: op, inputs: in, attrs: map[string]*attribute{}}
	for _, a := range attrs {
		n.attrs[a.name] = a
	}
	base := strings.ToLower(op)
	if e.prefix != "" {
		base = e.prefix + "/" + base
	}
	for range results {
		n.outputs = append(n.outputs, e.fresh(base))
	}
	n.name = "node:" + n.outputs[0]
	e.at.nodes = append(e.at.nodes, n)
	if e.at == e.main && len(e.main.nodes)+len(e.sizes.nodes) > maxNodes {
		e.unsupported("the model has more than %d nodes", maxNodes)
	}
	return n.outputs
}

// op adds a node with one result of the given type.
func (e *modelBuilder) op(op string, d ir.DType, dims ir.Shape, in []tensorRef, attrs ...*attribute) tensorRef {
	if e.err != nil {
		return tensorRef{"", d, dims}
	}
	names := make([]string, len(in))
	for i, x := range in {
		names[i] = x.name
	}
	return tensorRef{e.node(op, 1, names, attrs...)[0], d, dims}
}

func attrInt(name string, x int) *attribute {
	return &attribute{name: name, kind: kindInt, i: int64(x)}
}

func attrBool(name string, x bool) *attribute {
	if x {
		return attrInt(name, 1)
	}
	return attrInt(name, 0)
}

func attrFloat(name string, x float64) *attribute {
	return &attribute{name: name, kind: kindFloat, f: x}
}

func attrText(name, x string) *attribute {
	return &attribute{name: name, kind: kindString, s: x}
}

func attrList(name string, list []int) *attribute {
	a := &attribute{name: name, kind: kindInts}
	for _, x := range list {
		a.ints = append(a.ints, int64(x))
	}
	return a
}

// literal returns a constant tensor; equal ones share one node, before all others. Only weights are
// initializers, since a reader may train these.
func (e *modelBuilder) literal(d ir.DType, dims []int, data []byte) tensorRef {
	key := d.String() + ir.Dims(dims...).String() + string(data)
	if t, ok := e.consts[key]; ok {
		return t
	}
	t := tensorRef{e.fresh("constant"), d, ir.Dims(dims...)}
	value := &tensor{name: t.name, elem: elementOf(d), dims: dims, raw: data, hasRaw: true}
	n := &node{op: "Constant", name: "node:" + t.name, outputs: []string{t.name}, attrs: map[string]*attribute{}}
	n.attrs["value"] = &attribute{name: "value", kind: kindTensor, tensor: value}
	e.literals = append(e.literals, n)
	e.consts[key] = t
	return t
}

// number returns a constant of rank 0 of a held type.
func (e *modelBuilder) number(d ir.DType, x float64) tensorRef {
	a := ir.NewArray(d)
	if d.IsFloat() {
		a.F[0] = d.Round(x)
	} else {
		a.I[0] = int64(x)
	}
	return e.literal(d, nil, a.Bytes())
}

// integer returns a constant of rank 0. Floats may not represent its value.
func (e *modelBuilder) integer(d ir.DType, x int64) tensorRef {
	return e.literal(d, nil, ir.Int(d, x).Bytes())
}

// ints returns a vector of i64.
func (e *modelBuilder) ints(list ...int) tensorRef {
	var data []byte
	for _, x := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(x))
	}
	return e.literal(ir.I64, []int{len(list)}, data)
}

// value returns a tensor of its full shape as a value.
func (t tensorRef) value() exported { return exported{t, t.dims} }

// whole returns a tensor of the value's own shape.
func (e *modelBuilder) whole(v exported) tensorRef {
	if v.dims.Equal(v.shape) || e.err != nil {
		return v.tensorRef
	}
	return e.op("Expand", v.dtype, v.shape, []tensorRef{v.tensorRef, e.shape(v.shape)})
}

// cast converts by ONNX's own rules.
func (e *modelBuilder) cast(t tensorRef, to ir.DType) tensorRef {
	if t.dtype == to {
		return t
	}
	r := e.op("Cast", to, t.dims, []tensorRef{t}, attrInt("to", int(elementOf(to))))
	if t.dtype.IsInteger() && t.dtype.Size() < to.Size() {
		e.small[r.name] = t
	}
	return r
}

// reshape returns a tensor of other sizes.
func (e *modelBuilder) reshape(t tensorRef, dims ir.Shape) tensorRef {
	if t.dims.Equal(dims) {
		return t
	}
	return e.op("Reshape", t.dtype, dims, []tensorRef{t, e.shape(dims)}, attrBool("allowzero", slices.ContainsFunc(dims, func(d ir.Dim) bool { return d.Is(0) })))
}

// transpose permutes axes: axis i of the result is axis perm[i].
func (e *modelBuilder) transpose(t tensorRef, perm []int) tensorRef {
	if slices.IsSorted(perm) {
		return t
	}
	return e.op("Transpose", t.dtype, pickDims(t.dims, perm), []tensorRef{t}, attrList("perm", perm))
}

// binary adds an elementwise node of two operands, which ONNX repeats to one shape.
func (e *modelBuilder) binary(op string, x, y tensorRef, attrs ...*attribute) tensorRef {
	return e.op(op, x.dtype, repeatedDims(x.dims, y.dims), []tensorRef{x, y}, attrs...)
}

// compare adds a comparison.
func (e *modelBuilder) compare(op string, x, y tensorRef) tensorRef {
	r := e.binary(op, x, y)
	r.dtype = ir.Bool
	return r
}

// choose returns x where a condition holds and y elsewhere.
func (e *modelBuilder) choose(cond, x, y tensorRef) tensorRef {
	if x.dtype == ir.Bool { // ONNX Runtime has no kernel for it
		return e.binary("Or", e.binary("And", cond, x), e.binary("And", e.unary("Not", cond), y))
	}
	dims := repeatedDims(cond.dims, repeatedDims(x.dims, y.dims))
	return e.op("Where", x.dtype, dims, []tensorRef{cond, x, y})
}

func (e *modelBuilder) unary(op string, x tensorRef) tensorRef {
	return e.op(op, x.dtype, x.dims, []tensorRef{x})
}

// repeatedDims returns the sizes to which ONNX repeats two tensors, of one rank or of rank 0.
func repeatedDims(x, y ir.Shape) ir.Shape {
	if len(x) == 0 {
		return y
	}
	if len(y) == 0 {
		return x
	}
	out := x.Clone()
	for i := range out {
		if out[i].Is(1) && i < len(y) {
			out[i] = y[i]
		}
	}
	return out
}

func pickDims(dims ir.Shape, axes []int) ir.Shape {
	out := make(ir.Shape, len(axes))
	for i, axis := range axes {
		out[i] = dims[axis]
	}
	return out
}

// productDims returns the product of sizes, 1 for none.
func productDims(dims ir.Shape) ir.Dim { return dims.Size() }

// within adds the nodes of f to a graph of their own, which is an attribute of a node: it sees the tensors of
// the graphs around it. f returns its results.
func (e *modelBuilder) within(name string, inputs []valueInfo, f func() []tensorRef) *attribute {
	outer, g := e.at, &graph{name: e.fresh(name), inputs: inputs}
	e.at = g
	for _, t := range f() {
		if e.err == nil { // each result is one of a node within
			t.name = e.node("Identity", 1, []string{t.name})[0]
			g.outputs = append(g.outputs, infoOf(t.name, t.dtype, t.dims))
		}
	}
	e.at = outer
	return &attribute{name: name, kind: kindGraph, graph: g}
}

// infoOf describes an input or an output. Sizes that are not a number or one symbol are left open.
func infoOf(name string, d ir.DType, dims ir.Shape) valueInfo {
	info := valueInfo{name: name, elem: elementOf(d), shaped: true, kind: typeTensor}
	for _, d := range dims {
		var x dimension
		if n, ok := d.Const(); ok {
			x = dimension{size: int64(n), given: true}
		} else if s := d.Symbols(); len(s) > 0 && d == ir.Sym(s[0]) {
			x = dimension{symbol: s[0]}
		}
		info.dims = append(info.dims, x)
	}
	return info
}
