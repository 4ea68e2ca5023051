package kernel

import (
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Program is a graph cut into groups: each group becomes one kernel, or a few.
// Nothing in it depends on a target; backends with code of their own for a
// group (a matrix library, the CPU) read it at this level.
type Program struct {
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

	parent     *Program // the program that a node of which runs this one
	repeated   bool     // it is run in rounds that are counted
	turns      bool     // its carries change places, see Loop
	options    Options
	plan       *plan
	simplifier *scalar.Simplifier // of positions in the spaces of nodes
	spaces     map[*ir.Node]*nodeSpace
	groups     []*Group
	groupOf    map[*ir.Node]*Group
	readers    map[ir.Value]int    // how many stored nodes and outputs need a value
	after      map[*Group][]*Group // what must come before a group beyond what it reads
	tensors    map[ir.Value]*Tensor
	byID       map[int]*Tensor // shared with the programs of loops
	pairs      []newValue      // states, or the carries of a loop
	oldOf      map[ir.Value]ir.Value
	aside      map[ir.Value]bool        // states, by their old values, that no group overwrites
	inPlace    map[ir.Value]bool        // those that a group does overwrite
	allChecked *Group                   // the gate behind all checks
	stacked    []stackedOutput          // outputs of a loop's body that are kept of each step
	given      map[ir.Value]scalar.Expr // ports of a loop's body that are literals outside
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
	// Cache holds the kernels of programs compiled before, nil for a new one.
	Cache *Cache
	// Branch is how much work, counted in elements, the two branches of a cond must
	// hold for a program to run only the one that is taken; where they hold less
	// both are computed and the results selected, which fuses with what is around. 0
	// never runs one alone, unless it holds a loop of unknown length.
	Branch int
	// Unfused makes a group of every node that is no literal: what fusion is
	// checked against.
	Unfused bool
}

// DefaultOptions fit WebGPU's default limits: 8 storage buffers, one of them
// the status word.
var DefaultOptions = Options{Tensors: 7, FirstCode: 1}

// Item is a step of a program.
type Item interface {
	// Reads and Writes are the tensors an item touches.
	Reads() []*Tensor
	Writes() []*Tensor
}

// Tensor is a value in memory, dense and row-major.
type Tensor struct {
	ID    int
	Name  string
	DType ir.DType
	Dims  []int
	// Port is set for values that come from outside.
	Port *ir.Port
	// Constant is set for literals.
	Constant []byte
	// Outer is set in the body of a loop for a value of the program around it.
	// With PerStep it is the slice of Outer that belongs to the loop's count,
	// from the end with Reverse.
	Outer            *Tensor
	PerStep, Reverse bool
}

// Root returns the tensor that holds the memory of t.
func (t *Tensor) Root() *Tensor {
	for t.Outer != nil {
		t = t.Outer
	}
	return t
}

// sliced reports whether t is a slice that goes from place to place with a loop.
func (t *Tensor) sliced() bool {
	for ; t.Outer != nil; t = t.Outer {
		if t.PerStep {
			return true
		}
	}
	return false
}

// Type returns the type of the values.
func (t *Tensor) Type() ir.Type { return ir.Type{DType: t.DType, Shape: ir.Dims(t.Dims...)} }

// Len returns the number of elements.
func (t *Tensor) Len() int { return product(t.Dims) }

// Bytes returns the storage the tensor takes on a device, where booleans are
// 32-bit words.
func (t *Tensor) Bytes() int { return t.Len() * DeviceSize(t.DType) }

// Pair says that the new value of a state (or of a loop's carry) is to end up
// where its old value is. New is Old itself where a group writes it in place.
type Pair struct{ Old, New *Tensor }

// Kind is the shape of a group, which decides how it can be scheduled.
type Kind uint8

// The kinds of group.
const (
	// MapKind computes each element by itself.
	MapKind Kind = iota
	// ReduceKind combines along inner coordinates, in one or more stages that
	// may read each other, for each point of the outer ones.
	ReduceKind
	// ContractKind is a sum of products, with an epilogue.
	ContractKind
	// PrefixKind is a running combination along one axis.
	PrefixKind
	// ScatterKind stores updates where data says.
	ScatterKind
	// SortKind finds the order of elements along one axis.
	SortKind
	// AttendKind is attention, forward or backward.
	AttendKind
	// ControlKind is a node that runs graphs. Its group becomes a [Loop], a [Branch]
	// or a [While].
	ControlKind
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	return [...]string{"map", "reduce", "contract", "prefix", "scatter", "sort", "attend", "control"}[k]
}

// Group is a set of nodes computed together.
type Group struct {
	Kind Kind
	// Outer are the sizes of the coordinates that every element has. Axes of
	// size 1 have no coordinate.
	Outer []int
	// Inner are the sizes of the coordinates that the reductions of a
	// [ReduceKind] group run over.
	Inner []int
	// Members are the nodes in order, operands first.
	Members []*Member
	// Parts are the groups that a horizontal fusion put side by side; Members
	// is empty then.
	Parts []*Group
	// Copies are values to be stored once more, one element for each point of
	// the outer coordinates.
	Copies []Copy

	program *Program
	alone   bool // each row of a reduction is one thread's
	loads   []*Tensor
	touch   footprint
	place   int      // in the program's groups, while they are merged
	users   []*Group // those that a sweep has met and that read the group
	into    *Group   // what the group has been merged into
}

// Cut returns a group of some of the parts of g.
func (g *Group) Cut(parts []*Group) *Group {
	if len(parts) == 1 {
		return parts[0]
	}
	return &Group{Kind: g.Kind, Parts: parts, program: g.program}
}

// Copy stores what is in a tensor already, or a literal, in another tensor.
type Copy struct {
	From    *Tensor // nil for a literal
	Literal scalar.Expr
	To      *Tensor
}

// Member is a node of a group.
type Member struct {
	Node *ir.Node
	// Reduced marks the reductions of a [ReduceKind] group; their results are
	// had once for each point of the outer coordinates.
	Reduced bool
	// Coord gives for each axis of the results the coordinate of the group it
	// runs along (outer ones first, then inner), -1 for axes of size 1.
	Coord []int
	// Inner gives, for a reduction, the coordinate that each axis of its
	// reduced space runs along, -1 for axes of size 1.
	Inner []int
	// Store holds the tensor of each result that is kept, nil for others.
	Store []*Tensor
}

// pointwise reports whether the member has an element for each point of the inner
// coordinates too.
func (m *Member) pointwise(outer int) bool {
	for _, c := range m.Coord {
		if c >= outer {
			return true
		}
	}
	return false
}

// weight is the number of simple operations in the expressions of the members.
func (g *Group) weight() int {
	w := 0
	for _, m := range g.Members {
		w += g.program.plan.weight[m.Node.ID()]
	}
	return w
}

// Reads returns the tensors that the group loads, each once.
func (g *Group) Reads() []*Tensor { return g.loads }

// Writes returns the tensors that the group stores.
func (g *Group) Writes() []*Tensor {
	var out []*Tensor
	for _, p := range g.Parts {
		out = append(out, p.Writes()...)
	}
	for _, m := range g.Members {
		for _, t := range m.Store {
			if t != nil {
				out = append(out, t)
			}
		}
	}
	for _, c := range g.Copies {
		out = append(out, c.To)
	}
	return out
}

// Name returns a short name made of the group's ops, for labels and kernels.
func (g *Group) Name() string {
	if len(g.Parts) > 0 {
		return g.Parts[0].Name() + "_x" + strconv.Itoa(len(g.Parts))
	}
	var words []string
	if len(g.Copies) > 0 {
		words = append(words, "copy")
	}
	for _, m := range g.Members {
		w := string(m.Node.Op())
		if m.Node.Label() != "" {
			w = m.Node.Label()
		}
		if len(words) == 0 || words[len(words)-1] != w {
			words = append(words, w)
		}
	}
	if len(words) > 4 {
		words = append(words[:2], words[len(words)-2:]...)
	}
	return identifier(g.Kind.String() + "_" + strings.Join(words, "_"))
}

// identifier keeps lower-case letters, digits and single underscores.
func identifier(s string) string {
	var sb strings.Builder
	last := byte('_')
	for _, c := range []byte(strings.ToLower(s)) {
		if c < '0' || c > '9' && c < 'a' || c > 'z' {
			c = '_'
		}
		if c != '_' || last != '_' {
			sb.WriteByte(c)
		}
		last = c
	}
	return strings.TrimSuffix(sb.String(), "_")
}

// Loop is a scan: its body runs Count times.
type Loop struct {
	Node  *ir.Node
	Count int
	Body  *Program
	// Swaps are pairs of places that change roles with every step: what the body
	// reads and writes of one it reads and writes of the other in steps of odd
	// number. So carries need not be copied back.
	Swaps [][2]*Tensor

	reads, writes []*Tensor
}

// Control is an item that runs programs of its own.
type Control interface {
	Item
	Programs() []*Program
}

// Branch is a cond: it runs Taken[0] where Pred is true, Taken[1] where it is
// not. Both write the same tensors.
type Branch struct {
	Node  *ir.Node
	Pred  *Tensor
	Taken [2]*Program

	reads, writes []*Tensor
}

// While is a loop of unknown length: again and again Cond writes Pred, and where
// that is true Body runs; at most Max times, unless that is 0.
type While struct {
	Node       *ir.Node
	Max        int
	Pred       *Tensor
	Cond, Body *Program

	reads, writes []*Tensor
}

// Programs returns the body.
func (l *Loop) Programs() []*Program { return []*Program{l.Body} }

// Programs returns the two branches.
func (x *Branch) Programs() []*Program { return x.Taken[:] }

// Programs returns condition and body.
func (w *While) Programs() []*Program { return []*Program{w.Cond, w.Body} }

// Reads returns the predicate and the tensors that a branch may read.
func (x *Branch) Reads() []*Tensor { return x.reads }

// Writes returns the results.
func (x *Branch) Writes() []*Tensor { return x.writes }

// Reads returns the tensors that condition and body read.
func (w *While) Reads() []*Tensor { return w.reads }

// Writes returns the carries and the predicate.
func (w *While) Writes() []*Tensor { return w.writes }

// Reads returns the tensors of the outer program that the body reads.
func (l *Loop) Reads() []*Tensor { return l.reads }

// Writes returns the tensors of the outer program that the body writes: the
// carries, and the stacked results slice by slice.
func (l *Loop) Writes() []*Tensor { return l.writes }

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// squeeze returns the sizes other than 1.
func squeeze(dims []int) []int {
	var out []int
	for _, d := range dims {
		if d != 1 {
			out = append(out, d)
		}
	}
	return out
}
