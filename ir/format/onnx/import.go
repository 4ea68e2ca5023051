package onnx

import (
	"cmp"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Options are the options of [Model.Import].
type Options struct {
	// Sizes sets the model's symbolic sizes, by name; others stay symbols of the graph.
	Sizes map[string]int
	// Shapes sets the shapes of inputs of unknown rank, by name.
	Shapes map[string]ir.Shape
	// Values fixes inputs to values, which then are no inputs of the graph. An input that decides
	// about shapes must be fixed: see [NeedError].
	Values map[string]*ir.Array
	// Files has the model's folder, for weights in other files; nil is the folder of the file that
	// [ReadFile] has read, and otherwise none.
	Files fs.FS
	// Frozen declares the weights as frozen parameters, which optimizers do not change.
	Frozen bool
	// Narrow replaces int64 by i32 wherever all values are proven to be in range: sizes, indices,
	// constants, and values computed from them, outputs included. Int64 inputs become i32; the
	// caller ensures that they are in range. It is for devices without i64, such as WebGPU.
	Narrow bool
	// MaxSteps bounds the iterations of loops with an unknown number; 0 means no bound.
	MaxSteps int
	// RoundScales rounds f32 scales of weights of 4 and 8 bits to f16, by at most 2^-11 of each, so
	// that products read them as blocks of GGUF files, which they otherwise do only for scales that
	// f16 holds exactly.
	RoundScales bool
	// ActivationBits 8 rounds what such blocks are multiplied with to 8 bits: see
	// [ops.QuantizedMatMul8]. 0 does not round.
	ActivationBits int
}

// Import is an imported model.
type Import struct {
	// Graph computes the model's outputs from its inputs, by the model's names. Inputs and outputs
	// of an element type that graphs have not, such as 4-bit integers, have the type that holds it:
	// see [Element.DType].
	Graph *ir.Graph
	// Weights are the parameters of the graph, in the order of first use: initializers, and large tensors of floats
	// of Constant nodes, which are frozen in a model that has initializers.
	Weights []Weight
}

// Weight is a parameter of an imported graph.
type Weight struct {
	Name string
	Type ir.Type

	read   func(files fs.FS) ([]byte, error)
	tensor *tensor // nil for elements that are computed from others
	files  fs.FS
}

// Place is a part of a file of [Options.Files].
type Place struct {
	File           string
	Offset, Length int64
}

// Bytes returns the elements as devices store them: a window of the model's data where that has
// them so, and otherwise memory of their own. Weights in other files are read at each call.
func (w Weight) Bytes() ([]byte, error) { return w.read(w.files) }

// Place returns where the elements are that [Weight.Bytes] reads, if a file has them as devices store them. It reports false
// for elements that are in the model itself, or are converted.
func (w Weight) Place() (Place, bool, error) {
	if w.tensor == nil || w.tensor.external == nil || elements[w.tensor.elem].held() {
		return Place{}, false, nil
	}
	f, p, err := w.tensor.openExternal(w.files)
	if err != nil {
		return Place{}, false, err
	}
	return p, true, f.Close()
}

// inlineElements is the number of elements up to which a float initializer becomes a literal, which
// the compiler folds.
const inlineElements = 1

// foldElements bounds the tensors that the importer computes with.
const foldElements = 1 << 14

// Bounds on constant evaluation, in elements and products: for a node, and in all.
const (
	foldNode = 1 << 22
	foldAll  = 1 << 27
)

// importer imports one model.
type importer struct {
	m       *Model
	o       Options
	weights []Weight
	names   map[string]bool // of parameters
	own     map[*graph]map[string]*value
	calls   int // nodes imported, those of functions at each call
	depth   int // of function calls and graphs
	folded  int // elements computed so far
	root    *ir.Builder

	repacked  map[repacked]ir.Value // parameters in blocks of GGUF files
	constants map[*tensor]*value    // large tensors of nodes
}

// Import builds the graph of a model. Functions are inlined, conditions that are known are decided,
// and what shapes depend on is computed, with symbolic sizes too. The error is an *[Error] for a
// node that cannot be imported, and of kind [ErrDamaged] for a model that contradicts itself.
func (m *Model) Import(o Options) (*Import, error) {
	if m == nil {
		return nil, ir.Attrf("the model is nil: it must be from Decode, ReadFile or Export")
	}
	if o.ActivationBits != 0 && o.ActivationBits != 8 {
		return nil, ir.Attrf("ActivationBits is %d: it must be 0 or 8", o.ActivationBits)
	}
	if o.Files == nil {
		o.Files = m.files
	}
	im := &importer{m: m, o: o, names: map[string]bool{}, own: map[*graph]map[string]*value{}, repacked: map[repacked]ir.Value{}, constants: map[*tensor]*value{}}
	b, finish := ir.NewBuilder(m.graph.name)
	im.root = b
	s := &scope{im: im, b: b, opsets: m.Opsets, names: map[string]*value{}}
	if err := s.mainGraph(); err != nil {
		return nil, err
	}
	g, err := finish()
	if err == nil && o.Narrow {
		g, err = narrowed(g)
	}
	if err != nil {
		return nil, err
	}
	return &Import{Graph: g, Weights: im.weights}, nil
}

// scope is where names have values: a graph, or a call of a function. Scopes of the same builder
// add to the same graph.
type scope struct {
	im     *importer
	b      *ir.Builder
	parent *scope // importer of an outer graph, whose names are visible
	opsets map[string]int64
	names  map[string]*value
	attrs  map[string]*attribute // of a function's call
}

func (s *scope) mainGraph() error {
	g := s.im.m.graph
	if err := s.initializers(g); err != nil {
		return err
	}
	for _, in := range g.inputs {
		if s.names[in.name] != nil {
			continue // an initializer is its default
		}
		v, err := s.input(in)
		if err != nil {
			return err
		}
		s.names[in.name] = v
	}
	if err := s.nodes(g.nodes); err != nil {
		return err
	}
	for _, out := range g.outputs {
		v := s.lookup(out.name)
		if v == nil {
			return damaged("output %q is computed by no node", out.name)
		}
		if v.isList() {
			return ir.Errorf(ir.ErrUnsupported, "output %q is a sequence or an optional", out.name)
		}
		s.b.Output(out.name, s.emit(v))
		if err := s.b.TakeErr(); err != nil {
			return err
		}
	}
	return nil
}

// initializers names the values of a graph's initializers.
func (s *scope) initializers(g *graph) error {
	own := s.im.own[g]
	if own == nil {
		own = map[string]*value{}
		for _, t := range g.initializers {
			if !t.elem.DType().Valid() && t.elem != String {
				return ir.Errorf(ir.ErrUnsupported, "initializer %q has element type %v; tensors here have no such type", t.name, t.elem)
			}
			own[t.name] = &value{name: t.name, elem: t.elem, typ: t.typ(), tensor: t}
		}
		s.im.own[g] = own
	}
	maps.Copy(s.names, own)
	return nil
}

// input declares an input of the model, or fixes it.
func (s *scope) input(in valueInfo) (*value, error) {
	v := &value{name: in.name, elem: in.elem, from: []string{in.name}}
	if a := s.im.o.Values[in.name]; a != nil {
		if err := a.Check(); err != nil {
			return nil, err
		}
		v.typ, v.known, v.from = a.Type(), a, nil
		return v, nil
	}
	d := in.elem.DType()
	if in.kind != typeTensor || !d.Valid() {
		// Refused where it is used: a branch that is not taken may be all that does.
		v.refused = ir.Errorf(ir.ErrUnsupported, "input %q is no tensor, or one of %v", in.name, in.elem)
		return v, nil
	}
	shape, err := s.im.shapeOf(in)
	if err != nil {
		return nil, err
	}
	v.typ = ir.Type{DType: d, Shape: shape}
	v.set(s.b, s.b.Input(in.name, d, shape...))
	return v, s.b.TakeErr()
}

// shapeOf returns the shape of an input.
func (im *importer) shapeOf(in valueInfo) (ir.Shape, error) {
	if shape, ok := im.o.Shapes[in.name]; ok {
		return shape, nil
	}
	if !in.shaped {
		return nil, ir.Errorf(ir.ErrUnsupported, "input %q has no shape in the model: give it in Options.Shapes", in.name)
	}
	shape := ir.Shape{}
	for axis, d := range in.dims {
		symbol := symbolName(d.symbol)
		if symbol == "" {
			symbol = symbolName(in.name + "_" + strconv.Itoa(axis))
		}
		size, given := im.o.Sizes[d.symbol]
		if !given {
			size, given = im.o.Sizes[symbol]
		}
		switch {
		case d.given && d.size >= 0 && d.size <= min(maxElements, math.MaxInt):
			shape = append(shape, ir.N(int(d.size)))
		case given:
			shape = append(shape, ir.N(size))
		default:
			shape = append(shape, ir.Sym(symbol))
		}
	}
	return shape, nil
}

// leavesOpen reports whether the model declares no size of an axis of one of some inputs.
func (im *importer) leavesOpen(inputs []string, axis int) bool {
	return slices.ContainsFunc(im.m.graph.inputs, func(in valueInfo) bool {
		_, given := im.o.Shapes[in.name]
		return !given && axis < len(in.dims) && !in.dims[axis].given && slices.Contains(inputs, in.name)
	})
}

// symbolName makes a name of letters, digits and underscores of a dim_param.
func symbolName(s string) string {
	out := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
	if strings.Trim(out, "_") == "" {
		return ""
	}
	if out[0] >= '0' && out[0] <= '9' {
		out = "_" + out
	}
	return out
}

// lookup returns the value of a name in this graph or one around it, or nil.
func (s *scope) lookup(name string) *value {
	for ; s != nil; s = s.parent {
		if v := s.names[name]; v != nil {
			return v
		}
	}
	return nil
}

// maxCalls bounds the nodes imported in addition to the model's own: those of function calls and
// unrolled iterations, which could take exponential time.
const maxCalls = 1 << 17

// nodes imports nodes in order. ONNX asks that they are sorted.
func (s *scope) nodes(list []*node) error {
	for _, n := range list {
		if s.im.calls++; s.im.calls-s.im.m.nodes > maxCalls {
			return damaged("functions and loops have more than %d nodes", maxCalls)
		}
		if err := s.node(n); err != nil {
			return err
		}
	}
	return nil
}

// node imports a node and names its results.
func (s *scope) node(n *node) error {
	c, err := s.call(n)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		if _, already := err.(*Error); already {
			return err
		}
		op := n.op
		if n.domain != "" {
			op = n.domain + "." + op
		}
		return &Error{Node: n.title(), Op: op, Opset: s.opsets[n.domain], Reason: err}
	}
	for i, name := range n.outputs {
		if name == "" {
			continue
		}
		if i >= len(c.out) || c.out[i] == nil {
			return &Error{Node: n.title(), Op: n.op, Opset: s.opsets[n.domain], Reason: ir.Errorf(ir.ErrUnsupported, "result %d, %q, is not computed", i, name)}
		}
		v := c.out[i]
		if v.name == "" {
			v.name = name
		}
		if s.names[name] != nil {
			return damaged("value %q is computed twice", name)
		}
		s.names[name] = v
	}
	return nil
}

// call finds the operands of a node.
func (s *scope) call(n *node) (*call, error) {
	c := &call{scope: s, n: n, opset: s.opsets[n.domain]}
	for _, name := range n.inputs {
		if name == "" {
			c.in = append(c.in, nil)
			continue
		}
		v := s.lookup(name)
		if v == nil {
			return nil, damaged("operand %q is computed by no node before", name)
		}
		if v.refused != nil {
			return nil, v.refused
		}
		c.in = append(c.in, v)
	}
	return c, nil
}

// run imports the node: by a function of the model, by folding, or by its op.
func (c *call) run() error {
	if f := c.im.m.functions[functionKey{c.n.domain, c.n.op, c.n.overload}]; f != nil {
		return c.function(f)
	}
	op, err := lookupOp(c.n.domain, c.n.op, c.opset)
	if err != nil {
		return err
	}
	if c.opset < 7 && c.n.domain == "" && c.hasAttr("broadcast") {
		return ir.Errorf(ir.ErrUnsupported, "attribute broadcast of operator sets below 7")
	}
	if c.foldDims() || c.err != nil {
		return c.err
	}
	if op.values != nil {
		op.values(c)
		return cmp.Or(c.err, c.b.TakeErr())
	}
	if err := c.tensorsOnly(); err != nil {
		return err
	}
	if done, err := c.fold(op); done || err != nil {
		return err
	}
	c.b.Label(c.n.title())
	c.results(op.build(c))
	c.b.Label("")
	return cmp.Or(c.err, c.b.TakeErr())
}

// results makes values of the results.
func (c *call) results(out []ir.Value) {
	for i, x := range out {
		v := c.result(i, x)
		if v != nil {
			v.from = c.sources()
			v.set(c.b, x)
		}
		c.out = append(c.out, v)
	}
}

// result returns a value of the type of result i, nil if that is left out.
func (c *call) result(i int, x ir.Value) *value {
	if !x.Valid() {
		return nil
	}
	v := &value{elem: elementOf(x.DType()), typ: x.Type()}
	switch {
	case i < len(c.elems) && c.elems[i] != 0:
		v.elem = c.elems[i]
	case len(c.in) > 0 && c.in[0] != nil && keepsElements[c.n.op]:
		v.elem = c.in[0].elem
	}
	return v
}

// keepsElements names the ops that move elements and keep their type.
var keepsElements = map[string]bool{
	"Identity": true, "Reshape": true, "Transpose": true, "Squeeze": true, "Unsqueeze": true, "Flatten": true, "Slice": true,
	"Gather": true, "Concat": true, "Expand": true, "Tile": true, "Split": true, "Pad": true,
}

// sources returns the inputs of the graph that the operands depend on.
func (c *call) sources() []string {
	var from []string
	for _, v := range c.in {
		if v == nil {
			continue
		}
		for _, name := range v.from {
			if !slices.Contains(from, name) && len(from) < 64 {
				from = append(from, name)
			}
		}
	}
	return from
}

// tensorsOnly refuses sequences and optionals.
func (c *call) tensorsOnly() error {
	for _, v := range c.in {
		if v != nil && (v.isList() || v.elem == String) {
			return ir.Errorf(ir.ErrUnsupported, "operand %q is a sequence, an optional or a tensor of strings", v.name)
		}
	}
	return nil
}

// fold computes a node whose operands are all known, with the reference implementation.
func (c *call) fold(op *opInfo) (done bool, err error) {
	if op.impure {
		return false, nil
	}
	for _, v := range c.in {
		if v == nil {
			continue
		}
		if v.tensor != nil && c.im.isWeight(v) {
			return false, nil // it stays a parameter, which training can reach
		}
		if n, ok := v.typ.Shape.Size().Const(); !ok || n > foldElements || v.array(c.im) == nil {
			return false, nil
		}
	}
	b, finish := ir.NewBuilder("fold")
	inner := &call{scope: &scope{im: c.im, b: b, opsets: c.opsets, attrs: c.attrs}, n: c.n, in: c.in, opset: c.opset}
	out := op.build(inner)
	if err := cmp.Or(inner.err, b.TakeErr()); err != nil {
		return true, err
	}
	for i, x := range out {
		if !x.Valid() {
			continue
		}
		if n, ok := x.Shape().Size().Const(); !ok || n > foldElements {
			return false, nil
		}
		b.Output(strconv.Itoa(i), x)
	}
	g, err := finish()
	if err != nil {
		return true, err
	}
	work := foldWork(g)
	if work > foldNode || c.im.folded+work > foldAll {
		return false, nil
	}
	c.im.folded += work
	arrays, err := ir.Eval(g, nil, ir.EvalOptions{})
	if err != nil {
		return true, err
	}
	c.elems = inner.elems
	for i, x := range out {
		v := c.result(i, x)
		if v != nil {
			v.known, arrays = arrays[0], arrays[1:]
		}
		c.out = append(c.out, v)
	}
	return true, nil
}

// foldWork returns the number of elements that a graph computes, and of products in contractions.
func foldWork(g *ir.Graph) int {
	work := 0
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			size, ok := t.Shape.Size().Const()
			if !ok || size > foldNode {
				return foldNode + 1
			}
			if n.Op() == ops.OpDotGeneral || n.Op() == ops.OpConvGeneral {
				k, _ := n.Input(1).Shape().Size().Const()
				size *= min(max(k, 1), foldNode)
			}
			work = min(work+size, foldNode+1)
		}
	}
	return work
}

// function inlines a function of the model.
func (c *call) function(f *function) error {
	if c.im.depth++; c.im.depth > maxNesting {
		return damaged("function %q: calls are nested more than %d times", f.name, maxNesting)
	}
	defer func() { c.im.depth-- }()
	inner := &scope{im: c.im, b: c.b, opsets: f.opsets, names: map[string]*value{}, attrs: map[string]*attribute{}}
	if len(f.opsets) == 0 {
		inner.opsets = c.opsets
	}
	for i, name := range f.inputs {
		if i < len(c.in) && c.in[i] != nil {
			inner.names[name] = c.in[i]
		} else {
			inner.names[name] = &value{name: name, refused: ir.Errorf(ir.ErrUnsupported, "operand %q of function %q is left out", name, f.name)}
		}
	}
	maps.Copy(inner.attrs, f.defaults)
	for name := range c.n.attrs {
		if a := c.attr(name); a != nil {
			inner.attrs[name] = a
		}
	}
	if err := inner.nodes(f.nodes); err != nil {
		return err
	}
	for _, name := range f.outputs {
		c.out = append(c.out, inner.names[name])
	}
	return nil
}

// emit returns the value in the graph that is being built.
func (s *scope) emit(v *value) ir.Value {
	if x, ok := v.at[s.b]; ok {
		return x
	}
	x := s.make(v)
	if x.Valid() {
		v.set(s.b, x)
	}
	return x
}

// make adds a value that no node computes in this graph.
func (s *scope) make(v *value) ir.Value {
	switch {
	case v.dims != nil:
		return emitDims(s.b, v)
	case v.tensor != nil && s.b == s.im.root && s.im.isWeight(v):
		return s.weight(v)
	case v.array(s.im) != nil:
		return ops.Literal(s.b, v.array(s.im))
	case v.err != nil:
		s.b.Fail(v.err)
	default:
		s.b.Fail(damaged("value %q is not of this graph", v.name))
	}
	return ir.Value{}
}

// isWeight reports whether an initializer becomes a parameter: floats but single numbers, and large
// tensors of other types.
func (im *importer) isWeight(v *value) bool {
	return v.typ.DType.IsFloat() && v.tensor.len() > inlineElements || v.tensor.len() > foldElements
}

// weight declares the parameter of an initializer.
func (s *scope) weight(v *value) ir.Value {
	w := Weight{Name: v.name, Type: v.typ, read: v.tensor.bytes, tensor: v.tensor, files: s.im.o.Files}
	return s.parameter(w, v.constant && len(s.im.m.graph.initializers) > 0)
}

// parameter declares a parameter, with a number after its name if there is one of that name.
func (s *scope) parameter(w Weight, frozen bool) ir.Value {
	name := w.Name
	for i := 1; s.im.names[w.Name]; i++ {
		w.Name = name + "_" + strconv.Itoa(i)
	}
	s.im.names[w.Name] = true
	s.im.weights = append(s.im.weights, w)
	return s.b.ParamWith(w.Name, ir.PortOptions{Frozen: frozen || s.im.o.Frozen}, w.Type.DType, w.Type.Shape...)
}
