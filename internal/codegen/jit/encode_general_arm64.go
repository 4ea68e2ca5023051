package jit

// The general registers that code refers to. It leaves alone those that Go or the
// system keep something in: X18 and from X26 on.
const (
	arguments = 0
	lanesAll  = 1
	vectors   = 2 // the index of the first lane, in vectors
	room      = 3
	lanesLeft = 4
	scratch   = 16
	scratch2  = 17
)

// pointers are the registers that keep the addresses of the first arrays; those
// of more are read when they are needed.
var pointers = []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22, 23, 24, 25}

// loadWord reads 64 bits at a distance from an address, storeWord writes them.
func (e *encoder) loadWord(reg, base, at int) {
	e.word(0xf9400000 | uint32(at/8)<<10 | uint32(base)<<5 | uint32(reg))
}

func (e *encoder) storeWord(reg, base, at int) {
	e.word(0xf9000000 | uint32(at/8)<<10 | uint32(base)<<5 | uint32(reg))
}

// loadPointer reads an argument into a general register.
func (e *encoder) loadPointer(reg, argument int) { e.loadWord(reg, arguments, 8*argument) }

// add adds a constant of up to 12 bits.
func (e *encoder) add(to, from, by int) {
	e.word(0x91000000 | uint32(by)<<10 | uint32(from)<<5 | uint32(to))
}

// number puts a number of 32 bits, with its sign, into a general register.
func (e *encoder) number(reg, x int) {
	low, high := uint32(x)&0xffff, uint32(x)>>16
	if x < 0 {
		e.word(0x92800000 | (^low&0xffff)<<5 | uint32(reg)) // MOVN
	} else {
		e.word(0xd2800000 | low<<5 | uint32(reg)) // MOVZ
	}
	e.word(0xf2800000 | 1<<21 | high<<5 | uint32(reg)) // MOVK, LSL #16
}

// clearIndex goes to the first lane.
func (e *encoder) clearIndex() {
	e.word(0xd2800000 | vectors)
	e.word(0xaa0003e0 | lanesAll<<16 | lanesLeft) // MOV
	e.loadPointer(room, roomArgument)
}

// lanesOfVector returns how many lanes a register has.
func (e *encoder) lanesOfVector() int {
	if e.long {
		return 2
	}
	return 4
}

// loopBack adds to the index and jumps back while lanes are left.
func (e *encoder) loopBack(lanes, start int) {
	e.add(vectors, vectors, lanes/e.lanesOfVector())
	e.word(0xf1000000 | uint32(lanes)<<10 | lanesLeft<<5 | lanesLeft) // SUBS
	e.word(0x54000000 | 0xc)                                          // B.GT
	e.patch(len(e.text)-4, 5, 19, start-(len(e.text)-4))
}

// nextRow counts a row, and where one is left takes the arrays to it and jumps
// back.
func (e *encoder) nextRow(r *Rows, start int) {
	e.loadPointer(scratch, rowsArgument)
	e.loadWord(scratch2, scratch, 0)
	e.word(0xf1000400 | scratch2<<5 | scratch2) // SUBS #1
	e.storeWord(scratch2, scratch, 0)
	last := len(e.text)
	e.word(0x54000000) // B.EQ
	for i, step := range r.Strides {
		if step != 0 {
			e.loadPointer(scratch, arrayArgument+i)
			e.number(scratch2, step)
			e.word(0x8b000000 | scratch2<<16 | scratch<<5 | scratch)
			e.storeWord(scratch, arguments, 8*(arrayArgument+i))
		}
	}
	if r.Counter >= 0 {
		e.loadPointer(scratch, arrayArgument+r.Counter)
		e.word(0xb9400000 | scratch<<5 | scratch2) // LDR W
		e.word(0x11000400 | scratch2<<5 | scratch2)
		e.word(0xb9000000 | scratch<<5 | scratch2) // STR W
	}
	e.word(0x14000000)
	e.patch(len(e.text)-4, 0, 26, start-(len(e.text)-4))
	e.patch(last, 5, 19, len(e.text)-last)
}

func (e *encoder) ret() { e.word(0xd65f03c0) } // RET
