package jit

import (
	"github.com/rlx-go/rlx/native/cpu/simd"
)

// generator writes the code of a kernel.
type generator struct {
	encoder
	allocator
	k     *Kernel
	width int   // lanes of a register
	temps []int // registers of the step at work, free after it
	work  *step
}

// Where the arguments of code lie: which lanes count, room for values that no
// register is left for, and the arrays.
const (
	maskArgument = iota
	roomArgument
	arrayArgument
)

// lastMask is the register that has the lanes that count.
const (
	lastMask   = 7
	lastVector = 15
)

// generate returns the code of a kernel and the bytes of room that it needs.
func generate(k *Kernel, level simd.Level) (text []byte, room int) {
	k = k.tidy()
	g := &generator{k: k}
	g.wide, g.width = level == simd.AVX512, widthOf(level)
	g.move = g.spill
	g.vector, g.mask = file{holds: map[int]Value{}}, file{holds: map[int]Value{}}
	count := lastVector
	if g.wide {
		count = 32
		for r := lastMask - 1; r > 0; r-- {
			g.mask.free = append(g.mask.free, r)
		}
	}
	for r := count - 1; r >= 0; r-- {
		g.vector.free = append(g.vector.free, r)
	}
	g.places = make([]place, len(k.types))
	for v, t := range k.types {
		g.places[v] = place{reg: none, slot: none, masked: t.IsBool() && g.wide}
	}
	for i := range min(k.arrays, len(pointers)) {
		g.loadPointer(pointers[i], arrayArgument+i)
	}
	g.begin()
	g.clearIndex()
	start := len(g.text)
	var kept []Value
	for _, r := range k.running {
		kept = append(kept, r.next)
	}
	g.section(k.steps, kept)
	g.next()
	g.again(g.width*max(1, k.stride), start)
	if len(k.after) > 0 {
		g.clearIndex()
		g.section(k.after, nil)
	}
	g.leave()
	return g.finish(), g.slotCount * 64
}

// begin gives running values their registers.
func (g *generator) begin() {
	if len(g.k.running) == 0 {
		return
	}
	g.loadPointer(rax, maskArgument)
	at := operand{kind: inMemory, reg: rax}
	if g.wide {
		g.vec(moveIn, 0, 0, at)
		g.evex(testWords, lastMask, 0, register(0), masking{})
	} else {
		g.vec(moveIn, lastVector, 0, at)
	}
	for _, r := range g.k.running {
		p := &g.places[r.value]
		p.reg, _ = g.vector.take()
		p.stays = true
		g.vec(broadcast, p.reg, 0, g.word(r.initial))
	}
}

// next gives running values the values they have become, in the lanes that count.
func (g *generator) next() {
	for _, r := range g.k.running {
		from, to := g.places[r.next].reg, g.places[r.value].reg
		if g.wide {
			g.evex(moveAll, to, 0, register(from), masking{mask: lastMask})
		} else {
			o := blendVector
			o.imm = lastVector << 4
			g.vex(o, to, to, register(from), false)
		}
	}
}

// section writes steps, and has the values that are kept in registers at its end.
func (g *generator) section(steps []step, kept []Value) {
	for i := range steps {
		for _, a := range steps[i].args {
			if !a.constant {
				p := &g.places[a.value]
				p.uses = append(p.uses, i)
			}
		}
	}
	for _, v := range kept {
		p := &g.places[v]
		p.uses = append(p.uses, len(steps))
	}
	for i := range steps {
		g.now = i
		g.do(&steps[i])
	}
	for _, v := range kept {
		g.bring(v)
	}
	g.now = len(steps)
}

// do writes one step.
func (g *generator) do(s *step) {
	g.work = s
	for _, a := range s.args {
		if !a.constant {
			g.bring(a.value)
		}
	}
	switch s.kind {
	case load:
		g.load(s)
	case spread:
		g.spread(s)
	case store:
		g.store(s)
	case rotate:
		g.rotate(s)
	case least:
		g.binary(leastFloat, s.args[0], s.args[1])
	case most:
		g.binary(mostFloat, s.args[0], s.args[1])
	case scale:
		g.scale(s)
	case turn:
		g.turn(s)
	case roundHalf:
		x, t := g.in(s.args[0]), g.temp()
		g.vec(floatToHalf, x, 0, register(t))
		g.vec(halfToFloat, g.dest(), 0, register(t))
	default:
		g.apply(s)
	}
	g.vector.free = append(g.vector.free, g.temps...)
	g.temps = g.temps[:0]
	for _, a := range s.args {
		if !a.constant {
			g.ended(a.value)
		}
	}
	if s.dst != noValue {
		g.ended(s.dst) // where nothing reads it
	}
}
