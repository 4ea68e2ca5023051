package parallel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// visit is the part of a graph in which a block of parameters is used, by the IDs of its first and
// its last node.
type visit struct{ block, first, last int }

// gathers makes whole parameters of parts before they are used.
type gathers struct {
	c      *sharder
	blocks [][]ir.Value // the ports of each block
	visits []visit      // in order of their first nodes
	next   int          // the first that is not gathered
	known  []bool       // by block: it was gathered before
}

// keptBlocks is the number of blocks that remain in use while others are: a parameter of the block before
// may be used once more in the next, and those of the last layers are used again soon, when the backward
// pass begins.
const keptBlocks = 2

// findVisits divides the parameters into blocks by their first use, and finds when they are used.
func (c *sharder) findVisits() *gathers {
	g := &gathers{c: c}
	blockOf, open, bytes := map[ir.Value]int{}, -1, 0
	var recent []int // blocks in use, the last one last
	current := map[int]int{}
	use := func(v ir.Value, at int) {
		if _, ok := c.parts[v]; !ok {
			return
		}
		k, ok := blockOf[v]
		if !ok {
			size, _ := v.Shape().Size().Const()
			add := size * v.DType().Size()
			if open < 0 || bytes+add > c.bucket {
				open, bytes = len(g.blocks), 0
				g.blocks = append(g.blocks, nil)
			}
			k, bytes = open, bytes+add
			blockOf[v], g.blocks[k] = k, append(g.blocks[k], v)
		}
		if i := slices.Index(recent, k); i >= 0 {
			recent = append(slices.Delete(recent, i, i+1), k)
			g.visits[current[k]].last = at
			return
		}
		recent = append(recent, k)
		recent = recent[max(0, len(recent)-keptBlocks):]
		current[k] = len(g.visits)
		g.visits = append(g.visits, visit{k, at, at})
	}
	for _, n := range c.g.Nodes() {
		if c.region[n] {
			continue
		}
		for _, v := range n.Inputs() {
			use(v, n.ID())
		}
	}
	for _, o := range c.g.Outputs() {
		if !c.updatesDivided(o) {
			use(o.Value, len(c.g.Nodes()))
		}
	}
	g.known = make([]bool, len(g.blocks))
	return g
}

// before gathers what is due before a node is copied, nil after the last: its own block and those ahead.
func (g *gathers) before(n *ir.Node) {
	for ; g.next < len(g.visits); g.next++ {
		at := g.visits[max(0, g.next-g.c.ahead)].first
		if n != nil && at > n.ID() {
			return
		}
		g.gather(g.visits[g.next].block)
	}
}

// gather makes the parameters of a block whole. Those that are large are gathered alone, into the memory
// that their readers use; the others, which are copied, together, those of one element type. A later
// gather is not merged with an earlier one.
func (g *gathers) gather(block int) {
	c := g.c
	small := map[ir.DType][]ir.Value{}
	var order []ir.DType
	for _, v := range g.blocks[block] {
		size, _ := v.Shape().Size().Const()
		if size*v.DType().Size() >= min(FirstBucket, c.bucket/2) {
			g.together(block, []ir.Value{v})
			continue
		}
		if small[v.DType()] == nil {
			order = append(order, v.DType())
		}
		small[v.DType()] = append(small[v.DType()], v)
	}
	for _, d := range order {
		g.together(block, small[d])
	}
	g.known[block] = true
}

func (g *gathers) together(block int, params []ir.Value) {
	c := g.c
	rows, types := make([]ir.Value, len(params)), make([]ir.Type, len(params))
	for i, v := range params {
		part := c.parts[v]
		if g.known[block] {
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
