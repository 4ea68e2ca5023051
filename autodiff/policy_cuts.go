package autodiff

import (
	"github.com/rlx-go/rlx/ir"
)

// KeepLeast cuts the forward pass into parts at points where few bytes are live, stores the values
// that cross a cut, and recomputes each part in the backward pass. It chooses the cuts that
// minimise the sum of the stored bytes and the largest recomputed part. For a chain of equal layers
// it stores the values between groups of layers.
//
// The error is of kind [ir.ErrShape] for a graph with symbolic sizes.
func KeepLeast() Policy {
	return func(f Forward) ([]bool, error) {
		c, err := newCuts(f)
		if err != nil {
			return nil, err
		}
		var best []bool
		least := -1
		for _, limit := range c.partLimits() {
			keep, bytes, largest := c.cutWithin(limit)
			if all := c.stackedBytes(bytes) + largest; least < 0 || all < least {
				best, least = keep, all
			}
		}
		return best, nil
	}
}

// KeepWithin is [KeepLeast] with a limit on the stored bytes. It makes as many cuts as fit, then
// also stores results of matrix products, in order, while they fit.
func KeepWithin(bytes int) Policy {
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
		products, err := KeepProducts()(f)
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
		return nil, ir.Shapef("what to keep of a loop of %s steps cannot be known before its length: bind it first", f.Steps)
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
				return nil, x.Fail(ir.Shapef("what to keep of %s cannot be known before its size: bind it first", t))
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
