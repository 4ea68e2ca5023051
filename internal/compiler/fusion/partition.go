package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Partition is a graph divided into groups, each of which becomes one kernel or a few.
// It depends on a target only through [Options]. Backends that run a group without a
// loop kernel (a matrix library, the CPU) start from this level.
type Partition struct {
	Graph *ir.Graph
	// Tensors are the values stored in memory, ports first.
	Tensors []*Tensor
	// Items are the steps in order: each is a [*Group] or a [Control].
	Items []Item
	// Scalars are the rank-0 inputs, passed by value with every run.
	Scalars []ir.Port
	// Pairs say where the new value of each state is stored.
	Pairs []Pair
	// Outputs are the tensors of the plain outputs, by index in Graph.Outputs (nil for
	// state updates).
	Outputs []*Tensor
	// Checks are the nodes whose indices are checked on the device, and the collectives if
	// Options.CollectivesFail is set. Their status codes count up from Options.FirstCode.
	Checks []*ir.Node

	parent         *Partition // the partition with the control-flow node that runs this one
	repeated       bool       // the body of a loop
	doubleBuffered bool       // its carries are double-buffered, see Loop
	options        Options
	simplifier     *scalar.Simplifier // of positions in the spaces of nodes
	forms          *nodeForms
	decided        *decisions
	spaces         *spaces
	groups         *groupGraph
	states         states // or the carries of a loop
	tensors        map[ir.Value]*Tensor
	byID           map[int]*Tensor          // shared with the partitions of loops
	stacked        []stackedOutput          // outputs of a loop body that are kept for each step
	given          map[ir.Value]scalar.Expr // ports of a loop body that are literals outside
	words          map[string]scalar.Expr   // loads of literals stored in memory, by key
}

// stackedOutput is an output of a loop body with its slice of the stacked result.
type stackedOutput struct {
	v ir.Value
	t *Tensor
}

// Options configures [Build].
type Options struct {
	// Tensors is the number of tensors a kernel can bind. Only a horizontal fusion,
	// which can be cut between its parts, and a single node with more operands may
	// exceed it.
	Tensors int
	// FirstCode is the status code of the first check.
	FirstCode int
	// Branch is the work, in elements, from which a cond runs only the branch taken.
	// Below it both branches are computed and the results selected, which fuses with
	// the surrounding nodes. At 0 both always are, unless a branch contains a loop of
	// unknown length.
	Branch int
	// TensorCores means that products use tensor cores, which load operands as stored
	// and leave other work bound by memory: rounded operands are stored, the epilogue
	// of a product replaces its result, and more values are recomputed to save reads.
	TensorCores bool
	// Long is the number of elements from which positions are I64, see [loop.Caps]. At
	// 0 values of more than [loop.MaxElements] elements are refused.
	Long int
	// CollectivesFail gives each collective a status code and has groups that write states wait for
	// all of them, for backends whose collectives set the status words.
	CollectivesFail bool
	// Prologues means that kernels of cached attention compute its queries and the new position of its caches, because
	// a launch for them takes longer.
	Prologues bool
	// Policy is the target's cost model; nil means [hardware.Unknown].
	Policy Policy
	// Unfused gives every node that is no literal a group of its own, as the reference
	// that fusion is tested against.
	Unfused bool
}

// DefaultOptions fit WebGPU's default limits: 8 storage buffers, one of them for the status words.
var DefaultOptions = Options{Tensors: 7, FirstCode: 1}

// Pair is a state or a loop carry: New must end up in Old. They are equal where a group
// updates the state in place.
type Pair struct{ Old, New *Tensor }

// Depth returns the number of loops around the partition.
func (p *Partition) Depth() int {
	n := 0
	for ; p != nil; p = p.parent {
		if p.repeated {
			n++
		}
	}
	return n
}
