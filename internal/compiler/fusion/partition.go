package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Partition is a graph cut into groups: each group becomes one kernel, or a few.
// Nothing in it depends on a target; backends with code of their own for a
// group (a matrix library, the CPU) read it at this level.
type Partition struct {
	Graph *ir.Graph
	// Tensors are the values that live in memory, ports first.
	Tensors []*Tensor
	// Items are what to do, in order: each is a [*Group] or a [Control].
	Items []Item
	// Scalars are the rank-0 inputs, passed by value with every run.
	Scalars []ir.Port
	// Pairs tell where the new value of each state is stored.
	Pairs []Pair
	// Outputs are the tensors of the plain outputs, by their place in
	// Graph.Outputs (nil for state updates).
	Outputs []*Tensor
	// Checks are the nodes whose indices are checked on the device. The first
	// has the status code Options.FirstCode, the others the ones after it.
	Checks []*ir.Node

	parent     *Partition // the partition that a node of which runs this one
	repeated   bool       // it is run in rounds that are counted
	turns      bool       // its carries change places, see Loop
	options    Options
	decided    *decisions
	phases     []int              // by node ID, see findPhases
	entering   map[ir.Value]bool  // what later phases begin with
	simplifier *scalar.Simplifier // of positions in the spaces of nodes
	forms      *forms
	formOf     []int32      // by node ID, the number of its form
	spaces     []*nodeSpace // by the number of an expression
	groups     []*Group
	groupOf    map[*ir.Node]*Group
	readers    map[ir.Value]int    // how many stored nodes and outputs need a value
	after      map[*Group][]*Group // what must come before a group beyond what it reads
	tensors    map[ir.Value]*Tensor
	byID       map[int]*Tensor // shared with the partitions of loops
	pairs      []newValue      // states, or the carries of a loop
	oldOf      map[ir.Value]ir.Value
	aside      map[ir.Value]bool        // states, by their old values, that no group overwrites
	inPlace    map[ir.Value]bool        // those that a group does overwrite
	allChecked *Group                   // the gate behind all checks
	stacked    []stackedOutput          // outputs of a loop's body that are kept of each step
	given      map[ir.Value]scalar.Expr // ports of a loop's body that are literals outside
	words      map[string]scalar.Expr   // loads of literals that lie in memory, by their keys
}

// newValue is the value that a state or a carry has after a run or a step.
type newValue struct {
	old, new ir.Value
	name     string
	next     *Tensor // where a carry goes that is not written in place
}

// stackedOutput is an output of a loop's body with its slice of the whole.
type stackedOutput struct {
	v ir.Value
	t *Tensor
}

// Options steer [Build].
type Options struct {
	// Tensors is how many tensors a kernel can bind. No group has more, other
	// than one with parts side by side, which can be cut between them, and one
	// of a single node of so many operands.
	Tensors int
	// FirstCode is the status code of the first check.
	FirstCode int
	// Branch is how much work, counted in elements, the two branches of a cond must
	// hold for a partition to run only the one that is taken; where they hold less
	// both are computed and the results selected, which fuses with what is around. 0
	// never runs one alone, unless it holds a loop of unknown length.
	Branch int
	// TensorCores says that products are left to tensor cores, which take operands
	// as they lie in memory, and beside which memory is what other work waits for: so
	// rounded operands are stored, what is made of a product is stored in its place,
	// and more is computed again in order to be read less.
	TensorCores bool
	// Long is from how many elements on positions are counted in I64, 0 for never, see
	// [loop.Caps]: then what has more than [loop.MaxElements] is refused.
	Long int
	// Policy tells what the target makes of reductions, [hardware.Unknown] if it is nil.
	Policy Policy
	// Unfused makes a group of every node that is no literal: what fusion is
	// checked against.
	Unfused bool
}

// DefaultOptions fit WebGPU's default limits: 8 storage buffers, one of them
// the status word.
var DefaultOptions = Options{Tensors: 7, FirstCode: 1}

// Pair says that the new value of a state (or of a loop's carry) is to end up
// where its old value is. New is Old itself where a group writes it in place.
type Pair struct{ Old, New *Tensor }
