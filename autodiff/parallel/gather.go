package parallel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// visit is a range of nodes that use a block of parameters, by the ID of the first.
type visit struct{ block, first int }

// gathers gathers divided parameters before their uses.
type gathers struct {
	blocks [][]ir.Value // the ports of each block
	visits []visit      // sorted by first node
	next   int          // the first visit that was not gathered
	known  []bool       // per block: whether it was gathered before
	ahead  int
	gather func(params []ir.Value, again bool)
}

// DefaultAhead is the number of blocks gathered before the one in use if no other is given. A block is often one
// weight of a layer: with the next alone on its way, a large weight is late behind a small one. Three hide all gathers
// of a GPT of width 4,096 on four H200s.
const DefaultAhead = 3

// keptBlocks is the number of gathered blocks that stay in use: the next block may use a parameter
// of the previous one again, and the backward pass begins with the last layers.
const keptBlocks = 2

// findGathers groups the parameters that nodes use (nil for the outputs) into blocks of limited
// bytes by first use, and finds the visits of each. gather gathers some whole; a repeated gather is
// kept apart from the first by a rematerialize.
func findGathers(graph *ir.Graph, uses func(n *ir.Node) []ir.Value, bucket, ahead int, gather func(params []ir.Value, again bool)) *gathers {
	g := &gathers{ahead: ahead, gather: gather}
	blockOf, open, bytes := map[ir.Value]int{}, -1, 0
	var recent []int // blocks in use, the most recent last
	use := func(v ir.Value, at int) {
		k, ok := blockOf[v]
		if !ok {
			size, _ := v.Shape().Size().Const()
			add := size * v.DType().Size()
			if open < 0 || bytes+add > bucket {
				open, bytes = len(g.blocks), 0
				g.blocks = append(g.blocks, nil)
			}
			k, bytes = open, bytes+add
			blockOf[v], g.blocks[k] = k, append(g.blocks[k], v)
		}
		if i := slices.Index(recent, k); i >= 0 {
			recent = append(slices.Delete(recent, i, i+1), k)
			return
		}
		recent = append(recent, k)
		recent = recent[max(0, len(recent)-keptBlocks):]
		g.visits = append(g.visits, visit{k, at})
	}
	for _, n := range append(slices.Clone(graph.Nodes()), nil) {
		at := len(graph.Nodes())
		if n != nil {
			at = n.ID()
		}
		for _, v := range uses(n) {
			use(v, at)
		}
	}
	g.known = make([]bool, len(g.blocks))
	return g
}

// before gathers the blocks due before a node is copied, nil after the last node: the node's own
// and those prefetched.
func (g *gathers) before(n *ir.Node) {
	for ; g.next < len(g.visits); g.next++ {
		v := g.visits[g.next]
		if n != nil && g.visits[max(0, g.next-g.ahead)].first > n.ID() {
			return
		}
		g.gather(g.blocks[v.block], g.known[v.block])
		g.known[v.block] = true
	}
}

// uses returns the divided parameters that a copied node uses whole, those of outputs for nil.
func (c *sharder) uses(n *ir.Node) (out []ir.Value) {
	add := func(v ir.Value) {
		if _, ok := c.parts[v]; ok {
			out = append(out, v)
		}
	}
	if n == nil {
		for _, o := range c.g.Outputs() {
			if !c.updatesDivided(o) {
				add(o.Value)
			}
		}
		return out
	}
	if !c.region[n] {
		for _, v := range n.Inputs() {
			add(v)
		}
	}
	return out
}

// gatherParams gathers parameters. A large one is gathered alone, straight into the memory that its
// readers use; small ones are gathered by one collective per element type and copied. A
// rematerialize keeps a later gather from merging with an earlier one.
func (c *sharder) gatherParams(params []ir.Value, again bool) {
	small := map[ir.DType][]ir.Value{}
	var order []ir.DType
	for _, v := range params {
		size, _ := v.Shape().Size().Const()
		if size*v.DType().Size() >= min(FirstBucket, c.bucket/2) {
			c.gatherTogether([]ir.Value{v}, again)
			continue
		}
		if small[v.DType()] == nil {
			order = append(order, v.DType())
		}
		small[v.DType()] = append(small[v.DType()], v)
	}
	for _, d := range order {
		c.gatherTogether(small[d], again)
	}
}

func (c *sharder) gatherTogether(params []ir.Value, again bool) {
	rows, types := make([]ir.Value, len(params)), make([]ir.Type, len(params))
	for i, v := range params {
		part := c.parts[v]
		if again {
			part = ops.Rematerialize(c.b, part)
		}
		types[i] = v.Type()
		rows[i] = ops.Reshape(c.b, part, ir.N(1), ir.N(-1))
	}
	x := rows[0]
	if len(rows) > 1 {
		x = ops.Concatenate(c.b, 1, rows...)
	}
	for i, whole := range c.gather(x, types) {
		c.m.Set(params[i], whole)
	}
}
