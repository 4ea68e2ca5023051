package autodiff

import (
	"path"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Policy chooses the residuals of reverse mode: it returns for each node of the forward graph, by
// ID, whether its results are stored. The backward pass recomputes what it needs and is not stored,
// from stored values and from ports, at the point of use. This trades work for memory (Chen et al.,
// Training Deep Nets with Sublinear Memory Cost, 2016). A nil Policy stores all needed values; so
// does a choice that would save no memory.
//
// A policy is called for the body of each loop and each branch, innermost first, and for the whole
// graph. Residuals of a loop body are stacked over its steps.
type Policy func(f Forward) (keep []bool, err error)

// Forward is a forward pass for which a [Policy] chooses residuals.
type Forward struct {
	// Graph is the forward graph. Composite ops that the derivative went through are expanded. Its
	// loops also return the stacked residuals chosen for their bodies.
	Graph *ir.Graph
	// Needed are the values that the backward pass needs.
	Needed []ir.Value
	// Steps is the number of times that the graph runs before the backward pass starts: the length
	// of the loop if the graph is a loop body, and 1 otherwise.
	Steps ir.Dim
}

// SaveOps stores the results of the given ops, and of loops and branches that contain them. The
// error is of kind [ir.ErrName] for an unknown op, and [ir.ErrAttr] for a composite without a
// derivative of its own, such as linear: the graph has the ops of its body instead.
func SaveOps(kept ...ir.Op) Policy {
	return func(f Forward) ([]bool, error) {
		for _, op := range kept {
			if err := checkKept(op); err != nil {
				return nil, err
			}
		}
		return keepWhere(func(n *ir.Node) bool { return slices.Contains(kept, n.Op()) })(f)
	}
}

func checkKept(op ir.Op) error {
	switch d, known := ir.Lookup(op); {
	case !known:
		return ir.Errorf(ir.ErrName, "policy: unknown op %q", op)
	case d.JVP == nil && d.IsComposite():
		return ir.Attrf("policy: derivatives replace %s by the ops of its body: name those to keep", op)
	}
	return nil
}

// SaveProducts stores the results of matrix products, convolutions and attention, and recomputes
// the cheaper ops.
func SaveProducts() Policy {
	return SaveOps(ops.OpDotGeneral, ops.OpConvGeneral, ops.OpAttentionForward)
}

// SaveNothing stores nothing and recomputes everything from the ports. It saves memory if branches
// join at the end of the graph. For a chain of layers it saves little, since the last layer needs
// the whole chain: use [Checkpoint] or [SaveMinCut] there.
func SaveNothing() Policy { return SaveOps() }

// SaveLabels stores the results of nodes whose label ([ir.Builder.Label]) matches one of the
// patterns of package path, such as "block*/out". The error is of kind [ir.ErrAttr] for a malformed
// pattern.
func SaveLabels(patterns ...string) Policy {
	return func(f Forward) ([]bool, error) {
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil {
				return nil, ir.Attrf("label pattern %q: %v", p, err)
			}
		}
		return keepWhere(func(n *ir.Node) bool {
			return n.Label() != "" && slices.ContainsFunc(patterns, func(p string) bool {
				ok, _ := path.Match(p, n.Label())
				return ok
			})
		})(f)
	}
}

// keepWhere stores the results of nodes that satisfy holds, and of nodes with a subgraph that
// contains such a node.
func keepWhere(holds func(n *ir.Node) bool) Policy {
	var within func(n *ir.Node) bool
	within = func(n *ir.Node) bool {
		return holds(n) || slices.ContainsFunc(n.Subgraphs(), func(g *ir.Graph) bool { return slices.ContainsFunc(g.Nodes(), within) })
	}
	return func(f Forward) ([]bool, error) {
		keep := make([]bool, len(f.Graph.Nodes()))
		for i, n := range f.Graph.Nodes() {
			keep[i] = within(n)
		}
		return keep, nil
	}
}

// keeper returns the policy as an [ir.Keeper] that returns nil if the choice saves no memory.
func (p Policy) keeper() ir.Keeper {
	if p == nil {
		return nil
	}
	return func(forward *ir.Graph, needed []ir.Value, steps ir.Dim) ([]bool, error) {
		f := Forward{forward, needed, steps}
		keep, err := p(f)
		if err == nil && len(keep) != len(forward.Nodes()) {
			err = ir.Attrf("the policy returned %d values; it must return one for each of %d nodes", len(keep), len(forward.Nodes()))
		}
		if err != nil || !f.savesMemory(keep) {
			return nil, err
		}
		return keep, nil
	}
}

// SaveMinCut cuts the forward pass into parts at points where few bytes are live, stores the values
// that cross a cut, and recomputes each part in the backward pass. It chooses the cuts that
// minimise the sum of the stored bytes and the largest recomputed part. For a chain of equal layers
// it stores the values between groups of layers.
//
// The error is of kind [ir.ErrShape] for a graph with symbolic sizes.
func SaveMinCut() Policy {
	return func(f Forward) ([]bool, error) {
		c, err := newCuts(f)
		if err != nil {
			return nil, err
		}
		var best []bool
		lowest := -1
		for _, limit := range c.partLimits() {
			keep, bytes, largest := c.cutWithin(limit)
			if all := c.stackedBytes(bytes) + largest; lowest < 0 || all < lowest {
				best, lowest = keep, all
			}
		}
		return best, nil
	}
}

// SaveWithin is [SaveMinCut] with a limit on the stored bytes. It makes as many cuts as fit, then
// also stores results of matrix products, in order, while they fit.
func SaveWithin(bytes int) Policy {
	return func(f Forward) ([]bool, error) {
		c, err := newCuts(f)
		if err != nil {
			return nil, err
		}
		best, used := make([]bool, len(c.nodes)), 0
		for _, limit := range c.partLimits() {
			if keep, kept, _ := c.cutWithin(limit); c.stackedBytes(kept) <= bytes {
				best, used = keep, kept
			}
		}
		products, err := SaveProducts()(f)
		for i, n := range c.nodes {
			if products[i] && c.live[i] && !best[i] && c.stackedBytes(used+c.bytes[n.ID()]) <= bytes {
				best[i], used = true, used+c.bytes[n.ID()]
			}
		}
		return best, err
	}
}

// cuts holds the live bytes between the nodes of a graph, in graph order.
type cuts struct {
	nodes    []*ir.Node
	live     []bool // by node: it depends on a port and a needed value depends on it
	bytes    []int  // by node: bytes of its results
	stored   []int  // by node: bytes of its results that the backward pass needs
	last     []int  // by node: its last user
	crossing []int  // by node: bytes live from it and earlier nodes to later ones
	steps    int    // number of times that the graph runs
}

func newCuts(f Forward) (*cuts, error) {
	steps, ok := f.Steps.Const()
	if !ok {
		return nil, ir.Shapef("a loop has %s steps; the policy needs a number: bind it first", f.Steps)
	}
	n := len(f.Graph.Nodes())
	c := &cuts{
		steps: steps, nodes: f.Graph.Nodes(), live: make([]bool, n), bytes: make([]int, n), stored: make([]int, n),
		last: make([]int, n), crossing: make([]int, n),
	}
	for _, v := range f.Needed {
		c.live[v.Node().ID()] = true
	}
	for i := n - 1; i >= 0; i-- {
		for _, v := range c.nodes[i].Inputs() {
			if id := v.Node().ID(); c.live[i] {
				c.live[id] = true
				c.last[id] = max(c.last[id], i)
			}
		}
	}
	c.dropConstants()
	for i, x := range c.nodes {
		for _, t := range x.Types() {
			size, err := t.Bytes()
			if err != nil || c.live[i] && !constant(t.Shape) {
				return nil, x.Fail(ir.Shapef("a value is %s; the policy needs its size: bind it first", t))
			}
			c.bytes[i] += size
		}
		if c.live[i] && i < c.last[i] {
			c.crossing[i] += c.bytes[i]
			c.crossing[c.last[i]] -= c.bytes[i]
		}
	}
	for i := 1; i < n; i++ { // up to here crossing holds differences
		c.crossing[i] += c.crossing[i-1]
	}
	for _, v := range f.Needed {
		if i := v.Node().ID(); c.live[i] {
			size, _ := v.Type().Bytes()
			c.stored[i] += size
		}
	}
	return c, nil
}

// stackedBytes returns the bytes of values that every step stores.
func (c *cuts) stackedBytes(bytes int) int { return c.steps * bytes }

func constant(s ir.Shape) bool {
	_, ok := s.Ints()
	return ok
}

// dropConstants marks ports, which are stored anyway, and values that depend on no port as not
// live.
func (c *cuts) dropConstants() {
	moves := make([]bool, len(c.nodes))
	for i, n := range c.nodes {
		moves[i] = n.Op() == ir.OpPort
		for _, v := range n.Inputs() {
			moves[i] = moves[i] || moves[v.Node().ID()]
		}
		c.live[i] = c.live[i] && moves[i] && n.Op() != ir.OpPort
	}
}

// maxParts limits the number of parts of a graph.
const maxParts = 64

// partLimits returns candidate limits for the bytes of a part, in decreasing order: the whole graph and
// fractions of it.
func (c *cuts) partLimits() []int {
	total := 0
	for _, b := range c.stored {
		total += b
	}
	out := []int{total}
	for parts := 2; parts <= min(len(c.nodes), maxParts); parts++ {
		out = append(out, total/parts)
	}
	return out
}

// cutWithin cuts the graph so that no part needs more than limit bytes, where possible. It returns the
// nodes whose values cross the cuts, their bytes, and the bytes of the largest part.
func (c *cuts) cutWithin(limit int) (keep []bool, bytes, largest int) {
	keep = make([]bool, len(c.nodes))
	part, begin := 0, 0
	for i := 0; i < len(c.nodes); i++ {
		part += c.stored[i]
		if part <= limit {
			continue
		}
		at := c.cheapestCut(begin, i)
		if at < 0 { // no cut is possible: the part exceeds the limit
			continue
		}
		before := sum(c.stored[begin : at+1])
		largest = max(largest, before)
		begin, i, part = at+1, at, 0
		for id := range c.nodes[:at+1] {
			if c.live[id] && c.last[id] > at && !keep[id] {
				keep[id] = true
				bytes += c.bytes[id]
			}
		}
	}
	return keep, bytes, max(largest, part)
}

// cheapestCut returns the node in [begin, end) after which the fewest bytes are live, the last one of
// equals; -1 if there is none.
func (c *cuts) cheapestCut(begin, end int) int {
	at := -1
	for i := begin; i < end; i++ {
		if c.live[i] && (at < 0 || c.crossing[i] <= c.crossing[at]) {
			at = i
		}
	}
	return at
}

func sum(list []int) int {
	total := 0
	for _, x := range list {
		total += x
	}
	return total
}

// minSavedFraction is the inverse of the fraction of residual memory that a choice must save. Smaller
// savings are within the error of the estimate and not worth the recomputation.
const minSavedFraction = 16

// savesMemory estimates whether storing only the marked values reduces the peak memory of the backward
// pass. It counts bytes of values and ignores fusion. The backward pass visits needed values from
// last to first; at each node the live values are the stored ones and the recomputed ones that this
// node or an earlier one needs. For a loop body, the residuals stacked by the other steps are live
// too. Values of unknown size are assumed to save memory.
func (f Forward) savesMemory(keep []bool) bool {
	w := &backwardPass{nodes: f.Graph.Nodes(), keep: keep}
	w.needed = make([]int, len(w.nodes))
	steps, ok := f.Steps.Const()
	if !ok {
		return true
	}
	without := 0
	for _, v := range f.Needed {
		size, err := v.Type().Bytes()
		if err != nil || !constant(v.Shape()) {
			return true
		}
		if v.Node().Op() != ir.OpPort {
			w.needed[v.Node().ID()] += size
			without += size
		}
	}
	kept, peak := w.peak()
	if steps == 1 { // stacked residuals are stored even if they are cheap
		without -= w.fusedBytes()
	}
	without *= steps
	return peak+(steps-1)*kept < without-without/minSavedFraction
}

// fusedBytes returns the bytes of needed values that are elementwise functions of stored ones: kernels
// fuse them into their consumers.
func (w *backwardPass) fusedBytes() int {
	there, bytes := make([]bool, len(w.nodes)), 0
	for i, n := range w.nodes {
		made := n.Op() != ir.OpPort && n.Def().Scalar != nil
		for _, v := range n.Inputs() {
			made = made && there[v.Node().ID()]
		}
		if made {
			bytes += w.needed[i]
		}
		there[i] = made || w.needed[i] > 0 || n.Op() == ir.OpPort || len(n.Inputs()) == 0 || isView(n) && there[n.Input(0).Node().ID()]
	}
	return bytes
}

// isView reports whether a node only moves elements.
func isView(n *ir.Node) bool {
	switch n.Op() {
	case ops.OpReshape, ops.OpTranspose, ops.OpBroadcastInDim:
		return true
	}
	return false
}

// backwardPass tracks the live values of the backward pass.
type backwardPass struct {
	nodes      []*ir.Node
	keep       []bool // by node: its results are stored
	needed     []int  // by node: bytes of its results that the backward pass needs
	used       []bool // by node: it is stored and something is recomputed from it
	recomputed []bool // by node: it is recomputed
}

// peak returns the stored bytes and the peak of live bytes.
func (w *backwardPass) peak() (kept, peak int) {
	w.used, w.recomputed = make([]bool, len(w.nodes)), make([]bool, len(w.nodes))
	for i := range w.nodes {
		if w.needed[i] > 0 {
			w.recompute(w.nodes[i])
		}
	}
	w.recomputed = make([]bool, len(w.nodes))
	held := 0
	for i := range w.nodes {
		held += w.storedBytes(i)
	}
	kept, peak = held, held
	for i := len(w.nodes) - 1; i >= 0; i-- {
		if w.needed[i] > 0 {
			held += w.recompute(w.nodes[i])
		}
		peak = max(peak, held)
		if held -= w.storedBytes(i); w.recomputed[i] {
			held -= w.needed[i]
		}
	}
	return kept, peak
}

// storedBytes returns the bytes of a node that are stored by the forward pass.
func (w *backwardPass) storedBytes(i int) int {
	if !w.used[i] {
		return 0
	}
	size := 0
	for _, t := range w.nodes[i].Types() {
		n, err := t.Bytes()
		if err == nil && constant(t.Shape) {
			size += n
		}
	}
	return size
}

// recompute marks n and its inputs, up to stored values, as recomputed. It returns the needed bytes
// that this makes live.
func (w *backwardPass) recompute(n *ir.Node) int {
	bytes := 0
	for stack := []*ir.Node{n}; len(stack) > 0; {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		i := x.ID()
		switch {
		case x.Op() == ir.OpPort || w.recomputed[i]:
		case w.keep[i]:
			w.used[i] = true
		default:
			w.recomputed[i] = true
			bytes += w.needed[i]
			for _, v := range x.Inputs() {
				stack = append(stack, v.Node())
			}
		}
	}
	return bytes
}
