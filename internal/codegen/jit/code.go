package jit

import (
	"runtime"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/internal/simd"
)

// Code is compiled rows. It can run after [Set.Load].
type Code struct {
	arrays, spillBytes int
	width              int // lanes of an iteration
	long, overlap      bool
	entry              unsafe.Pointer
	memory             *asm.Code
}

// Set collects the code of a program. Equal kernels share it.
type Set struct {
	byText map[string]*Code
	texts  [][]byte
}

// Available reports whether kernels can be compiled: there is an encoder for the level in use,
// and the system permits executing generated code.
func Available() bool { return simd.Has != simd.Go && asm.Available() }

// Width returns the number of 32-bit lanes of a vector at the level in use.
func Width() int { return widthOf(simd.Has) }

// Width returns the number of lanes of a vector in the kernel.
func (k *Kernel) Width() int {
	if k.Long {
		return Width() / 2
	}
	return Width()
}

// MaxAccumulators returns the maximum number of accumulators of a kernel.
func MaxAccumulators() int { return maxAccumulators(simd.Has) }

// Compile adds rows to the set. [Available] must be true, and all values must come from the
// kernels' own methods.
func (s *Set) Compile(r *Rows) *Code {
	text, room := generate(r, simd.Has)
	if c := s.byText[string(text)]; c != nil {
		return c
	}
	if s.byText == nil {
		s.byText = map[string]*Code{}
	}
	c := &Code{spillBytes: room, width: r.Width(), long: r.Kernels[0].Long, overlap: r.Overlap}
	for _, k := range r.Kernels {
		c.arrays += k.arrays
	}
	c.arrays += len(r.Indirect)
	s.byText[string(text)] = c
	s.texts = append(s.texts, text)
	return c
}

// Load copies the code of the set to executable memory, which is freed once none of it is
// reachable, and empties the set.
func (s *Set) Load() error {
	if len(s.texts) == 0 {
		return nil
	}
	memory, err := asm.Load(s.texts...)
	if err != nil {
		return err
	}
	for i, text := range s.texts {
		c := s.byText[string(text)]
		c.entry, c.memory = memory.Entry(i), memory
	}
	*s = Set{}
	return nil
}

// Call is a code with its array arguments. Only one goroutine may run it at a time.
type Call struct {
	code  *Code
	args  []unsafe.Pointer
	spill []uint32
	rows  *int // remaining rows
	// lastLanes has a bit for each lane of the last vector that the one before does not have.
	lastLanes *uint64
}

// NewCall returns a call without arrays.
func (c *Code) NewCall() *Call {
	x := &Call{code: c, args: make([]unsafe.Pointer, firstArray+c.arrays), spill: make([]uint32, c.spillBytes/4+MaxLanes), rows: new(int), lastLanes: new(uint64)}
	x.args[1], x.args[2] = unsafe.Pointer(&x.spill[0]), unsafe.Pointer(x.rows)
	return x
}

// Set sets the address of an array.
func (c *Call) Set(array int, at unsafe.Pointer) { c.args[firstArray+array] = at }

// firstArray is the index of the first array in the arguments, after the lane mask, the spill
// slots, the number of remaining rows and the mask of the last vector.
const firstArray = 4

// MaxLanes is the maximum number of lanes of a vector.
const MaxLanes = 16

// masks is ones followed by zeros: a window of it is a lane mask.
var masks = ones[uint32]()

// overlapMasks is zeros followed by ones.
var overlapMasks, longOverlapMasks = zeros[uint32](), zeros[uint64]()

// longMasks is masks for 64-bit lanes.
var longMasks = ones[uint64]()

func ones[T uint32 | uint64]() (m [2 * MaxLanes]T) {
	for i := range MaxLanes {
		m[i] = ^T(0)
	}
	return m
}

// zeros returns zeros followed by ones.
func zeros[T uint32 | uint64]() (m [2 * MaxLanes]T) {
	for i := range MaxLanes {
		m[MaxLanes+i] = ^T(0)
	}
	return m
}

// overlap sets the mask of the last vector, the first lanes of which are computed twice.
func (c *Call) overlap(twice int) {
	switch {
	case simd.Has == simd.AVX512:
		*c.lastLanes = ^uint64(0) << twice
		c.args[firstArray-1] = unsafe.Pointer(c.lastLanes)
	case c.code.long:
		c.args[firstArray-1] = unsafe.Pointer(&longOverlapMasks[MaxLanes-twice])
	default:
		c.args[firstArray-1] = unsafe.Pointer(&overlapMasks[MaxLanes-twice])
	}
}

// Width returns the lanes of an iteration.
func (c *Call) Width() int { return c.code.width }

// Run computes n > 0 lanes, a multiple of the width.
func (c *Call) Run(n int) { c.run(n, MaxLanes) }

// RunRows computes rows > 0 rows of n > 0 lanes, a multiple of the width, the first at the
// arrays' addresses. Afterwards these are those of the last row.
func (c *Call) RunRows(rows, n int) {
	*c.rows = rows
	c.run(n, MaxLanes)
}

// RunTail computes n lanes, fewer than the width. The lanes up to the width are computed too,
// so that arrays must have room for them, but do not change accumulators.
func (c *Call) RunTail(n int) { c.run(n, n) }

func (c *Call) run(n, active int) {
	if *c.rows == 0 { // the code counts down
		*c.rows = 1
	}
	if rest := n % c.code.width; c.code.overlap && rest > 0 {
		c.overlap(c.code.width - rest)
	}
	if c.code.long {
		c.args[0] = unsafe.Pointer(&longMasks[MaxLanes-active])
	} else {
		c.args[0] = unsafe.Pointer(&masks[MaxLanes-active])
	}
	asm.Call(c.code.entry, unsafe.Pointer(&c.args[0]), n)
	runtime.KeepAlive(c)
}
