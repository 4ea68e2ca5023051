package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/scalar"
)

// transposeStep copies a tensor in another order of axes, in tiles of the two axes that are
// contiguous in the source and in the destination.
type transposeStep struct {
	from, to       *buffer
	fromAt, toAt   int
	dims           []int // of all axes
	fromBy, toBy   []int // the strides of all axes
	read, write    int   // the axes with stride 1 in the source and in the destination
	piece          int   // elements of a tile along axis write
	pieces, chunks int   // tiles along that axis, and in all
	cost           float64
}

// The bounds of a tile along axis write. It is shortened where there are too few tiles for the
// cores.
const maxPiece, minPiece = 256, 32

// narrowAxis is the size of an axis below which no tiles of vectors fit: the channels of an image, for
// one. Such an axis is copied element by element.
const narrowAxis = 8

// newTranspose returns a step for code that is nothing but a transpose; nil for any other.
func newTranspose(code *fusion.Code, dims []int, buffers map[int]*buffer) *transposeStep {
	if len(code.Stages) > 0 || len(code.Points) > 0 || len(code.Rows) != 1 || code.Rows[0].Guarded {
		return nil
	}
	store := code.Rows[0]
	if store.Value.Op != scalar.OpLoad || len(dims) < 2 {
		return nil
	}
	t := &transposeStep{from: buffers[store.Value.Ref], to: buffers[store.Tensor.ID], dims: dims, read: -1, write: -1, chunks: 1}
	if t.from == nil || t.to == nil || t.from.dtype != t.to.dtype || t.to.dtype.Size() > 8 {
		return nil
	}
	from, to := affineOf(store.Value.Args[0]), affineOf(store.Offset)
	t.fromAt, t.toAt = from.constant, to.constant
	known := 0
	for i, v := range code.Outer {
		a, b := from.coef(v.Name), to.coef(v.Name)
		if a <= 0 || b <= 0 {
			return nil
		}
		known += 2
		t.fromBy, t.toBy = append(t.fromBy, a), append(t.toBy, b)
		if a == 1 {
			t.read = i
		}
		if b == 1 {
			t.write = i
		}
	}
	if known != len(from.terms)+len(to.terms) || t.read < 0 || t.write < 0 || t.read == t.write || dims[t.read] < narrowAxis {
		return nil
	}
	for t.piece = maxPiece; ; t.piece /= 2 {
		t.pieces = (dims[t.write] + t.piece - 1) / t.piece
		t.chunks = t.pieces * product(dims) / dims[t.read] / dims[t.write]
		if t.piece == minPiece || t.chunks >= 4*workers() {
			break
		}
	}
	t.cost = float64(product(dims)) / 2
	return t
}

func (t *transposeStep) run(r *runner) { r.job.runCosting(t.cost, t, t.chunks) }

// do transposes one tile, which spans the whole axis read.
func (t *transposeStep) do(_, chunk int) {
	first := chunk % t.pieces * t.piece
	from, to := t.fromAt+first*t.fromBy[t.write], t.toAt+first
	rest := chunk / t.pieces
	for i := len(t.dims) - 1; i >= 0; i-- {
		if i == t.read || i == t.write {
			continue
		}
		at := rest % t.dims[i]
		rest /= t.dims[i]
		from, to = from+at*t.fromBy[i], to+at*t.toBy[i]
	}
	rows := min(t.piece, t.dims[t.write]-first)
	switch t.to.dtype.Size() {
	case 1:
		transposePiece[uint8](t, from, to, rows)
	case 2:
		transposePiece[uint16](t, from, to, rows)
	case 4:
		transposePiece[uint32](t, from, to, rows)
	default:
		transposePiece[uint64](t, from, to, rows)
	}
}

func transposePiece[T uint8 | uint16 | uint32 | uint64](t *transposeStep, from, to, rows int) {
	if t.dims[t.write] < narrowAxis {
		n, by := t.dims[t.read], t.toBy[t.read]
		for i := range rows {
			at, out := to+i, view[T](t.to)
			for _, x := range view[T](t.from)[from+i*t.fromBy[t.write]:][:n] {
				out[at] = x
				at += by
			}
		}
		return
	}
	simd.Transpose(view[T](t.to)[to:], t.toBy[t.read], view[T](t.from)[from:], t.fromBy[t.write], rows, t.dims[t.read])
}
