package optim

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// checkNoise returns an error of kind [ir.ErrGraph] if the loss depends on a random op with the
// same key at every step: dropout would drop the same elements each time and train a smaller
// network.
func (o Options) checkNoise(loss *ir.Graph, lossName string) error {
	out, ok := loss.Output(lossName)
	if o.ConstantKeys || !ok {
		return nil
	}
	varies := map[*ir.Node]bool{}
	for _, p := range loss.Ports() {
		varies[p.Value.Node()] = p.Kind == ir.InputPort || updates(loss, p)
	}
	n := constantKeyNode(loss.Nodes(), varies, dependencies(loss, out.Value))
	if n == nil {
		return nil
	}
	return n.Fail(ir.Errorf(ir.ErrGraph, "it draws the same numbers in every step, as its key is a constant: derive the key from an input or a changing state, for example by ops.FoldIn, or set optim.Options.ConstantKeys"))
}

// updates reports whether a graph updates a state or parameter with a new value.
func updates(g *ir.Graph, p ir.Port) bool {
	return slices.ContainsFunc(g.Outputs(), func(o ir.Output) bool { return o.State && o.Name == p.Name && o.Value != p.Value })
}

// dependencies returns the nodes that a value depends on.
func dependencies(g *ir.Graph, v ir.Value) map[*ir.Node]bool {
	on := map[*ir.Node]bool{v.Node(): true}
	for _, n := range slices.Backward(g.Nodes()) {
		for _, in := range n.Inputs() {
			on[in.Node()] = on[in.Node()] || on[n]
		}
	}
	return on
}

// constantKeyNode returns the first of the nodes in counts that draws random numbers with a constant
// key. It adds to varies, which initially holds the ports that change.
func constantKeyNode(nodes []*ir.Node, varies, counts map[*ir.Node]bool) *ir.Node {
	for _, n := range nodes {
		for _, in := range n.Inputs() {
			varies[n] = varies[n] || varies[in.Node()]
		}
		if counts != nil && !counts[n] {
			continue
		}
		if keys := keysOf(n); keys != nil && !slices.ContainsFunc(keys, func(k ir.Value) bool { return varies[k.Node()] }) {
			return n
		}
		for _, sub := range n.Subgraphs() {
			if found := constantKeyInside(n, sub, varies); found != nil {
				return found
			}
		}
	}
	return nil
}

// constantKeyInside is constantKeyNode for a subgraph of a node. A value carried by a loop varies if
// its value at a later step does.
func constantKeyInside(n *ir.Node, sub *ir.Graph, varies map[*ir.Node]bool) *ir.Node {
	ports := make([]bool, len(sub.Ports()))
	front := len(n.Inputs()) - len(ports) // a predicate, say; bodies of several elements have more ports
	for i := range ports {
		ports[i] = varies[n] && (front < 0 || varies[n.Input(front+i).Node()])
	}
	for {
		inside := map[*ir.Node]bool{}
		for i, p := range sub.Ports() {
			inside[p.Value.Node()] = ports[i]
		}
		found, grown := constantKeyNode(sub.Nodes(), inside, nil), false
		for i, first := 0, firstCarry(n); first >= 0 && i < min(len(sub.Outputs()), len(ports)-first); i++ {
			if inside[sub.Outputs()[i].Value.Node()] && !ports[first+i] {
				ports[first+i], grown = true, true
			}
		}
		if !grown {
			return found
		}
	}
}

// firstCarry returns the index of the first carried operand of a loop, -1 for other nodes.
func firstCarry(n *ir.Node) int {
	switch a := n.Attrs().(type) {
	case *ops.ScanAttrs:
		return a.Consts
	case *ops.WhileAttrs:
		return a.Consts
	}
	return -1
}

// keysOf returns the values that determine the random numbers of a node; nil if it draws none or
// only derives keys.
func keysOf(n *ir.Node) []ir.Value {
	switch a := n.Attrs().(type) {
	case *ops.RandomBitsAttrs:
		if !a.Pairs {
			return n.Inputs()
		}
		return nil
	case *ops.DropoutAttrs:
		if a.Rate == 0 {
			return nil
		}
	}
	i := slices.Index(n.Def().Operands, "key")
	if i < 0 || i >= len(n.Inputs()) || n.Input(i).DType() != ir.U32 {
		return nil
	}
	return []ir.Value{n.Input(i)}
}
