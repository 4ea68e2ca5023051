package onnx

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addTo("", "If", opInfo{since: 1, values: ifOp})
	addTo("", "Loop", opInfo{since: 1, values: loop})
	addTo("", "Scan", opInfo{since: 9, values: scan})
}

// body is a graph of a node and the values around it that it uses.
type body struct {
	c        *call
	g        *graph
	captured []*value
}

// bodyOf returns the graph of an attribute. Captured values exclude those that the graph can
// compute itself, such as literals.
func bodyOf(c *call, name string) *body {
	a := c.attr(name)
	if a == nil || a.graph == nil {
		c.fail(damaged("attribute %q has no graph", name))
		return nil
	}
	y := &body{c: c, g: a.graph}
	y.capture(a.graph, nil)
	return y
}

// capture adds the values of outer graphs that g and the graphs in it use; inner lists names
// defined within.
func (y *body) capture(g *graph, inner map[string]bool) {
	names := map[string]bool{}
	for name := range inner {
		names[name] = true
	}
	for _, in := range g.inputs {
		names[in.name] = true
	}
	if err := (&scope{im: y.c.im, names: map[string]*value{}}).initializers(g); err != nil {
		y.c.fail(err)
		return
	}
	for _, t := range g.initializers {
		names[t.name] = true
		if v := y.c.im.own[g][t.name]; y.c.im.isWeight(v) {
			y.add(v)
		}
	}
	use := func(name string) {
		if name != "" && !names[name] {
			y.add(y.c.lookup(name))
		}
	}
	for _, n := range g.nodes {
		for _, name := range n.inputs {
			use(name)
		}
		for _, a := range n.attrs {
			if a.graph != nil {
				y.capture(a.graph, names)
			}
		}
		for _, name := range n.outputs {
			names[name] = true
		}
	}
	for _, out := range g.outputs {
		use(out.name)
	}
}

func (y *body) add(v *value) {
	if v == nil || v.isList() || v.refused != nil || v.dims != nil || slices.Contains(y.captured, v) {
		return
	}
	weight := v.tensor != nil && y.c.im.isWeight(v)
	if weight || v.known == nil && v.tensor == nil {
		y.captured = append(y.captured, v)
	}
}

// operands returns the captured values in the graph around.
func (y *body) operands() []ir.Value {
	var out []ir.Value
	for _, v := range y.captured {
		out = append(out, y.c.emit(v))
	}
	return out
}

// run imports the graph into b, given values for its captures and inputs, and returns its outputs.
func (y *body) run(b *ir.Builder, captured []ir.Value, inputs []*value) []*value {
	c := y.c
	if c.im.depth++; c.im.depth > 2*maxNesting {
		c.fail(damaged("graphs are nested too deep"))
		return nil
	}
	defer func() { c.im.depth-- }()
	for i, v := range y.captured {
		if i < len(captured) {
			v.set(b, captured[i])
		}
	}
	s := &scope{im: c.im, b: b, parent: c.scope, opsets: c.opsets, names: map[string]*value{}, attrs: c.attrs}
	if len(inputs) != len(y.g.inputs) {
		c.fail(damaged("graph %q has %d inputs, and %d values are given", y.g.name, len(y.g.inputs), len(inputs)))
		return nil
	}
	for i, in := range y.g.inputs {
		s.names[in.name] = inputs[i]
	}
	if err := cmp.Or(s.initializers(y.g), s.nodes(y.g.nodes)); err != nil {
		c.fail(err)
		return nil
	}
	var out []*value
	for _, o := range y.g.outputs {
		v := s.lookup(o.name)
		if v == nil {
			c.fail(damaged("output %q of graph %q is computed by no node", o.name, y.g.name))
			return nil
		}
		out = append(out, v)
	}
	return out
}

// values runs the graph and returns its outputs in b.
func (y *body) values(b *ir.Builder, captured []ir.Value, inputs []*value) []ir.Value {
	var out []ir.Value
	for _, v := range y.run(b, captured, inputs) {
		if v.isList() {
			y.c.failf("an output of the graph is a sequence: it must be a tensor")
			return nil
		}
		out = append(out, (&scope{im: y.c.im, b: b}).emit(v))
	}
	return out
}

// placed returns the value of ONNX type e that x is in b.
func placed(b *ir.Builder, x ir.Value, e Element) *value {
	v := &value{elem: e, typ: x.Type()}
	v.set(b, x)
	return v
}

// ifOp takes the branch of a condition that is known, and otherwise has both in the graph.
func ifOp(c *call) {
	then, other := bodyOf(c, "then_branch"), bodyOf(c, "else_branch")
	if c.err != nil || !c.has(0) {
		c.fail(damaged("the condition is missing"))
		return
	}
	if a := c.in[0].array(c.im); a != nil && a.Len() == 1 {
		taken := other
		if a.Element(0).I != 0 {
			taken = then
		}
		c.out = taken.run(c.b, nil, nil)
		return
	}
	for _, v := range other.captured {
		then.add(v)
	}
	other.captured = then.captured
	operands := then.operands()
	predicate := ops.Reshape(c.b, c.x(0))
	build := func(y *body) ops.Branch {
		return func(b *ir.Builder, in []ir.Value) []ir.Value { return y.values(b, in, nil) }
	}
	c.results(ops.Cond(c.b, predicate, operands, build(then), build(other)))
	if err := cmp.Or(c.err, c.b.TakeErr()); err != nil {
		// A branch for other inputs than those at hand need not fit: the condition decides.
		c.err = &NeedError{Value: c.in[0].name, Type: c.in[0].typ, From: c.in[0].from, Reason: err}
	}
}

// unrollLimit bounds the nodes that a loop is written out to.
const unrollLimit = 1 << 14

// loop imports Loop: as a scan if its number of iterations is known, else as a while loop; unrolled
// if iterations need the counter at import.
func loop(c *call) {
	y := bodyOf(c, "body")
	if c.err != nil {
		return
	}
	if len(y.g.inputs) < 2 || len(y.g.outputs) < 1 || len(c.in) < 2 || len(y.g.inputs) != len(c.in) || len(y.g.outputs) < len(c.in)-1 {
		c.fail(damaged("the body has %d inputs and %d outputs: they must fit the %d operands", len(y.g.inputs), len(y.g.outputs), len(c.in)))
		return
	}
	lists := slices.ContainsFunc(c.in, func(v *value) bool { return v != nil && v.isList() })
	trips, known := tripCount(c)
	start := c.has(1) && c.in[1].array(c.im) == nil
	if !lists {
		if known && !start && staysTrue(c, y) {
			loopScan(c, y, trips)
		} else {
			loopWhile(c, y)
		}
		if c.err == nil && c.b.Err() == nil {
			return
		}
	}
	first := cmp.Or(c.err, c.b.TakeErr())
	if first != nil && (!known || trips > unrollLimit || trips*len(y.g.nodes) > unrollLimit) {
		c.err = first
		return
	}
	c.err, c.out = nil, nil
	unroll(c, y, trips, known)
	if c.err != nil && first != nil {
		c.err = first
	}
}

// tripCount returns the number of iterations, if it is known.
func tripCount(c *call) (int, bool) {
	if !c.has(0) {
		return 0, false
	}
	a := c.in[0].array(c.im)
	if a == nil || a.Len() != 1 || a.I == nil {
		return 0, false
	}
	return int(max(a.I[0], 0)), true
}

// staysTrue reports whether the condition that the body returns is true in every turn: a constant, or
// the condition that it was given.
func staysTrue(c *call, y *body) bool {
	name := y.g.outputs[0].name
	for range len(y.g.nodes) + 1 {
		if name == y.g.inputs[1].name {
			if !c.has(1) {
				return true
			}
			a := c.in[1].array(c.im)
			return a != nil && a.Len() == 1 && a.Element(0).I != 0
		}
		i := slices.IndexFunc(y.g.nodes, func(n *node) bool { return slices.Contains(n.outputs, name) })
		switch {
		case i < 0:
			v := y.c.im.own[y.g][name]
			if v == nil {
				v = c.lookup(name)
			}
			return v != nil && v.array(c.im) != nil && v.array(c.im).Len() == 1 && v.array(c.im).Element(0).I != 0
		case y.g.nodes[i].op == "Constant":
			a := y.g.nodes[i].attrs["value"]
			if a == nil || a.tensor == nil {
				return false
			}
			x, err := a.tensor.array(c.im.o.Files)
			return err == nil && x.Len() == 1 && x.Element(0).I != 0
		case y.g.nodes[i].op != "Identity" || len(y.g.nodes[i].inputs) != 1:
			return false
		}
		name = y.g.nodes[i].inputs[0]
	}
	return false
}

// carried returns the operands from the third on.
func carried(c *call, from int) (out []ir.Value) {
	for i := from; i < len(c.in); i++ {
		out = append(out, c.x(i))
	}
	return out
}

// carriedValues returns values of the carried operands in b.
func carriedValues(c *call, b *ir.Builder, xs []ir.Value, from int) (out []*value) {
	for i, x := range xs {
		e := elementOf(x.DType())
		if from+i < len(c.in) && c.in[from+i] != nil {
			e = c.in[from+i].elem
		}
		out = append(out, placed(b, x, e))
	}
	return out
}

func loopScan(c *call, y *body, trips int) {
	carries := append([]ir.Value{ops.Const(c.b, ir.I64, 0)}, carried(c, 2)...)
	last, ys := ops.Scan(c.b, ops.Loop{Consts: y.operands(), Carries: carries, Length: ir.N(trips), Body: func(b *ir.Builder, consts, carries, _ []ir.Value) (next, ys []ir.Value) {
		truth := &value{elem: Bool, typ: ir.TypeOf(ir.Bool), known: ir.Int(ir.Bool, 1)}
		in := append([]*value{placed(b, carries[0], Int64), truth}, carriedValues(c, b, carries[1:], 2)...)
		out := y.values(b, consts, in)
		if len(out) < len(carries) {
			return carries, nil
		}
		count := ops.Add(b, carries[0], ops.Const(b, ir.I64, 1))
		return append([]ir.Value{count}, out[1:len(carries)]...), out[len(carries):]
	}})
	if len(last) > 0 {
		c.results(append(last[1:], ys...))
	}
}

func loopWhile(c *call, y *body) {
	if len(y.g.outputs) > len(c.in)-1 {
		if c.has(0) {
			c.known(0)
		}
		if c.has(1) {
			c.known(1)
		}
		c.failf("the end of the loop is computed: it must be known where results are stacked")
		return
	}
	condition := ops.Const(c.b, ir.Bool, 1)
	if c.has(1) {
		condition = ops.Reshape(c.b, c.x(1))
	}
	consts := y.operands()
	if c.has(0) {
		consts = append(consts, ops.Reshape(c.b, c.x(0)))
	}
	carries := append([]ir.Value{ops.Const(c.b, ir.I64, 0), condition}, carried(c, 2)...)
	steps := c.im.o.MaxSteps
	if n, known := tripCount(c); known {
		steps = n
	}
	last := ops.WhileLoop(c.b, ops.While{
		Consts: consts, Carries: carries, MaxSteps: steps,
		Cond: func(b *ir.Builder, consts, carries []ir.Value) ir.Value {
			if !c.has(0) {
				return carries[1]
			}
			return ops.And(b, carries[1], ops.Lt(b, carries[0], consts[len(consts)-1]))
		},
		Body: func(b *ir.Builder, consts, carries []ir.Value) []ir.Value {
			in := append([]*value{placed(b, carries[0], Int64), placed(b, carries[1], Bool)}, carriedValues(c, b, carries[2:], 2)...)
			out := y.values(b, consts, in)
			if len(out) < len(carries)-1 {
				return carries
			}
			count := ops.Add(b, carries[0], ops.Const(b, ir.I64, 1))
			return append([]ir.Value{count, ops.Reshape(b, out[0])}, out[1:len(carries)-1]...)
		},
	})
	if len(last) > 1 {
		c.results(last[2:])
	}
}

// unroll writes out the iterations of a loop: at most trips, if that is known.
func unroll(c *call, y *body, trips int, known bool) {
	state := append([]*value{}, c.in[2:]...)
	condition := &value{elem: Bool, typ: ir.TypeOf(ir.Bool), known: ir.Int(ir.Bool, 1)}
	if c.has(1) {
		condition = c.in[1]
	}
	stacked := make([][]ir.Value, len(y.g.outputs)-1-len(state))
	for i := 0; !known || i < trips; i++ {
		a := condition.array(c.im)
		if a == nil || a.Len() != 1 || i*len(y.g.nodes) > unrollLimit {
			c.failf("the end of the loop is computed: it must be known where it is unrolled")
			return
		}
		if a.Element(0).I == 0 {
			break
		}
		count := &value{elem: Int64, typ: ir.TypeOf(ir.I64), known: ir.Int(ir.I64, int64(i))}
		out := y.run(c.b, nil, append([]*value{count, condition}, state...))
		if c.err != nil {
			return
		}
		condition, state = out[0], out[1:len(state)+1]
		for k, v := range out[len(state)+1:] {
			stacked[k] = append(stacked[k], c.emit(v))
		}
	}
	c.out = slices.Clone(state)
	for k, list := range stacked {
		if len(list) == 0 {
			c.failf("result %s is stacked: the loop must have one iteration or more", strconv.Itoa(k))
			return
		}
		x := ops.Stack(c.b, 0, list...)
		c.out = append(c.out, placed(c.b, x, elementOf(x.DType())))
	}
}

// scan is Scan: the last operands are sliced along an axis each, and the last results stacked.
func scan(c *call) {
	y := bodyOf(c, "body")
	m := c.int("num_scan_inputs", 0)
	n := len(c.in) - m
	if c.err != nil || m < 1 || n < 0 || len(y.g.outputs) < n {
		c.fail(damaged("there are %d operands, and num_scan_inputs is %d: it must be 1 or more, and fit operands and body", len(c.in), m))
		return
	}
	at := func(list []int, i int) int {
		if i < len(list) {
			return list[i]
		}
		return 0
	}
	var xs []ir.Value
	for i := range m {
		x := c.x(n + i)
		axis := c.axisOf(at(c.ints("scan_input_axes"), i), x.Rank())
		if at(c.ints("scan_input_directions"), i) != 0 {
			x = ops.Reverse(c.b, x, axis)
		}
		xs = append(xs, ops.MoveAxis(c.b, x, axis, 0))
	}
	var carries []ir.Value
	for i := range n {
		carries = append(carries, c.x(i))
	}
	last, ys := ops.Scan(c.b, ops.Loop{Consts: y.operands(), Carries: carries, Xs: xs, Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
		out := y.values(b, consts, carriedValues(c, b, slices.Concat(carries, xs), 0))
		if len(out) < n {
			return carries, nil
		}
		return out[:n], out[n:]
	}})
	for i, x := range ys {
		axis := c.axisOf(at(c.ints("scan_output_axes"), i), x.Rank())
		x = ops.MoveAxis(c.b, x, 0, axis)
		if at(c.ints("scan_output_directions"), i) != 0 {
			x = ops.Reverse(c.b, x, axis)
		}
		ys[i] = x
	}
	c.results(append(last, ys...))
}
