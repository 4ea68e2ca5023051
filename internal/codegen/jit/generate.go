//go:build amd64 || arm64

package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/internal/simd"
)

// generator writes the code of kernels. The instructions of a step are selected in the files
// of each processor.
type generator struct {
	*registers
	lanes   lanes
	memory  memory
	control control
	rare    rareSteps
	k       *Kernel
	// overlap and inPlace are those of the rows.
	overlap, inPlace bool
}

func newGenerator(r *Rows, level simd.Level) *generator {
	rs := &registers{}
	rs.at(level, r.Kernels[0].Long)
	return &generator{
		registers: rs, lanes: lanes{rs}, memory: memory{registers: rs}, control: control{rs}, rare: rareSteps{registers: rs}, overlap: r.Overlap, inPlace: r.InPlace,
	}
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
	g := newGenerator(r, level)
	var begin asm.Label
	g.Bind(&begin)
	for i, k := range r.Kernels {
		for _, x := range r.Indirect {
			if x.After == i {
				g.control.place(x)
			}
		}
		g.kernel(k.optimize())
		g.memory.first += k.arrays
	}
	if r.Strides != nil {
		g.control.nextRow(r, &begin)
	}
	g.Return()
	return g.Finish(), g.slotCount * slotBytes
}

// slotBytes is the size of the spill slot of one register.
const slotBytes = 4 * MaxLanes

// kernel writes the loop of a kernel and the code after it.
func (g *generator) kernel(k *Kernel) {
	g.k = k
	g.registers.begin(k)
	g.memory.begin(k)
	if len(k.steps) > 0 {
		g.loop()
	}
	if len(k.after) > 0 {
		g.control.clearIndex()
		g.section(k.after, nil)
	}
}

func (g *generator) loop() {
	masked := len(g.k.accumulators) > 0 && !g.k.Full
	if masked || g.inPlace {
		g.control.loadLaneMask()
	}
	for _, r := range g.k.accumulators {
		p := &g.locations[r.value]
		p.reg, _ = g.vector.take()
		p.pinned = true
		g.splatBits(p.reg, r.initial)
	}
	g.control.clearIndex()
	var start asm.Label
	g.Bind(&start)
	var kept []Value
	for _, r := range g.k.accumulators {
		kept = append(kept, r.next)
	}
	g.memory.once = g.inPlace
	g.section(g.k.steps, kept)
	g.memory.once = false
	for _, r := range g.k.accumulators { // take their new values in the active lanes
		if to, from := g.locations[r.value].reg, g.locations[r.next].reg; masked {
			g.moveMasked(to, from)
		} else {
			g.copyVector(to, from)
		}
	}
	if lanes := g.width * max(1, g.k.stride); g.overlap {
		g.control.overlapBack(lanes, masked || g.inPlace, &start)
	} else {
		g.control.loopBack(lanes, &start)
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
	g.rare.list = steps
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
	g.enter(s)
	switch s.kind {
	case load:
		g.memory.load(s)
	case splat:
		g.memory.splat(s)
	case store:
		g.memory.store(s)
	case storeFirst:
		g.memory.storeFirst(s)
	case rotate:
		g.lanes.rotate(s)
	case minimum, maximum:
		g.lanes.minMax(s)
	case scale:
		g.lanes.scale(s)
	case rotateBits:
		g.lanes.rotateBits(s)
	case loadRuns:
		g.memory.loadRuns(s)
	case storeRuns:
		g.memory.storeRuns(s)
	case loadPart:
		g.memory.loadPart(s)
	case gather:
		g.memory.gather(s)
	case storePairs:
		g.memory.storePairs(s)
	case roundHalf:
		g.lanes.roundHalf(s)
	case whenAny:
		g.rare.whenAny()
	case carry:
		g.rare.carry(s)
	default:
		g.lanes.apply(s)
	}
	g.exit(s)
	g.rare.edge(s)
}
