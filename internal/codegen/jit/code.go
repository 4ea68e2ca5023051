package jit

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/rlx-go/rlx/internal/simd"
)

// Code is a compiled kernel. It runs once [Set.Load] has been called.
type Code struct {
	arrays, spillBytes int
	width              int // lanes that a turn of its loop takes
	long               bool
	entry              unsafe.Pointer
	memory             *executable
}

// Set is the code of a program. Equal kernels share theirs.
type Set struct {
	byText map[string]*Code
	order  []string
}

// executable is memory with code.
type executable struct{ bytes []byte }

// Available reports whether kernels can be compiled: whether there is an encoder
// for the level in use, and whether the system lets a program execute what it
// has written.
func Available() bool { return hasEncoder(simd.Has) && mayExecute() }

var mayExecute = sync.OnceValue(func() bool {
	_, err := newExecutable([]byte{0xc3})
	return err == nil
})

// Width returns how many lanes of 32 bits the registers of kernels have that are
// compiled now.
func Width() int { return widthOf(simd.Has) }

// Width returns how many lanes the registers of a kernel have.
func (k *Kernel) Width() int {
	if k.Long {
		return Width() / 2
	}
	return Width()
}

// MaxAccumulators returns how many running values a kernel has registers for.
func MaxAccumulators() int { return maxAccumulators(simd.Has) }

// Compile adds kernels to the set. Their values must come from this package's
// constructors; there must be an encoder for the level in use.
func (s *Set) Compile(r *Rows) *Code {
	text, room := generate(r, simd.Has)
	if c := s.byText[string(text)]; c != nil {
		return c
	}
	if s.byText == nil {
		s.byText = map[string]*Code{}
	}
	c := &Code{spillBytes: room, width: r.Width(), long: r.Kernels[0].Long}
	for _, k := range r.Kernels {
		c.arrays += k.arrays
	}
	s.byText[string(text)] = c
	s.order = append(s.order, string(text))
	return c
}

// Load puts all code of the set in executable memory, which is freed once none
// of it is reachable, and empties the set.
func (s *Set) Load() error {
	if len(s.order) == 0 {
		return nil
	}
	var all []byte
	places := make([]int, len(s.order))
	for i, text := range s.order {
		places[i] = len(all)
		all = append(all, text...)
	}
	memory, err := newExecutable(all)
	if err != nil {
		return fmt.Errorf("memory for %d bytes of code: %w", len(all), err)
	}
	for i, text := range s.order {
		c := s.byText[text]
		c.entry, c.memory = unsafe.Pointer(&memory.bytes[places[i]]), memory
	}
	*s = Set{}
	return nil
}

func newExecutable(text []byte) (*executable, error) {
	bytes, err := mapCode(text)
	if err != nil {
		return nil, err
	}
	memory := &executable{bytes}
	runtime.AddCleanup(memory, func(b []byte) { _ = unmapCode(b) }, bytes)
	return memory, nil
}

// Call is a kernel with its arrays. One goroutine may run it at a time.
type Call struct {
	code  *Code
	args  []unsafe.Pointer
	spill []uint32
	rows  *int // that are left
}

// NewCall returns a call whose arrays are not set.
func (c *Code) NewCall() *Call {
	x := &Call{code: c, args: make([]unsafe.Pointer, firstArray+c.arrays), spill: make([]uint32, c.spillBytes/4+MaxLanes), rows: new(int)}
	x.args[1], x.args[2] = unsafe.Pointer(&x.spill[0]), unsafe.Pointer(x.rows)
	return x
}

// Set says where an array is.
func (c *Call) Set(array int, at unsafe.Pointer) { c.args[firstArray+array] = at }

// firstArray is where the arrays begin among the arguments, after the lanes that
// count, the room, and the rows that are left.
const firstArray = 3

// MaxLanes is the greatest number of lanes of a register.
const MaxLanes = 16

// masks has ones and then zeros: a stretch of it says which lanes count.
var masks = ones[uint32]()

// longMasks is masks for lanes of 64 bits.
var longMasks = ones[uint64]()

func ones[T uint32 | uint64]() (m [2 * MaxLanes]T) {
	for i := range MaxLanes {
		m[i] = ^T(0)
	}
	return m
}

// Width returns how many lanes are computed at once.
func (c *Call) Width() int { return c.code.width }

// Run computes n > 0 lanes, a multiple of the width.
func (c *Call) Run(n int) { c.run(n, MaxLanes) }

// RunRows computes rows > 0 rows of n > 0 lanes, a multiple of the width, the
// first of them where the arrays begin. It leaves the arrays at the last one.
func (c *Call) RunRows(rows, n int) {
	*c.rows = rows
	c.run(n, MaxLanes)
}

// RunTail computes n lanes, less than the width, and whatever is in those after
// them, which arrays must have room for; those change no running value.
func (c *Call) RunTail(n int) { c.run(n, n) }

func (c *Call) run(n, counted int) {
	if c.code.long {
		c.args[0] = unsafe.Pointer(&longMasks[MaxLanes-counted])
	} else {
		c.args[0] = unsafe.Pointer(&masks[MaxLanes-counted])
	}
	call(c.code.entry, &c.args[0], n)
	runtime.KeepAlive(c)
}
