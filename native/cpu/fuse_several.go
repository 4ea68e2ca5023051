package cpu

// mostUnrolled and mostStreams are how many inner points one kernel takes at most where
// lanes are outer points, and how many places in memory it reads from.
const (
	mostUnrolled = 8
	mostStreams  = 24
)

// unroll makes a kernel of what a reduction does with several inner points, one after
// the other, where the lanes are outer points: running values then stay in registers
// between them, and less time goes into beginning kernels than into short rows of lanes.
func (f *fuser) unroll(p *phase) {
	inner := f.n.inner.scalars()
	if f.n.wideInner || !p.loop || len(p.running) == 0 || len(p.inner) > 0 || len(inner) == 0 {
		return
	}
	last := inner[len(inner)-1]
	loads := 0
	for i := range p.element {
		in := &p.element[i]
		if in.kind == opLoad {
			loads++
		} else if in.readsAny(last.reg) {
			return
		}
	}
	times := mostUnrolled
	for times*loads > mostStreams || times > last.size || len(inner) > 1 && last.size%times != 0 {
		times /= 2
	}
	if times > 1 {
		f.several(p, last.reg, times)
	}
}

// several makes the kernel of an unrolled loop, along whose last coordinate, in a
// register, the points lie.
func (f *fuser) several(p *phase, along register, times int) {
	s := f.segment()
	for i := range times {
		for k := range p.element {
			in := p.element[k].moved(along, i)
			if !s.add(&in) && in.kind != opSplat {
				return
			}
		}
	}
	for _, r := range s.written {
		if f.reads[r] > s.reads[r]/times { // others read it
			s.k.Store(s.array(fusedArray{reg: r, stores: true}), s.storedAs(r), s.values[r])
		}
	}
	p.several, p.times = []instr{s.kernel()}, times
}

// readsAny reports whether an instruction reads a register other than for an address.
func (in *instr) readsAny(r register) bool {
	found := false
	in.registers(func(x *register, result bool) { found = found || !result && *x == r })
	return found
}

// moved returns a load as one from where a coordinate, in a register, is larger by some;
// other instructions as they are.
func (in *instr) moved(coordinate register, by int) instr {
	out := *in
	if in.kind == opLoad {
		at := *in.at
		at.base += by * at.coef(coordinate)
		out.at = &at
	}
	return out
}
