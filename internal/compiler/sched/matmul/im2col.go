package matmul

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// im2col is operand 0 of a convolution whose tiles TMA copies in im2col mode: images with their channels side by
// side in memory. A row of a tile has channels of one pixel at one position of the window, which is called a tap.
// Where channels are contracted, a step has the channels of one tap; where they are free, as in a weights'
// gradient, it has pixels.
type im2col struct {
	view     loop.TensorMap // without Size
	free     bool           // the channels are free and the pixels contracted
	channels int
	pixels   []int     // sizes of the space of pixels: images, then the spatial axes
	window   []int     // sizes of the window along the spatial axes
	axes     []spatial // in the order of the spatial axes
}

// spatial is how a spatial axis is read: at pixel·step + tap·dilation − lo.
type spatial struct{ step, dilation, lo int }

// minIm2col is the number of bytes of the smallest operand in im2col mode. Drivers up to CUDA 13.1 encode maps
// of smaller ones wrongly.
var minIm2col = 128 << 10

// planIm2col returns how operand 0 of a contraction is copied in im2col mode, or nil if it is not.
func planIm2col(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction, d ir.DType) *im2col {
	if !e.Caps.TensorMaps || len(c.Windows) < 3 || len(c.Windows) > 5 {
		return nil
	}
	first, strides, ok := storedImages(e, g, c, d)
	if !ok {
		return nil
	}
	for _, free := range []bool{false, true} {
		x := &im2col{free: free, view: loop.TensorMap{Array: first.Array, First: strides[len(c.Windows)]}}
		if x.place(c, strides) && x.fits(d) {
			return x
		}
	}
	return nil
}

// storedImages returns the array of operand 0 and the distances of neighbours along its axes, and behind them its
// first element. It returns false if the operand is computed.
func storedImages(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction, d ir.DType) (p emit.Piece, strides []int, ok bool) {
	dims, _ := c.Node.Input(0).Shape().Ints()
	at, terms := fusion.Coords("x", dims), map[string]int{}
	p, ok = emit.StoredAt(d, e.Simplify(e.Reader().Operand(c.Node)(0, at)))
	if !ok || p.Valid != nil || emit.Writes(g, p.Array) || !emit.LinearTerms(p.At, 1, terms) {
		return p, nil, false
	}
	for _, x := range at {
		strides = append(strides, terms[x.Name])
	}
	return p, append(strides, terms[""]), true
}

// place finds the axes of the view: the channels, the spatial axes from the innermost on, and the images. It
// returns false if the spaces of the contraction have another order.
func (x *im2col) place(c *fusion.Contraction, strides []int) bool {
	dims, _ := c.Node.Input(0).Shape().Ints()
	n := len(c.Windows) - 2
	pixels, window := c.M, c.K
	if x.free {
		pixels, window = c.K, c.M
	}
	x.pixels, x.window, x.channels = pixels, window[:n], window[n]
	x.axes = make([]spatial, n)
	view := &x.view
	view.Dims, view.Strides = make([]int, n+2), make([]int, n+1)
	for axis, w := range c.Windows {
		s, pixel, tap := spatial{w.StepM, w.StepK, w.Lo}, w.M, w.K
		if x.free {
			s, pixel, tap = spatial{w.StepK, w.StepM, w.Lo}, w.K, w.M
		}
		to := 0 // the axis of the view
		switch {
		case pixel < 0 && tap == n:
			if strides[axis] != 1 && dims[axis] > 1 {
				return false
			}
		case tap < 0 && pixel == 0:
			to = n + 1
		case pixel == tap+1 && tap >= 0 && tap < n:
			to, x.axes[tap] = n-tap, s
		default:
			return false
		}
		view.Dims[to] = dims[axis]
		if to > 0 {
			view.Strides[to-1] = strides[axis]
			if dims[axis] == 1 {
				view.Strides[to-1] = x.channels // there is no neighbour
			}
		}
	}
	x.corners()
	return true
}

// corners sets the corners of the pixels: as many along an axis as the convolution has.
func (x *im2col) corners() {
	n := len(x.axes)
	c := &loop.Im2col{Lower: make([]int, n), Upper: make([]int, n), Step: make([]int, n)}
	for i := range n {
		tap := n - 1 - i // the innermost axis is the first of the view
		s := x.axes[tap]
		c.Lower[i], c.Step[i] = -s.lo, s.step
		c.Upper[i] = c.Lower[i] + (x.pixels[tap+1]-1)*s.step - (x.view.Dims[i+1] - 1)
	}
	x.view.Im2col = c
}

// fits reports whether a tensor map can express the operand: free channels must fill rows of tiles.
func (x *im2col) fits(d ir.DType) bool {
	row, bytes := loop.RowElements(d), d.Size()
	for _, n := range x.view.Dims {
		bytes *= n
	}
	if bytes < minIm2col || x.free && (x.channels%row != 0 || d == ir.F32) {
		return false
	}
	for i, s := range x.axes {
		if last := (x.window[i] - 1) * s.dilation; last >= 1<<loop.Im2colBits(len(x.axes)) {
			return false
		}
	}
	view := x.view
	view.Size = []int{row, 1}
	last := view.First + 1
	for i, n := range view.Dims[1:] {
		last += (n - 1) * view.Strides[i]
	}
	return view.Check(d, last+view.Dims[0]) == ""
}

// layout returns the layout of the operand's tiles: contiguous along the space that has the channels.
func (x *im2col) layout() mmaLayout {
	if x.free {
		return alongFree
	}
	return alongK
}

// chunks returns the steps of a tap.
func (x *im2col) chunks(d ir.DType) int { return emit.CeilDiv(x.channels, loop.RowElements(d)) }

// taps returns the number of positions of the window.
func (x *im2col) taps() int { return fusion.Product(x.window) }

// chunk returns the tap of a step and the first of its channels. Steps beyond the last have a tap or channels that
// do not exist.
func (m *mmaEmitter) chunk(step scalar.Expr) (tap, channel scalar.Expr) {
	x, row := m.p.im2col, loop.Int(loop.RowElements(m.p.operand))
	if x.taps() == 1 {
		return loop.Int(0), m.Simplify(scalar.Mul(step, row))
	}
	chunks := loop.Int(x.chunks(m.p.operand))
	return m.Let("tap", scalar.FloorDiv(step, chunks)), m.Simplify(scalar.Mul(scalar.Mod(step, chunks), row))
}

// copyPixels starts the copies of a step of operand 0: one if its channels are contracted, otherwise one for each
// row's length of channels.
func (m *mmaEmitter) copyPixels(s *mmaSide, step, stage scalar.Expr, full int) {
	x, row := m.p.im2col, loop.RowElements(m.p.operand)
	to := scalar.Mul(stage, loop.Int(s.stageLength(m.p)))
	if !x.free {
		tap, channel := m.chunk(step)
		if all := x.taps() * x.chunks(m.p.operand); m.p.parts*m.p.steps > all {
			channel = scalar.Select(scalar.Lt(step, loop.Int(all)), channel, loop.Int(x.channels))
		}
		m.copyTap(s, scalar.Mul(s.index, loop.Int(s.tile)), tap, channel, &loop.CopyTMA{ToAt: to, Mbarrier: full, At: stage})
		return
	}
	first := scalar.Mul(step, loop.Int(m.p.stepLength()))
	for i := range s.tile / row {
		free := scalar.Add(scalar.Mul(s.index, loop.Int(s.tile)), loop.Int(i*row))
		if s.free%s.tile != 0 {
			free = scalar.Min(free, loop.Int(s.free-row))
		}
		free = m.Let("free", m.Simplify(free))
		tap, channel := scalar.FloorDiv(free, loop.Int(x.channels)), scalar.Mod(free, loop.Int(x.channels))
		at := scalar.Add(to, loop.Int(i*row*m.p.stepLength()))
		m.copyTap(s, first, tap, channel, &loop.CopyTMA{ToAt: at, Mbarrier: full, At: stage})
	}
}

// copyTap completes and adds the copy of the channels from one on of a tap of pixels from one on.
func (m *mmaEmitter) copyTap(s *mmaSide, pixel, tap, channel scalar.Expr, to *loop.CopyTMA) {
	x := m.p.im2col
	pixels, taps := m.Unflatten(m.Simplify(pixel), x.pixels), m.Unflatten(m.Simplify(tap), x.window)
	to.Map, to.To, to.ToAt = s.mapNumber, s.slot, m.Simplify(to.ToAt)
	to.From = append(to.From, m.Simplify(channel))
	for i := len(x.axes) - 1; i >= 0; i-- {
		a := x.axes[i]
		at := scalar.Sub(scalar.Mul(pixels[i+1], loop.Int(a.step)), loop.Int(a.lo))
		to.From = append(to.From, m.Simplify(at))
		to.Offset = append(to.Offset, m.Simplify(scalar.Mul(taps[i], loop.Int(a.dilation))))
	}
	to.From = append(to.From, pixels[0])
	m.Add(to)
}

// weights is operand 1 of a convolution in im2col mode, tap by tap.
type weights struct {
	*im2col
	e      *emit.Emitter
	c      *fusion.Contraction
	d      ir.DType
	stored mmaLayout
	in     *fusion.Tensor // where it is staged, or nil
}

// tensorMap returns the tensor map of the weights, with the taps as its batches, and whether they are reversed, as
// in the gradient by the images.
func (w *weights) tensorMap() (b tensorMap, reversed, ok bool) {
	reader := &pieceReader{e: w.e, c: w.c, d: w.d, operand: 1}
	load := w.e.Reader().Operand(w.c.Node)
	for _, reversed := range []bool{false, true} {
		at := func(tap, free, k scalar.Expr) (emit.Piece, bool) {
			if reversed {
				tap = scalar.Sub(loop.Int(w.taps()-1), tap)
			}
			k = w.e.Simplify(scalar.Add(scalar.Mul(tap, loop.Int(w.channels)), k))
			if w.in != nil {
				root, place := w.e.Partition.Place(w.in, ir.Index{loop.Int(0), free, k})
				return emit.Piece{Array: root.ID, At: w.e.Simplify(place)}, true
			}
			return reader.pieceAt(load, w.e.Simplify(free), k, w.stored)
		}
		x := pieces{dtype: w.d, layout: w.stored, batches: w.taps(), free: fusion.Product(w.c.N), length: w.channels, at: at}
		if b, ok := x.tensorMap(w.e); ok && (b.batch || w.taps() == 1) {
			return b, reversed, true
		}
	}
	return b, false, false
}
