package cpu

import (
	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// level is how often a value is computed.
type level uint8

const (
	atStart    level = iota // a constant: once
	perRun                  // run scalars, counters of loops: each time the group runs
	perRow                  // the outer coordinates that blocks do not run along
	perBlock                // outer coordinates along a block; values between stages
	perInner                // inner coordinates that blocks do not run along
	perElement              // inner coordinates along a block
)

// nest is how a group runs: rows of outer points, cut into blocks; for each
// block the phases in turn, each of which may go through the inner points.
//
// Blocks run either along outer points, so that each lane of a register is an
// outer point and inner points come one after the other, or along inner points
// (wideInner), so that a block is one outer point and its lanes are inner ones.
// Lanes cost least when what they load lies side by side.
type nest struct {
	name      string
	outer     space
	inner     space
	wideInner bool
	sizes     sizes
	starts    []instr // level atStart
	runs      []instr
	rows      []instr
	phases    []*phase
	rowKernel []instr // one kernel for all rows, in place of phases
	cost      float64 // nanoseconds for one worker, roughly
}

// phase is a part of a block: code for the outer points, then a loop over the
// inner ones with running values.
type phase struct {
	block        []instr
	loop         bool
	inner        []instr
	element      []instr
	accumulators []accumulator
	merges       []*laneMerge
	// carried are the sums that go by blocks: carry adds what a block came to, and what
	// rounding leaves out of that, and begins another; total makes running values of both.
	compensated  []compensated
	carry, total []instr
	// tail, where there is any, is element for fewer inner points than even.
	tail []instr
	even int
	sets int // of running values that a kernel has, 0 where it has none
	// finish, where there is any, is done instead of combining: running values
	// are then kept in as many lanes as a kernel computes at once.
	finish []instr
	// whole says that the code goes through all inner points at once, and sets
	// the running values.
	whole bool
	// stretch is how many inner points the code can take at once.
	maxPoints int
	// several, where there is any, does what inner and element do for so many inner
	// points as times says, where lanes are outer points.
	unrolled []instr
	factor   int
}

// accumulator is a value that goes through a loop over inner points.
type accumulator struct {
	acc  register
	init scalar.Value
}

// compensated is a running sum of f32 with that of the blocks before, and what rounding left
// out of it.
type compensated struct{ acc, sum, err register }

// laneMerge merges running values with those of other lanes, where lanes are
// inner points.
type laneMerge struct {
	acc, other []register
	code       []instr
}

// environment is what the code of a program's groups refers to.
type environment struct {
	counters [maxDepth]int32
	scalars  []scalar.Value
	status   status
	spaces   spaces
	kernels  jit.Set
	epoch    uint64 // counts runs of groups
}

// maxDepth is the greatest depth of loops.
const maxDepth = 16

// units is how many pieces the nest has, which may run in any order: rows where
// there is a kernel for them, else blocks.
func (n *nest) units() int {
	if len(n.rowKernel) > 0 {
		return n.outer.rows
	}
	return n.outer.rows * n.outer.blocks()
}

// constantValue returns the value of a constant expression.
func constantValue(e scalar.Expr) (scalar.Value, error) {
	v, err := scalar.Eval(e, &scalar.Env{})
	if err != nil {
		return v, ir.Errorf(ir.ErrGraph, "the first value of a reduction is not constant: %v", err)
	}
	return v, nil
}

// instr is one instruction of a nest, still without the registers of a worker.
type instr struct {
	kind opKind
	node scalar.Expr // for apply and check: the operation
	dst  register
	args [3]register
	one  bool // of one lane, however many the block has
	// uniform marks a select whose condition has one lane, unlike its result.
	uniform bool
	buf     *buffer  // for load and store
	at      *address // for load and store
	fused   *fused
}

type opKind uint8

const (
	opApply opKind = iota
	opConst        // the value of node in all lanes
	opSplat        // lane 0 of args[0] in all lanes
	opMove         // args[0]
	opLoad
	opStore // args[0]
	opCounter
	opScalar
	opCheck // where args[0] is 0, the code node.Ref
	opFused // many as a kernel
)

// value is what an expression has become.
type value struct {
	reg   register
	level level
	wide  bool
	loop  int // for levels perInner and perElement: the loop it is computed in
}

// signature is what two equal instructions have in common.
type signature struct {
	op     scalar.Op
	dtype  ir.DType
	bits   uint64
	ref    int
	name   string
	args   [3]register
	splat  bool
	buffer *buffer
}

// nestStep runs a nest on all cores.
type nestStep struct {
	n        *nest
	env      *environment
	machines []*machine
	chunk    int // blocks of one chunk
	chunks   int
}

// chunkCost is the nanoseconds that a chunk should take at least: less is not
// worth waking another core for.
const chunkCost = 15_000

func newNestStep(n *nest, env *environment) *nestStep {
	n.fuse(&env.kernels)
	n.allocateRegisters()
	s := &nestStep{n: n, env: env}
	units := n.units()
	chunks := min(units, int(n.cost/chunkCost), 8*workers())
	s.chunk = units
	if chunks > 1 {
		s.chunk = (units + chunks - 1) / chunks
	}
	if units > 0 {
		s.chunks = (units + s.chunk - 1) / s.chunk
	}
	count := 1
	if s.chunks > 1 {
		count = workers()
	}
	for range count {
		s.machines = append(s.machines, newMachine(n, env))
	}
	return s
}

func (s *nestStep) run(r *runner) {
	s.env.epoch++
	if s.chunks == 1 {
		s.do(0, 0)
		return
	}
	if s.chunks > 1 {
		r.job.run(s, s.chunks)
	}
}

func (s *nestStep) do(worker, chunk int) {
	first := chunk * s.chunk
	s.machines[worker].runUnits(first, min(first+s.chunk, s.n.units()))
}
