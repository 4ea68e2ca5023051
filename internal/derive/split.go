package derive

import "github.com/rlx-go/rlx/ir"

// PartialResult is the result of partial evaluation: a graph split by which of its ports are
// known.
type PartialResult struct {
	// Known computes the values that depend on known ports only. Its ports are the
	// known ports of the graph in order, its outputs the known outputs in
	// order and then the residuals.
	Known *ir.Graph
	// Linear computes the rest. Its ports are the residuals and then the
	// unknown ports, its outputs the unknown outputs in order. If the unknown ports
	// are tangents of a JVP, it is linear in them.
	Linear *ir.Graph
	// OutUnknown reports for each output of the graph whether Linear computes it.
	OutUnknown []bool
	// ResidualPort is for each residual the port of the graph whose value
	// it is, or -1 if it is computed. A scan need not stack the value of a port.
	ResidualPort []int
}

// Residuals returns the number of residuals: values that Known passes to Linear.
func (h *PartialResult) Residuals() int { return len(h.ResidualPort) }

// PartialEval is partial evaluation: it splits g by which of its ports are unknown.
// Outputs marked by force count as unknown even if they are not (nil: none
// are). Ops with subgraphs are split by their Partial rule, composites
// without a transpose are inlined. keep, if not nil, chooses the
// residuals of subgraphs; those of g are chosen by the caller.
func PartialEval(g *ir.Graph, unknown, force []bool, keep ir.Keeper) (*PartialResult, error) {
	flat, err := flatten(g, unknown, keep)
	if err != nil {
		return nil, err
	}
	c := &partialEvaluation{g: flat, unknown: make([]bool, len(flat.Nodes())), port: map[ir.Value]int{}, seen: map[ir.Value]bool{}}
	c.classify(unknown, force)
	h := &PartialResult{OutUnknown: c.outUnknown}
	for _, v := range c.residuals {
		i, ok := c.port[v]
		if !ok {
			i = -1
		}
		h.ResidualPort = append(h.ResidualPort, i)
	}
	if h.Known, err = ir.Transform(g.Name()+"/known", c.buildKnown); err != nil {
		return nil, err
	}
	if h.Linear, err = ir.Transform(g.Name()+"/linear", c.buildLinear); err != nil {
		return nil, err
	}
	return h, nil
}

// flatten returns g with each node either known or unknown as a whole, and
// each unknown one transposable.
func flatten(g *ir.Graph, unknown []bool, keep ir.Keeper) (*ir.Graph, error) {
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		in := make([]ir.Value, len(g.Ports()))
		for i, p := range g.Ports() {
			in[i] = b.Port(ir.InputPort, portLabel("", i), p.Value.Type())
		}
		out, _ := Partial(b, g, in, unknown, keep)
		for i, v := range out {
			b.Output(portLabel("", i), v)
		}
	})
}

// Partial adds g to b with in as the values of its ports, some of them marked unknown. It returns
// the results and whether each is unknown. Each added node is known or unknown as a whole. Partial
// rules of ops use it for their subgraphs.
func Partial(b *ir.Builder, g *ir.Graph, in []ir.Value, unknown []bool, keep ir.Keeper) (out []ir.Value, outUnknown []bool) {
	defer restoreOrigin(b)()
	m, flags := ir.NewMapping(g), make([][]bool, len(g.Nodes()))
	for i, p := range g.Ports() {
		m.Set(p.Value, in[i])
		flags[p.Value.Node().ID()] = []bool{unknown[i]}
	}
	live := liveNodes(g, g.OutputValues()...)
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort || !live[n.ID()] {
			continue
		}
		if b.Err() != nil {
			return make([]ir.Value, len(g.Outputs())), make([]bool, len(g.Outputs()))
		}
		setOrigin(b, n)
		inUnknown := make([]bool, len(n.Inputs()))
		for i, v := range n.Inputs() {
			inUnknown[i] = flags[v.Node().ID()][v.Index()]
		}
		results, resUnknown := flattenNode(b, n, m.Inputs(n), inUnknown, keep)
		m.SetAll(n, results)
		flags[n.ID()] = append(resUnknown, make([]bool, n.NumResults())...)
	}
	outUnknown = make([]bool, len(g.Outputs()))
	for i, o := range g.Outputs() {
		outUnknown[i] = flags[o.Value.Node().ID()][o.Value.Index()]
	}
	return m.Outputs(g), outUnknown
}

func flattenNode(b *ir.Builder, n *ir.Node, in []ir.Value, unknown []bool, keep ir.Keeper) (out []ir.Value, outUnknown []bool) {
	d := n.Def()
	switch {
	case !anyTrue(unknown):
		return b.Copy(n, in), make([]bool, n.NumResults())
	case d.Partial != nil:
		return d.Partial(b, n, in, unknown, keep)
	case d.Transpose == nil && d.Body != nil:
		body, err := ir.Inline(n)
		if err != nil {
			b.Fail(n.Fail(err))
			return nil, nil
		}
		return Partial(b, body, in, unknown, keep)
	}
	outUnknown = make([]bool, n.NumResults())
	for i := range outUnknown {
		outUnknown[i] = true
	}
	return b.Copy(n, in), outUnknown
}

// partialEvaluation assigns the nodes of a flattened graph to the two halves.
type partialEvaluation struct {
	g          *ir.Graph
	unknown    []bool // by node
	outUnknown []bool
	outLinear  []ir.Value // the unknown outputs
	outKnown   []ir.Value // the known ones
	residuals  []ir.Value
	inLinear   []bool // by node: the linear half computes it
	port       map[ir.Value]int
	seen       map[ir.Value]bool // residuals
}

func (c *partialEvaluation) classify(unknown, force []bool) {
	for i, p := range c.g.Ports() {
		c.unknown[p.Value.Node().ID()] = unknown[i]
		c.port[p.Value] = i
	}
	for _, n := range c.g.Nodes() {
		for _, v := range n.Inputs() {
			c.unknown[n.ID()] = c.unknown[n.ID()] || c.unknown[v.Node().ID()]
		}
	}
	for i, o := range c.g.Outputs() {
		u := c.unknown[o.Value.Node().ID()]
		forced := force != nil && force[i]
		c.outUnknown = append(c.outUnknown, u || forced)
		if u || forced {
			c.outLinear = append(c.outLinear, o.Value)
		} else {
			c.outKnown = append(c.outKnown, o.Value)
		}
	}
	c.inLinear = make([]bool, len(c.g.Nodes()))
	for _, v := range c.outLinear {
		c.require(v)
	}
	nodes := c.g.Nodes()
	for i := len(nodes) - 1; i >= 0; i-- {
		if c.inLinear[i] {
			for _, v := range nodes[i].Inputs() {
				c.require(v)
			}
		}
	}
}

// require makes the linear half compute v if v is unknown or cheap, and
// receive it as a residual otherwise.
func (c *partialEvaluation) require(v ir.Value) {
	switch {
	case c.unknown[v.Node().ID()] || isCheap(v.Node()):
		c.inLinear[v.Node().ID()] = true
	case !c.seen[v]:
		c.seen[v] = true
		c.residuals = append(c.residuals, v)
	}
}

// isCheap reports whether recomputing a node is cheaper than a residual: a
// constant or iota, or a broadcast, conversion or reshape of one.
func isCheap(n *ir.Node) bool {
	switch n.Op() {
	case ir.OpConstant, "iota":
		return true
	case "broadcast_in_dim", "convert", "reshape":
		return isCheap(n.Input(0).Node())
	}
	return false
}

func (c *partialEvaluation) buildKnown(b *ir.Builder) {
	m := ir.NewMapping(c.g)
	for i, p := range c.g.Ports() {
		if !c.unknown[p.Value.Node().ID()] {
			m.Set(p.Value, b.Port(ir.InputPort, portLabel("", i), p.Value.Type()))
		}
	}
	wanted := append(append([]ir.Value(nil), c.outKnown...), c.residuals...)
	c.copyNodes(b, m, liveNodes(c.g, wanted...))
	for i, v := range wanted {
		b.Output(portLabel("", i), m.Get(v))
	}
}

func (c *partialEvaluation) buildLinear(b *ir.Builder) {
	m := ir.NewMapping(c.g)
	for i, v := range c.residuals {
		m.Set(v, b.Port(ir.InputPort, portLabel("residual", i), v.Type()))
	}
	for i, p := range c.g.Ports() {
		if c.unknown[p.Value.Node().ID()] {
			m.Set(p.Value, b.Port(ir.InputPort, portLabel("", i), p.Value.Type()))
		}
	}
	c.copyNodes(b, m, c.inLinear)
	for i, v := range c.outLinear {
		b.Output(portLabel("", i), m.Get(v))
	}
}

// copyNodes copies the marked nodes.
func (c *partialEvaluation) copyNodes(b *ir.Builder, m *ir.Mapping, marked []bool) {
	for _, n := range c.g.Nodes() {
		if n.Op() != ir.OpPort && marked[n.ID()] {
			b.CopyNode(n, m)
		}
	}
}

func anyTrue(s []bool) bool {
	for _, x := range s {
		if x {
			return true
		}
	}
	return false
}
