package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// bind returns an instruction as a closure over the registers of a machine.
func (m *machine) bind(in *instr) op {
	if !in.scalar {
		return m.bindWide(in)
	}
	if o := scalarOp(m.files, in); o != nil {
		return o
	}
	o := m.bindWide(in)
	return func(int) { o(1) }
}

func (m *machine) bindWide(in *instr) op {
	f := m.files
	to := f.of(in.dst)
	switch in.kind {
	case opConst:
		v, _ := in.node.Value()
		return func(int) { to.set(in.dst.index, 0, v) }
	case opSplat:
		return to.splat(in.dst.index, in.args[0].index)
	case opMove:
		return to.move(in.dst.index, in.args[0].index)
	case opCounter:
		d, i := &f.ints[in.dst.index][0], in.args[0].index
		return func(int) { *d = m.env.counters[i] }
	case opScalar:
		i := in.args[0].index
		return func(int) { to.set(in.dst.index, 0, m.env.scalars[i]) }
	case opCheck:
		return m.bindCheck(in)
	case opFused:
		return m.bindFused(in.fused)
	case opLoad:
		if in.parts {
			return m.bindPart(in)
		}
		return m.bindLoad(in)
	case opStore:
		if in.parts {
			return m.bindPairs(in)
		}
		store := m.bindStore(in)
		if in.node != guarded {
			return store
		}
		return func(n int) {
			if !m.env.status.failed() {
				store(n)
			}
		}
	}
	return bindApply(f, in)
}

func (m *machine) bindCheck(in *instr) op {
	cond, code := m.files.ints[in.args[0].index], uint32(in.node.Ref)
	return func(n int) {
		if slices.Contains(cond[:n], 0) {
			m.env.status.fail(code)
			return
		}
	}
}

// bindApply returns the loop of an operation: a specialised one, or the evaluator of package
// scalar lane by lane.
func bindApply(f *files, in *instr) op {
	if o := fastOp(f, in); o != nil {
		return o
	}
	node, arity := in.node, len(in.node.Args)
	narrow := node.Type == ir.F16 || node.Type == ir.BF16
	from, to := [3]registerFile{}, f.of(in.dst)
	for k := range arity {
		from[k] = f.of(in.args[k])
	}
	return func(n int) {
		var v [3]scalar.Value
		for i := range n {
			for k := range arity {
				v[k] = from[k].value(in.args[k].index, i, node.Args[k].Type)
			}
			r := scalar.Apply(node, v)
			if narrow {
				r.F = node.Type.Round(r.F)
			}
			to.set(in.dst.index, i, r)
		}
	}
}

// boundAddress is an address bound to its registers.
type boundAddress struct {
	base   int
	coefs  []int
	values []counter
	stride int
	// run and jump are those of [address], start the index in the row of lane 0.
	run, jump int
	start     counter
	index     []int32 // 32-bit indices of a general address, nil for others
	long      []int64 // 64-bit indices of a general address, nil for others
	mask      []int32 // nil where all lanes use the address
	whole     bool    // the mask is uniform
}

func (m *machine) bindAddress(a *address) *boundAddress {
	b := &boundAddress{base: a.base, stride: a.stride}
	if a.mask != nil {
		b.mask, b.whole = m.files.ints[a.mask.reg.index], !a.mask.wide
	}
	switch {
	case a.general && a.index.class == classLong:
		b.long = m.files.long[a.index.index]
	case a.general:
		b.index = m.files.ints[a.index.index]
	}
	if a.run > 0 {
		b.run, b.jump, b.start = a.run, a.jump, m.files.counter(a.start)
	}
	for _, t := range a.terms {
		b.coefs = append(b.coefs, t.coef)
		b.values = append(b.values, m.files.counter(t.reg))
	}
	return b
}

// first returns the element of lane 0.
func (b *boundAddress) first() int {
	at := b.row()
	if b.run > 0 {
		start := b.start.get()
		at += start/b.run*b.jump + start%b.run*b.stride
	}
	return at
}

// row returns the element of point 0 of the row where there are runs, else [boundAddress.first].
func (b *boundAddress) row() int {
	at := b.base
	for i, c := range b.coefs {
		at += c * b.values[i].get()
	}
	return at
}

// eachRun calls f for each run of n lanes: the first element of the lanes [lane, lane+count).
func (b *boundAddress) eachRun(n int, f func(at, lane, count int)) {
	start := b.start.get()
	at, within := b.row()+start/b.run*b.jump, start%b.run
	for lane := 0; lane < n; {
		count := min(b.run-within, n-lane)
		f(at+within*b.stride, lane, count)
		at, within, lane = at+b.jump, 0, lane+count
	}
}

func (m *machine) bindLoad(in *instr) op {
	a := m.bindAddress(in.at)
	if !a.whole {
		return bindLoadAt(m.files, in, a)
	}
	// The mask is uniform: all lanes use the address, or all load element 0.
	follows := *a
	follows.mask, follows.whole = nil, false
	inside, outside, mask := bindLoadAt(m.files, in, &follows), bindLoadAt(m.files, in, &boundAddress{}), a.mask
	return func(n int) {
		if mask[0] != 0 {
			inside(n)
		} else {
			outside(n)
		}
	}
}

func bindLoadAt(f *files, in *instr, a *boundAddress) op {
	switch in.buf.dtype {
	case ir.F32:
		return loadSame(lanesOf[float32](f, in.dst), in.buf, a)
	case ir.F64:
		return loadSame(lanesOf[float64](f, in.dst), in.buf, a)
	case ir.I64, ir.U64:
		return loadSame(lanesOf[int64](f, in.dst), in.buf, a)
	case ir.C128:
		return loadComplex(lanesOf[complex128](f, in.dst), in.buf, a)
	case ir.C64:
		return loadAs(lanesOf[complex128](f, in.dst), in.buf, a, func(x complex64) complex128 { return complex128(x) })
	case ir.BF16:
		return loadAs(lanesOf[float32](f, in.dst), in.buf, a, func(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) })
	case ir.F16:
		d := in.buf.dtype
		return loadAs(lanesOf[float32](f, in.dst), in.buf, a, func(x uint16) float32 { return float32(d.FloatFromBits(uint64(x))) })
	}
	if d := in.buf.dtype; d.IsFloat8() {
		return loadAs(lanesOf[float32](f, in.dst), in.buf, a, func(x uint8) float32 { return float32(d.FloatFromBits(uint64(x))) })
	}
	return bindIntLoad(lanesOf[int32](f, in.dst), in.buf, a)
}

func bindIntLoad(d []int32, buf *buffer, a *boundAddress) op {
	switch buf.dtype {
	case ir.I8:
		return loadInt[int8](d, buf, a)
	case ir.I16:
		return loadInt[int16](d, buf, a)
	case ir.I32, ir.U32:
		return loadSame(d, buf, a)
	case ir.U16:
		return loadInt[uint16](d, buf, a)
	}
	return loadInt[uint8](d, buf, a) // u8 and bool
}

// loadSame loads elements that need no conversion.
func loadSame[T float32 | float64 | int32 | int64](d []T, buf *buffer, a *boundAddress) op {
	switch {
	case a.mask != nil:
		return loadAs(d, buf, a, func(x T) T { return x })
	case a.index != nil:
		return func(n int) {
			from, index := view[T](buf)[a.first():], a.index[:n]
			for i, at := range index {
				d[i] = from[at]
			}
		}
	case a.long != nil:
		return loadAs(d, buf, a, func(x T) T { return x })
	case a.run > 0:
		return loadRuns(d, buf, a)
	case a.stride == 1:
		return func(n int) {
			at := a.first()
			copy(d[:n], view[T](buf)[at:at+n])
		}
	}
	return func(n int) {
		from, at := view[T](buf), a.first()
		for i := range d[:n] {
			d[i] = from[at]
			at += a.stride
		}
	}
}

// loadRuns is [loadSame] for an address with runs.
func loadRuns[T float32 | float64 | int32 | int64](d []T, buf *buffer, a *boundAddress) op {
	switch a.stride {
	case 0:
		return func(n int) {
			from := view[T](buf)
			a.eachRun(n, func(at, lane, count int) { fill(d[lane:lane+count], from[at]) })
		}
	case 1:
		return func(n int) {
			from := view[T](buf)
			a.eachRun(n, func(at, lane, count int) {
				to, from := d[lane:lane+count], from[at:at+count]
				for i := range to {
					to[i] = from[i]
				}
			})
		}
	}
	return loadAs(d, buf, a, func(x T) T { return x })
}

// loadInt loads integers narrower than 32 bits.
func loadInt[T int8 | int16 | uint8 | uint16](d []int32, buf *buffer, a *boundAddress) op {
	if a.index == nil && a.long == nil && a.mask == nil && a.run == 0 && a.stride == 1 {
		return func(n int) {
			at := a.first()
			for i, x := range view[T](buf)[at : at+n] {
				d[i] = int32(x)
			}
		}
	}
	return loadAs(d, buf, a, func(x T) int32 { return int32(x) })
}

// loadAs loads elements with a conversion.
func loadAs[S unit, T lane](d []T, buf *buffer, a *boundAddress, convert func(S) T) op {
	if a.mask != nil {
		return func(n int) {
			from, at := view[S](buf), a.first()
			for i, inside := range a.mask[:n] {
				if inside != 0 {
					d[i] = convert(from[at])
				} else {
					d[i] = convert(from[0])
				}
				at += a.stride
			}
		}
	}
	if a.index != nil {
		return func(n int) {
			from := view[S](buf)[a.first():]
			for i, at := range a.index[:n] {
				d[i] = convert(from[at])
			}
		}
	}
	if a.long != nil {
		return func(n int) {
			from := view[S](buf)[a.first():]
			for i, at := range a.long[:n] {
				d[i] = convert(from[at])
			}
		}
	}
	if a.run > 0 {
		return func(n int) {
			from := view[S](buf)
			a.eachRun(n, func(at, lane, count int) {
				for i := lane; i < lane+count; i++ {
					d[i] = convert(from[at])
					at += a.stride
				}
			})
		}
	}
	return func(n int) {
		from, at := view[S](buf), a.first()
		for i := range d[:n] {
			d[i] = convert(from[at])
			at += a.stride
		}
	}
}

// loadComplex loads c128, which is too large for [unit].
func loadComplex(d []complex128, buf *buffer, a *boundAddress) op {
	return func(n int) {
		from := complexView(buf)
		for i := range d[:n] {
			d[i] = from[a.lane(i)]
		}
	}
}

func complexView(buf *buffer) []complex128 {
	return unsafe.Slice((*complex128)(unsafe.Pointer(unsafe.SliceData(buf.data))), max(buf.elems, 1))
}

// lane returns the element of a lane.
func (b *boundAddress) lane(i int) int {
	switch {
	case b.index != nil:
		return b.first() + int(b.index[i])
	case b.long != nil:
		return b.first() + int(b.long[i])
	case b.mask != nil && b.mask[i] == 0:
		return 0
	}
	if b.run > 0 {
		at := b.start.get() + i
		return b.row() + at/b.run*b.jump + at%b.run*b.stride
	}
	return b.first() + i*b.stride
}

func (m *machine) bindStore(in *instr) op {
	f, a, src := m.files, m.bindAddress(in.at), in.args[0]
	switch in.buf.dtype {
	case ir.F32:
		return storeSame(lanesOf[float32](f, src), in.buf, a)
	case ir.F64:
		return storeSame(lanesOf[float64](f, src), in.buf, a)
	case ir.I64, ir.U64:
		return storeSame(lanesOf[int64](f, src), in.buf, a)
	case ir.C128:
		x := lanesOf[complex128](f, src)
		return func(n int) {
			to := complexView(in.buf)
			for i, v := range x[:n] {
				to[a.lane(i)] = v
			}
		}
	case ir.C64:
		return storeAs(lanesOf[complex128](f, src), in.buf, a, func(x complex128) complex64 { return complex64(x) })
	case ir.F16, ir.BF16:
		d := in.buf.dtype
		return storeAs(lanesOf[float32](f, src), in.buf, a, func(x float32) uint16 { return uint16(d.FloatBits(float64(x))) })
	}
	if d := in.buf.dtype; d.IsFloat8() {
		return storeAs(lanesOf[float32](f, src), in.buf, a, func(x float32) uint8 { return uint8(d.FloatBits(float64(x))) })
	}
	return bindIntStore(lanesOf[int32](f, src), in.buf, a)
}

func bindIntStore(x []int32, buf *buffer, a *boundAddress) op {
	switch buf.dtype.Size() {
	case 1:
		return storeAs(x, buf, a, func(x int32) uint8 { return uint8(x) })
	case 2:
		return storeAs(x, buf, a, func(x int32) uint16 { return uint16(x) })
	}
	return storeSame(x, buf, a)
}

// storeSame stores elements that need no conversion.
func storeSame[T float32 | float64 | int32 | int64](x []T, buf *buffer, a *boundAddress) op {
	if a.index == nil && a.long == nil && a.run == 0 && a.stride == 1 {
		return func(n int) { copy(view[T](buf)[a.first():], x[:n]) }
	}
	return storeAs(x, buf, a, func(x T) T { return x })
}

// storeAs stores elements with a conversion.
func storeAs[T lane, S unit](x []T, buf *buffer, a *boundAddress, convert func(T) S) op {
	if a.index != nil {
		return func(n int) {
			to := view[S](buf)
			for i, v := range x[:n] {
				to[a.index[i]] = convert(v)
			}
		}
	}
	if a.long != nil {
		return func(n int) {
			to := view[S](buf)
			for i, v := range x[:n] {
				to[a.long[i]] = convert(v)
			}
		}
	}
	if a.run > 0 {
		return func(n int) {
			to := view[S](buf)
			a.eachRun(n, func(at, lane, count int) {
				for _, v := range x[lane : lane+count] {
					to[at] = convert(v)
					at += a.stride
				}
			})
		}
	}
	return func(n int) {
		to, at := view[S](buf), a.first()
		for _, v := range x[:n] {
			to[at] = convert(v)
			at += a.stride
		}
	}
}
