//go:build amd64 || arm64

package jit

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/scalar"
)

// generator writes the code of kernels. The instructions of a step are selected in the files
// of each processor.
type generator struct {
	asm.Encoder
	allocator
	k     *Kernel
	first int   // number of the kernel's first array in the call
	width int   // lanes of a vector
	temps []int // temporary registers of the current step
	work  *step
	// overlap is that of the rows.
	overlap bool
	// paired is that of the kernel.
	paired bool
	rare   rareSteps
	list   []step // of the current section
}

// The arguments of the code: the mask of active lanes, spill slots, the number of remaining
// rows, the mask of the last vector where rows overlap, and the arrays.
const (
	maskArgument = iota
	spillArgument
	rowsArgument
	overlapArgument
	arrayArgument = firstArray
)

// generate returns the code of rows and the size of its spill slots in bytes.
func generate(r *Rows, level simd.Level) (text []byte, room int) {
	g := &generator{overlap: r.Overlap}
	g.at(level, r.Kernels[0].Long)
	var begin asm.Label
	g.Bind(&begin)
	for i, k := range r.Kernels {
		for _, x := range r.Indirect {
			if x.After == i {
				g.place(x)
			}
		}
		g.kernel(k.optimize())
		g.first += k.arrays
	}
	if r.Strides != nil {
		g.nextRow(r, &begin)
	}
	g.Return()
	return g.Finish(), g.slotCount * slotBytes
}

// slotBytes is the size of the spill slot of one register.
const slotBytes = 4 * MaxLanes

// kernel writes the loop of a kernel and the code after it.
func (g *generator) kernel(k *Kernel) {
	g.k, g.width, g.paired = k, k.Width(), k.isPaired()
	g.allocator = allocator{move: g.spill, slotCount: g.slotCount}
	for s := range g.slotCount {
		g.slots = append(g.slots, s)
	}
	g.registers()
	g.locations = make([]location, len(k.types))
	for v, t := range k.types {
		g.locations[v] = location{reg: none, slot: none, masked: g.masks(t)}
	}
	for i := range min(k.arrays, len(pointers)) {
		g.loadPointer(pointers[i], arrayArgument+g.first+i)
	}
	if len(k.steps) > 0 {
		g.loop()
	}
	if len(k.after) > 0 {
		g.clearIndex()
		g.section(k.after, nil)
	}
}

func (g *generator) loop() {
	if len(g.k.accumulators) > 0 {
		g.loadLaneMask()
	}
	for _, r := range g.k.accumulators {
		p := &g.locations[r.value]
		p.reg, _ = g.vector.take()
		p.pinned = true
		g.splatBits(p.reg, r.initial)
	}
	g.clearIndex()
	var start asm.Label
	g.Bind(&start)
	var kept []Value
	for _, r := range g.k.accumulators {
		kept = append(kept, r.next)
	}
	g.section(g.k.steps, kept)
	for _, r := range g.k.accumulators { // take their new values in the active lanes
		g.moveMasked(g.locations[r.value].reg, g.locations[r.next].reg)
	}
	if lanes := g.width * max(1, g.k.stride); g.overlap {
		g.overlapBack(lanes, &start)
	} else {
		g.loopBack(lanes, &start)
	}
}

// section writes straight-line code that ends with the kept values in registers.
func (g *generator) section(steps []step, kept []Value) {
	for i := range steps {
		for _, a := range steps[i].args {
			if !a.constant {
				p := &g.locations[a.value]
				p.uses = append(p.uses, i)
			}
		}
	}
	for _, v := range kept {
		p := &g.locations[v]
		p.uses = append(p.uses, len(steps))
	}
	g.list = steps
	for i := range steps {
		g.now = i
		g.do(&steps[i])
	}
	for _, v := range kept {
		g.reload(v)
	}
	g.now = len(steps)
}

// do writes one step.
func (g *generator) do(s *step) {
	g.work = s
	for _, a := range s.args {
		if !a.constant {
			g.reload(a.value)
		}
	}
	switch s.kind {
	case load:
		g.load(s)
	case splat:
		g.splat(s)
	case store:
		g.store(s)
	case storeFirst:
		g.storeFirst(s)
	case rotate:
		g.rotate(s)
	case minimum, maximum:
		g.minMax(s)
	case scale:
		g.scale(s)
	case rotateBits:
		g.rotateBits(s)
	case loadRuns:
		g.loadRuns(s)
	case storeRuns:
		g.storeRuns(s)
	case loadPart:
		g.loadPart(s)
	case storePairs:
		g.storePairs(s)
	case roundHalf:
		g.roundHalf(s)
	case whenAny:
		g.whenAny()
	case carry:
		g.carry(s)
	default:
		g.apply(s)
	}
	g.vector.free = append(g.vector.free, g.temps...)
	g.temps = g.temps[:0]
	for _, a := range s.args {
		if !a.constant {
			g.release(a.value)
		}
	}
	if s.dst != noValue {
		g.release(s.dst) // if nothing reads it
	}
	g.rareEdge(s)
}

// operation returns the instruction of a step. A test checks that there is one for each of
// [Operations].
func operation(list map[scalar.Op]asm.Opcode, s *step) asm.Opcode {
	o, ok := list[s.op]
	if !ok {
		panic(fmt.Sprint("jit: ", s.op, " of ", s.from))
	}
	return o
}
