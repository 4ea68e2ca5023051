package cpu

import (
	"math/bits"
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// level is how often a value is computed.
type level uint8

const (
	atStart    level = iota // constants: once
	perRun                  // run scalars and loop counters: for each run of the group
	perRow                  // outer coordinates that are uniform in a block
	perBlock                // outer coordinates that differ by lane; values between stages
	perInner                // inner coordinates that are uniform in a block
	perElement              // inner coordinates that differ by lane
)

// nest is the lowered loop nest of a group: rows of outer points, split into blocks; for each
// block the phases in order, each of which may loop over the inner points.
//
// A block is vectorised over outer points or over inner points (wideInner), whichever makes loads
// contiguous. In the first case each lane is an outer point and the inner points are visited
// serially. In the second a block is one outer point and its lanes are inner points, merged at the
// end.
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
	rowKernel []instr // one kernel for all rows, which replaces the phases
	failures  []rowFailure
	cost      float64 // estimated nanoseconds of one worker
}

// phase is a part of a block's work: code for the outer points, then a loop over the inner
// points with accumulators.
type phase struct {
	block        []instr
	loop         bool
	inner        []instr
	element      []instr
	accumulators []accumulator
	merges       []*laneMerge
	// compensated are the sums that are split into blocks: carry adds a block's sum to
	// those before and clears it; total moves the compensated total to the accumulators.
	compensated  []compensated
	carry, total []instr
	// tail, if not empty, replaces element for fewer than even inner points.
	tail []instr
	even int
	sets int // independent copies of the accumulators in a kernel, 0 without a kernel
	// finish, if not empty, replaces merges: the accumulators then have as many lanes as
	// a vector register.
	finish []instr
	// whole means that element handles all inner points in one call and initialises the
	// accumulators itself.
	whole bool
	// sweeps means that one call of element does several rows of inner points.
	sweeps bool
	// maxPoints is the maximum number of inner points for one call of the code.
	maxPoints int
	// unrolled, if not empty, does the work of inner and element for factor inner points,
	// where lanes are outer points.
	unrolled []instr
	factor   int
}

// accumulator is a register carried through the loop over inner points.
type accumulator struct {
	acc  register
	init scalar.Value
}

// compensated is a sum of f32 that is split into blocks: acc sums the current block, sum the
// blocks before, and err their rounding errors.
type compensated struct{ acc, sum, err register }

// laneMerge combines the accumulators of one reduction with those of other lanes, where the
// lanes are inner points.
type laneMerge struct {
	acc, other []register
	code       []instr
}

// environment is the state that the code of all groups of an entry shares at run time.
type environment struct {
	counters [maxDepth]int32
	scalars  []scalar.Value
	status   status
	spaces   spaces
	kernels  jit.Set
	epoch    uint64 // counts runs of groups
}

// maxDepth is the maximum nesting of loops.
const maxDepth = 16

// units returns the number of independent pieces of work: rows where a kernel does whole rows,
// else blocks.
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

// instr is one instruction of a nest, on virtual registers.
type instr struct {
	kind   opKind
	node   scalar.Expr // the operation of opApply and opCheck
	dst    register
	args   [3]register
	scalar bool // on lane 0 only: operands and result are uniform
	// uniform marks a select by a uniform condition between values that differ by lane.
	uniform bool
	buf     *buffer  // of opLoad and opStore
	at      *address // of opLoad and opStore
	// parts means that a load of complex numbers is of the part that node is, and a store of both parts.
	parts bool
	fused *fused
}

type opKind uint8

const (
	opApply opKind = iota
	opConst        // the value of node in all lanes
	opSplat        // lane 0 of args[0] in all lanes
	opMove         // args[0]
	opLoad
	opStore // args[0]; where parts is set, complex numbers of args[0] and args[1]
	opCounter
	opScalar
	opCheck // fails with code node.Ref where args[0] is 0
	opFused // a kernel
)

// value is a compiled expression.
type value struct {
	reg   register
	level level
	wide  bool
	loop  int // at levels perInner and perElement, the loop that computes it
}

// signature identifies equal instructions, for common subexpression elimination.
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
	chunk    int // units of one chunk
	chunks   int
}

// chunkCost is the least nanoseconds of a chunk: a shorter one does not repay waking another
// core.
const chunkCost = 15_000

// newNestStep compiles the kernels of a nest and shares out its work. With shared, any worker may
// do a single chunk.
func newNestStep(n *nest, env *environment, shared bool) *nestStep {
	n.fuse(&env.kernels)
	n.allocateRegisters()
	n.shareBlocks(workers())
	s := &nestStep{n: n, env: env}
	units := n.units()
	chunks := min(units, int(n.work()/chunkCost), 8*workers())
	s.chunk = units
	if chunks > 1 {
		s.chunk = (units + chunks - 1) / chunks
	}
	if units > 0 {
		s.chunks = (units + s.chunk - 1) / s.chunk
	}
	count := 1
	if shared || s.chunks > 1 {
		count = workers()
	}
	for range count {
		s.machines = append(s.machines, newMachine(n, env))
	}
	return s
}

// farRate is the number of bytes per nanosecond that a core reads or writes in memory.
const farRate = 25

// work returns the nanoseconds of one worker, whose memory may take longer than its code.
func (n *nest) work() float64 {
	bytes, points := 0, n.outer.points()*n.inner.points()
	for _, b := range n.buffers() {
		bytes += min(b.elems, points) * b.dtype.Size()
	}
	if bytes < nearBytes {
		return n.cost
	}
	return max(n.cost, float64(bytes)/farRate)
}

// shareBlocks makes the blocks of a reduction shorter where they are fewer than the workers, as in sums over all positions of
// some channels: of whole vectors, and the last one of no less than one. Lanes are independent, so that results stay. The length is
// a power of two where kernels access runs, see [instr.runs].
func (n *nest) shareBlocks(workers int) {
	s, width := &n.outer, jit.Width()
	wanted := min(int(n.work()/chunkCost), workers)
	loops := slices.ContainsFunc(n.phases, func(p *phase) bool { return p.loop })
	if n.wideInner || len(n.rowKernel) > 0 || !loops || s.points() == 0 || n.units() >= wanted {
		return
	}
	vectors, blocks := (s.row+width-1)/width, (wanted+s.rows-1)/s.rows
	block := (vectors + blocks - 1) / blocks * width
	for block < s.row && (s.row-1)%block+1 < width {
		block += width
	}
	if n.hasRuns() {
		block = 1 << (bits.Len(uint(block)) - 1)
	}
	s.block = min(s.block, block)
}

// hasRuns reports whether a kernel accesses runs.
func (n *nest) hasRuns() bool {
	found := false
	n.eachList(func(code *[]instr) {
		for _, in := range *code {
			found = found || in.fused != nil && slices.ContainsFunc(in.fused.arrays, func(a fusedArray) bool { return a.access != nil && a.access.at.run > 0 })
		}
	})
	return found
}

func (s *nestStep) run(r *runner) {
	s.env.epoch++
	r.job.run(s, s.chunks)
}

func (s *nestStep) do(worker, chunk int) {
	first := chunk * s.chunk
	s.machines[worker].runUnits(first, min(first+s.chunk, s.n.units()))
}
