package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Diagonals and triangles of matrices, the last two axes of a value, and one-hot encoding.
const (
	OpTril     ir.Op = "tril"
	OpTriu     ir.Op = "triu"
	OpDiag     ir.Op = "diag"
	OpDiagonal ir.Op = "diagonal"
	OpTrace    ir.Op = "trace"
	OpOneHot   ir.Op = "one_hot"
)

// OffsetAttrs hold the offset of a diagonal: 0 is the main diagonal, positive ones lie
// above it.
type OffsetAttrs struct{ Offset int }

// Visit shows the attributes.
func (a *OffsetAttrs) Visit(v ir.AttrVisitor) { v.Int("offset", &a.Offset) }

// OneHotAttrs hold the number of classes, the position of their axis in the result, and
// its element type.
type OneHotAttrs struct {
	Classes ir.Dim
	Axis    int
	DType   ir.DType
}

// Visit shows the attributes.
func (a *OneHotAttrs) Visit(v ir.AttrVisitor) {
	visitDim(v, "classes", &a.Classes)
	v.Int("axis", &a.Axis)
	v.DType("dtype", &a.DType)
}

// Complete sets the defaults: the classes on the last axis, in f32.
func (a *OneHotAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if !given("axis") && len(in) > 0 {
		a.Axis = len(in[0].Shape)
	}
	if !given("dtype") {
		a.DType = ir.F32
	}
}

func init() {
	newOffset := func() ir.Attrs { return &OffsetAttrs{} }
	matricesDoc := []string{"x has rank 2 or more; the axes before the last two are those of a batch"}
	isMatrix := func(n *ir.Node) error {
		if n.Input(0).Rank() < 2 {
			return ir.Shapef("x is %s, not of rank 2 or more", n.Input(0).Type())
		}
		return nil
	}
	for _, t := range []struct {
		op   ir.Op
		doc  string
		keep func(b *ir.Builder, column, row ir.Value) ir.Value
	}{
		{OpTril, "The lower triangle of matrices: x with 0 above a diagonal.", Le},
		{OpTriu, "The upper triangle of matrices: x with 0 below a diagonal.", Ge},
	} {
		defineComposite(composite{
			op: t.op, doc: t.doc, types: plain, newAttrs: newOffset, constraints: matricesDoc, check: isMatrix,
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				column, row := offDiagonal(b, in[0].Shape(), n.Attrs().(*OffsetAttrs).Offset)
				return Select(b, t.keep(b, column, row), in[0], ZerosLike(b, in[0]))
			},
		})
	}
	defineComposite(composite{
		op: OpDiag, doc: "Square matrices with the vectors along the last axis of x on a diagonal and 0 elsewhere.",
		types: plain, newAttrs: newOffset, constraints: []string{"x has rank 1 or more"},
		check: func(n *ir.Node) error {
			if n.Input(0).Rank() < 1 {
				return ir.Shapef("x is %s, not of rank 1 or more", n.Input(0).Type())
			}
			return nil
		},
		body: diag,
	})
	sizedDoc := append(slices.Clone(matricesDoc), "the matrices have no symbolic size, and the diagonal lies inside")
	defineComposite(composite{
		op: OpDiagonal, doc: "The elements on a diagonal of the matrices of x, as the last axis.",
		types: plain, newAttrs: newOffset, constraints: sizedDoc, check: isMatrix,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return diagonal(b, in[0], n.Attrs().(*OffsetAttrs).Offset)
		},
	})
	defineComposite(composite{
		op: OpTrace, doc: "The sum of the elements on a diagonal of the matrices of x.",
		types: numbers, newAttrs: newOffset, constraints: sizedDoc, check: isMatrix,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return ReduceSum(b, diagonal(b, in[0], n.Attrs().(*OffsetAttrs).Offset), -1)
		},
	})
	defineOneHot()
}

// offDiagonal returns the column index of each element, and its row index plus offset.
func offDiagonal(b *ir.Builder, shape ir.Shape, offset int) (column, row ir.Value) {
	row = Iota(b, ir.I32, -2, shape...)
	return Iota(b, ir.I32, -1, shape...), Add(b, row, ConstLike(b, row, float64(offset)))
}

func diag(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	offset, x := n.Attrs().(*OffsetAttrs).Offset, in[0]
	before, after := max(-offset, 0), max(offset, 0)
	last := x.Rank() - 1
	zero := Zeros(b, x.DType())
	// the vector along the rows, shifted down by the rows above the diagonal
	low, high := make([]int, last+1), make([]int, last+1)
	low[last], high[last] = before, after
	rows := Pad(b, x, zero, low, high, nil)
	if b.Err() != nil {
		return ir.Value{}
	}
	shape := append(rows.Shape().Clone(), rows.Dim(last))
	wide := BroadcastInDim(b, rows, shape, counting(0, last+1))
	column, row := offDiagonal(b, shape, offset)
	return Select(b, Eq(b, column, row), wide, ZerosLike(b, wide))
}

// diagonal returns the elements of a diagonal, which are evenly strided in memory.
func diagonal(b *ir.Builder, x ir.Value, offset int) ir.Value {
	rows, _ := sizeOf(b, OpDiagonal, x, -2)
	columns, ok := sizeOf(b, OpDiagonal, x, -1)
	if !ok {
		return ir.Value{}
	}
	above, below := max(offset, 0), max(-offset, 0)
	count := min(rows-below, columns-above)
	if count < 0 {
		b.Failf(OpDiagonal, []ir.Value{x}, ir.Attrf("offset is %d, outside a matrix of %d by %d", offset, rows, columns))
		return ir.Value{}
	}
	lead := x.Shape()[:x.Rank()-2]
	flat := Reshape(b, x, append(lead.Clone(), ir.N(rows*columns))...)
	if count == 0 {
		return SliceAxis(b, flat, -1, ir.N(0), ir.N(0))
	}
	start, stride := ir.Dims(repeatInt(0, len(lead)+1)...), repeatInt(1, len(lead)+1)
	start[len(lead)], stride[len(lead)] = ir.N(below*columns+above), columns+1
	return Slice(b, flat, start, append(lead.Clone(), ir.N(count)), stride)
}

func defineOneHot() {
	defineComposite(composite{
		op: OpOneHot, doc: "The one-hot encoding of integers x along a new axis: 1 at class x, 0 elsewhere, and all 0 where x is out of range.",
		types: integers, newAttrs: func() ir.Attrs { return &OneHotAttrs{Classes: ir.N(0), DType: ir.F32} },
		constraints: []string{"classes is not negative; axis is an axis of the result", "dtype is a number type or bool"},
		noGrad:      "of integers",
		check: func(n *ir.Node) error {
			a := n.Attrs().(*OneHotAttrs)
			if !a.Classes.Valid() {
				return ir.Attrf("classes is %s, negative or too large", a.Classes)
			}
			if err := (bools | numbers).checkAttr(a.DType); err != nil {
				return err
			}
			return checkAxes([]int{a.Axis}, n.Input(0).Rank()+1)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a := n.Attrs().(*OneHotAttrs)
			shape := slices.Insert(in[0].Shape().Clone(), a.Axis, a.Classes)
			// 8 and 16 bits may not represent all classes.
			x := BroadcastInDim(b, wide(b, in[0]), shape, withoutAxis(len(shape), a.Axis))
			hit := Eq(b, Iota(b, x.DType(), a.Axis, shape...), x)
			if a.DType.IsComplex() {
				one := Const(b, a.DType, 1, shape...)
				return Select(b, hit, one, ZerosLike(b, one))
			}
			return Convert(b, hit, a.DType)
		},
	})
}

// Tril returns the lower triangle of the matrices on the last two axes of x: 0 above the
// diagonal with the given offset.
func Tril(b *ir.Builder, x ir.Value, offset int) ir.Value {
	return b.Add1(OpTril, &OffsetAttrs{offset}, x)
}

// Triu returns the upper triangle of the matrices on the last two axes of x: 0 below the
// diagonal with the given offset.
func Triu(b *ir.Builder, x ir.Value, offset int) ir.Value {
	return b.Add1(OpTriu, &OffsetAttrs{offset}, x)
}

// Diag returns square matrices with the last axis of x on the diagonal with the given
// offset and 0 elsewhere.
func Diag(b *ir.Builder, x ir.Value, offset int) ir.Value {
	return b.Add1(OpDiag, &OffsetAttrs{offset}, x)
}

// Diagonal returns the diagonal with the given offset of the matrices on the last two axes
// of x, as the last axis. The sizes are constant.
func Diagonal(b *ir.Builder, x ir.Value, offset int) ir.Value {
	return b.Add1(OpDiagonal, &OffsetAttrs{offset}, x)
}

// Trace returns the sum of the diagonal with the given offset of the matrices on the last
// two axes of x.
func Trace(b *ir.Builder, x ir.Value, offset int) ir.Value {
	return b.Add1(OpTrace, &OffsetAttrs{offset}, x)
}

// OneHot returns the one-hot encoding of integers x along a new last axis of the given
// number of classes, in element type d: 1 at class x, 0 elsewhere, and all 0 where x is
// out of range.
func OneHot(b *ir.Builder, x ir.Value, classes ir.Dim, d ir.DType) ir.Value {
	return b.Add1(OpOneHot, &OneHotAttrs{classes, x.Rank(), d}, x)
}
