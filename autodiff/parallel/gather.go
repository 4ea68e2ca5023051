package parallel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// visit is a part of a graph in which a block of parameters is used, and the ID of its first node.
type visit struct{ block, first int }

// gathers makes whole parameters of parts before they are used.
type gathers struct {
	blocks [][]ir.Value // the ports of each block
	visits []visit      // in order of their first nodes
	next   int          // the first that is not gathered
	known  []bool       // by block: it was gathered before
	ahead  int
	gather func(params []ir.Value, again bool)
}

// keptBlocks is the number of blocks that remain in use while others are: a parameter of the block before
// may be used once more in the next, and those of the last layers are used again soon, when the backward
// pass begins.
const keptBlocks = 2

// findGathers divides the parameters of a graph that nodes use, nil for the outputs, into blocks of some
// bytes by their first use, and finds when they are used. gather makes some whole: again if they were
// before, so that it is not merged with the earlier one.
func findGathers(graph *ir.Graph, uses func(n *ir.Node) []ir.Value, bucket, ahead int, gather func(params []ir.Value, again bool)) *gathers {
	g := &gathers{ahead: ahead, gather: gather}
	blockOf, open, bytes := map[ir.Value]int{}, -1, 0
	var recent []int // blocks in use, the last one last
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

// before gathers what is due before a node is copied, nil after the last: its own block and those ahead.
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

// uses returns the divided parameters that a node that is copied uses whole, those of outputs for nil.
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

// gatherParams makes parameters whole. Those that are large are gathered alone, into the memory that their
// readers use; the others, which are copied, together, those of one element type. A later gather is not
// merged with an earlier one.
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
