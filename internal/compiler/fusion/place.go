package fusion

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
)

// placer assigns tensors to values, and adds groups that copy what no group can store where it
// must be.
type placer struct{ *Partition }

// place assigns all tensors, and lists those of outputs and states in the partition.
func (x placer) place() {
	x.leaves()
	x.results()
}

// leaves assigns a tensor to every port and to every constant that is no
// literal. The ports of a loop body already have theirs.
func (x placer) leaves() {
	ports := x.Graph.Ports()
	for i := range ports {
		if _, ok := x.decided.literals[ports[i].Value]; ok || x.tensors[ports[i].Value] != nil {
			continue
		}
		t := x.newTensor(ports[i].Name, ports[i].Value.Type())
		t.Port = &ports[i]
		x.tensors[ports[i].Value] = t
	}
	for _, n := range x.Graph.Nodes() {
		a, ok := n.Attrs().(*ir.ConstantAttrs)
		if !ok || !x.decided.stored(n) {
			continue
		}
		t := x.newTensor("constant"+strconv.Itoa(n.ID()), a.Type)
		t.Constant = a.Data
		x.tensors[n.Result(0)] = t
	}
}

// results assigns a tensor to every result that another group or an output
// reads, and places states and outputs.
func (x placer) results() {
	needed := map[ir.Value]bool{}
	for _, g := range x.groups.list {
		for _, v := range g.loadedValues() {
			needed[v] = true
		}
	}
	for _, o := range x.Graph.Outputs() {
		needed[o.Value] = true
	}
	if x.parent == nil {
		x.passedOutputs()
	}
	x.stackedOutputs()
	x.newStates()
	x.joinResults(needed)
	for _, g := range x.groups.list {
		for _, part := range g.HorizontalParts() {
			for _, m := range part.Members {
				x.member(m, needed)
			}
		}
		x.orderResults(g)
	}
	for i, o := range x.Graph.Outputs() {
		if x.parent == nil && !o.State && x.Outputs[i] == nil {
			x.Outputs[i] = x.tensors[o.Value]
		}
	}
	x.copyBack()
}

// member assigns tensors to the results of a member that are needed outside its group.
func (x placer) member(m *Member, needed map[ir.Value]bool) {
	for i, v := range m.Node.Results() {
		if !needed[v] {
			continue
		}
		if x.tensors[v] == nil {
			x.tensors[v] = x.newTensor(resultName(v), v.Type())
		}
		m.Store[i] = x.tensors[v]
	}
}

// resultName returns a name for the tensor of a result, from its node.
func resultName(v ir.Value) string {
	n := v.Node()
	name := string(n.Op()) + strconv.Itoa(n.ID())
	if n.Label() != "" {
		name = identifier(n.Label()) + "_" + name
	}
	if n.NumResults() > 1 {
		name += "_" + strconv.Itoa(v.Index())
	}
	return name
}

// newStates assigns a tensor to the new value of each state: that of the old value, or
// one of its own that copyBack copies at the end. The new value of a carry is stored where
// the next step reads the old one.
func (x placer) newStates() {
	var aside []Copy
	for _, s := range x.states.pairs {
		if s.old == s.new || x.groups.of[s.new.Node()] != nil {
			continue
		}
		// A literal, an input or another state, which may be overwritten before
		// copyBack: copy it first.
		next := x.nextOf(s)
		aside = append(aside, x.copyOf(s.new, next))
		x.Pairs = append(x.Pairs, Pair{x.tensors[s.old], next})
	}
	x.groups.addCopies(aside)
	for _, s := range x.states.pairs {
		if s.old == s.new || x.groups.of[s.new.Node()] == nil {
			continue
		}
		old := x.tensors[s.old]
		if x.states.inPlace[s.old] {
			x.tensors[s.new] = old
		} else if x.tensors[s.new] == nil {
			x.tensors[s.new] = x.nextOf(s)
		}
		x.Pairs = append(x.Pairs, Pair{old, x.tensors[s.new]})
	}
	x.copyFirst()
}

// nextOf returns the tensor of a new value that is not written in place.
func (x placer) nextOf(s newValue) *Tensor {
	if s.next != nil {
		return s.next
	}
	return x.newTensor(s.name+"_next", s.new.Type())
}

// copyFirst makes groups that update states in place depend on the copies of the old values.
func (x placer) copyFirst() {
	writer := map[*Tensor]*Group{}
	for _, s := range x.states.pairs {
		if x.states.inPlace[s.old] {
			writer[x.tensors[s.old]] = x.groups.of[s.new.Node()]
		}
	}
	for _, g := range x.groups.list {
		for _, part := range g.HorizontalParts() {
			for _, c := range part.Copies {
				if w := writer[c.From]; w != nil {
					x.groups.wait(w, g)
				}
			}
		}
	}
}

// stackedOutputs makes the groups of a loop body write stacked outputs directly to their
// slices. A value that no group computes, or that is stacked twice, is copied.
func (x placer) stackedOutputs() {
	for _, s := range x.stacked {
		switch {
		case x.groups.of[s.v.Node()] == nil:
			x.groups.addCopies([]Copy{x.copyOf(s.v, s.t)})
		case x.tensors[s.v] == nil:
			x.tensors[s.v] = s.t
		default:
			for _, g := range x.groups.addCopies([]Copy{{From: x.tensors[s.v], To: s.t}}) {
				x.groups.wait(g, x.groups.of[s.v.Node()])
			}
		}
	}
}

// copyBack adds the copies of the states that are not updated in place, after everything
// else. The carries of a scan are double-buffered instead, see [Loop].
func (x placer) copyBack() {
	if x.doubleBuffered {
		return
	}
	var copies []Copy
	for _, pair := range x.Pairs {
		if pair.Old != pair.New {
			copies = append(copies, Copy{From: pair.New, To: pair.Old})
		}
	}
	if len(copies) == 0 {
		return
	}
	gate := x.groups.gate(slices.Clone(x.groups.list))
	for _, g := range x.groups.addCopies(copies) {
		x.groups.wait(g, gate)
	}
}

// passedOutputs sets Outputs and adds copies for plain outputs that no group computes, such as an
// input passed through.
func (x placer) passedOutputs() {
	var copies []Copy
	x.Outputs = make([]*Tensor, len(x.Graph.Outputs()))
	for i, o := range x.Graph.Outputs() {
		if !o.State && x.groups.of[o.Value.Node()] == nil {
			x.Outputs[i] = x.newTensor(o.Name, o.Value.Type())
			copies = append(copies, x.copyOf(o.Value, x.Outputs[i]))
		}
	}
	x.groups.addCopies(copies)
}
