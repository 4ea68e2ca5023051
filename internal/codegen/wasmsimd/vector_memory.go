package wasmsimd

import "github.com/rlx-go/rlx/ir/scalar"

// wordBytes is the size of what a lane holds.
const wordBytes = 4

// vectorLoad loads four elements: at once where they lie side by side.
func (w *writer) vectorLoad(e scalar.Expr) {
	at := e.Args[0]
	if regs := w.locations[e.Ref].registers; regs != nil {
		w.f.get(regs[w.registerIndex(at)/lanes])
		return
	}
	if step, ok := w.affine(at); ok && step == 1 {
		offset := w.address(e.Ref, at)
		w.loadRow(e.Type, offset)
	} else {
		w.gather(e)
	}
	if e.Type.IsBool() {
		w.f.constLanes([4]uint32{})
		w.f.op(opI32x4Ne)
	}
}

// storeLanes stores a value for each lane.
func (w *writer) storeLanes(array int, at, value scalar.Expr) {
	if regs := w.locations[array].registers; regs != nil {
		w.vector(value)
		w.f.set(regs[w.registerIndex(at)/lanes])
		return
	}
	step, even := w.affine(at)
	if even && step == 1 {
		offset := w.address(array, at)
		w.vectorInMemory(value)
		w.storeRow(value.Type, offset)
		return
	}
	w.scatter(array, at, value)
}

// vectorInMemory leaves four lanes on the stack as memory has them.
func (w *writer) vectorInMemory(value scalar.Expr) {
	w.vector(value)
	if value.Type.IsBool() {
		w.f.constLanes([4]uint32{1, 1, 1, 1})
		w.f.op(opV128And)
	}
}

// gather loads four elements one by one.
func (w *writer) gather(e scalar.Expr) {
	loaded := w.f.local(typeV128)
	if isNarrow(e.Type) {
		w.f.constLanes([4]uint32{})
		w.f.set(loaded)
	}
	w.eachLane(e.Ref, e.Args[0], func(lane int, address func() uint64) {
		offset := address()
		if lane == 0 && !isNarrow(e.Type) {
			w.f.memory(opV128LoadZero, 2, offset)
		} else {
			w.f.get(loaded)
			w.oneLane(laneLoads, e.Type, lane, offset)
		}
		w.f.set(loaded)
	})
	w.f.get(loaded)
	if e.Type.IsSigned() {
		w.wrapLanes(e.Type)
	}
}

// scatter stores four elements one by one. Where all go to one place, the last
// lane's stays.
func (w *writer) scatter(array int, at, value scalar.Expr) {
	values := w.f.local(typeV128)
	w.vectorInMemory(value)
	w.f.set(values)
	w.eachLane(array, at, func(lane int, address func() uint64) {
		offset := address()
		w.f.get(values)
		w.oneLane(laneStores, value.Type, lane, offset)
	})
}

// eachLane calls f for the element of each lane, with a function that leaves its
// address on the stack, all but the offset that it returns. Places are evenly
// spaced, or what a vector tells.
func (w *writer) eachLane(array int, at scalar.Expr, f func(lane int, address func() uint64)) {
	size := int64(w.elementBytes(array))
	if step, even := w.affine(at); even {
		first := w.f.local(typeI32)
		offset := w.address(array, at)
		w.f.set(first)
		for lane := range lanes {
			f(lane, func() uint64 {
				w.f.get(first)
				if d := step * size * int64(lane); d != 0 {
					w.f.constI32(int32(d))
					w.f.op(opI32Add)
				}
				return offset
			})
		}
		return
	}
	p, index := w.locations[array], w.f.local(typeV128)
	w.vector(at)
	w.f.set(index)
	for lane := range lanes {
		f(lane, func() uint64 {
			w.f.get(index)
			w.f.lane(opI32x4Extract, lane)
			w.mulConst(size)
			w.addBase(p)
			return p.offset
		})
	}
}
