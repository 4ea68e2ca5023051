package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// coordinate is an independent coordinate of a factor's elements: a variable of its axes or,
// in a convolution, a sum of several.
type coordinate struct {
	v    scalar.Expr // from 0
	size int
	is   affine // its value in the variables of the factor
}

// maxTable is the maximum length of a table of offsets.
const maxTable = 1 << 22

// gathered returns a factor as a matrix with tables of the offsets of rows and columns. Its
// values are in memory already, or each is materialised once, which for the windows of a
// convolution is far less than the matrix (an implicit im2col). It returns false where that
// does not apply.
func (f factor) gathered(c *compiler) (matrix, bool, error) {
	known := f.dims()
	if rows, cols := product(f.rows), product(f.cols); rows*cols == 0 || max(rows, cols) > maxTable {
		return matrix{}, false, nil
	}
	if m, ok := f.stored(c, f.value, known); ok {
		return m, true, nil
	}
	value, coords := windowCoordinates(f.value, known)
	if coords == nil {
		return matrix{}, false, nil
	}
	orderAsStored(value, coords)
	if elems, ok := pointsOf(coords); !ok || elems > product(f.batch)*product(f.rows)*product(f.cols) {
		return matrix{}, false, nil
	}
	m, err := channelFactor{value: value, coords: coords}.matrix(c, f.name, f.factorAxes, f.id, f.value.Type)
	return m, true, err
}

// stored returns the matrix of a factor whose elements are loaded from a buffer at offsets that tables have, or
// false for others.
func (x *factorAxes) stored(c *compiler, e scalar.Expr, known map[string]int) (m matrix, ok bool) {
	if e.Op != scalar.OpLoad {
		return m, false
	}
	sum, buf := affineOf(e.Args[0]), c.buffers[e.Ref]
	if buf == nil || buf.elems > math.MaxInt32 || !sum.isOver(known) {
		return m, false
	}
	return x.table(sum, buf), true
}

// pointsOf returns the number of points of coordinates, or false if tables cannot number them.
func pointsOf(coords []coordinate) (n int, ok bool) {
	n = 1
	for _, at := range coords {
		if n *= at.size; n > math.MaxInt32 {
			return 0, false
		}
	}
	return n, true
}

// dims returns the variables of the axes of a factor, with their sizes.
func (x *factorAxes) dims() map[string]int {
	out := map[string]int{}
	add := func(at ir.Index, dims []int) {
		for i, v := range at {
			if v.Op == scalar.OpVar {
				out[v.Name] = dims[i]
			}
		}
	}
	add(x.batchAt, x.batch)
	add(x.rowsAt, x.rows)
	add(x.colsAt, x.cols)
	return out
}

// isOver reports whether an affine form uses the given variables only.
func (a affine) isOver(known map[string]int) bool {
	return !slices.ContainsFunc(a.terms, func(t affineTerm) bool { return t.of.Op != scalar.OpVar || known[t.of.Name] == 0 })
}

// add adds a multiple of another affine form.
func (a *affine) add(b affine, by int) {
	a.constant += by * b.constant
	for _, t := range b.terms {
		a.terms = append(a.terms, affineTerm{by * t.coef, t.of})
	}
}

// table returns a matrix whose tables of element offsets add up to sum.
func (x *factorAxes) table(sum affine, buf *buffer) matrix {
	m := matrix{buf: buf, base: sum.constant}
	coefs := func(at ir.Index) []int {
		out := make([]int, len(at))
		for i, v := range at {
			for _, t := range sum.terms {
				if v.Op == scalar.OpVar && t.of.Name == v.Name {
					out[i] += t.coef
				}
			}
		}
		return out
	}
	m.batch = coefs(x.batchAt)
	m.rowAt, m.colAt = offsets(x.rows, coefs(x.rowsAt)), offsets(x.cols, coefs(x.colsAt))
	for _, table := range [][]int32{m.rowAt, m.colAt} { // relative to the lowest
		lowest := slices.Min(table)
		m.base += int(lowest)
		for i := range table {
			table[i] -= lowest
		}
	}
	return m.straightened()
}

// straightened returns a matrix by strides in place of tables, where those suffice.
func (m matrix) straightened() matrix {
	step := func(table []int32) (int, bool) {
		if len(table) < 2 {
			return 0, true
		}
		for i := 2; i < len(table); i++ {
			if table[i]-table[i-1] != table[1]-table[0] {
				return 0, false
			}
		}
		return int(table[1] - table[0]), true
	}
	row, rowsFit := step(m.rowAt)
	col, colsFit := step(m.colAt)
	straight := matrix{buf: m.buf, base: m.base, batch: m.batch, row: row, col: col}
	if !rowsFit || !colsFit || row < 0 || col < 0 || !straight.fitStrides(len(m.rowAt), len(m.colAt)) {
		return m
	}
	return straight
}

// offsets returns the dot product of coordinates and coefficients for every point in row-major
// order.
func offsets(dims, coefs []int) []int32 {
	out := []int32{0}
	for i, d := range dims {
		next := make([]int32, 0, len(out)*d)
		for _, base := range out {
			for k := range d {
				next = append(next, base+int32(k*coefs[i]))
			}
		}
		out = next
	}
	return out
}

// windowCoordinates replaces sums of several variables in an expression by coordinates of
// their own. It returns the expression and all its coordinates, nil where a variable occurs
// both in a sum and outside.
func windowCoordinates(e scalar.Expr, known map[string]int) (scalar.Expr, []coordinate) {
	var coords []coordinate
	inside, outside := map[string]bool{}, map[string]bool{}
	var with func(n scalar.Expr) (scalar.Expr, bool)
	with = func(n scalar.Expr) (scalar.Expr, bool) {
		switch n.Op {
		case scalar.OpVar:
			if known[n.Name] > 0 && !outside[n.Name] {
				outside[n.Name] = true
				coords = append(coords, coordinate{n, known[n.Name], affine{terms: []affineTerm{{1, n}}}})
			}
			return nil, false
		case scalar.OpLoad: // an offset is a sum of coordinates, not a coordinate
			sum := affineOf(n.Args[0])
			at := scalar.Convert(loop.Int(sum.constant), n.Args[0].Type)
			for _, t := range sum.terms {
				x := scalar.Convert(scalar.Substitute(t.of, with), at.Type)
				at = scalar.Add(at, scalar.Mul(x, loop.Int(t.coef)))
			}
			return scalar.LoadAt(n.Ref, n.Type, at), true
		case scalar.OpAdd, scalar.OpSub:
		default:
			return nil, false
		}
		sum := affineOf(n)
		if n.Type != ir.I32 || len(sum.terms) < 2 || !sum.isOver(known) || slices.ContainsFunc(sum.terms, func(t affineTerm) bool { return t.coef < 0 }) {
			return nil, false
		}
		return windowOf(&coords, sum, known, inside), true
	}
	replaced := scalar.Substitute(e, with)
	for name := range inside {
		if outside[name] {
			return nil, nil
		}
	}
	return replaced, coords
}

// orderAsStored sorts coordinates by their strides in the loads of an expression, the largest
// first.
func orderAsStored(e scalar.Expr, coords []coordinate) {
	by := strides(e)
	slices.SortStableFunc(coords, func(a, b coordinate) int { return by[b.v.Name] - by[a.v.Name] })
}

// strides returns the largest stride of each variable in the loads of an expression, in either direction: the filters of a
// convolution's gradient are read backwards.
func strides(e scalar.Expr) map[string]int {
	by := map[string]int{}
	scalar.Walk(e, func(n scalar.Expr) {
		if n.Op != scalar.OpLoad {
			return
		}
		for _, t := range affineOf(n.Args[0]).terms {
			scalar.Walk(t.of, func(v scalar.Expr) {
				if v.Op == scalar.OpVar {
					by[v.Name] = max(by[v.Name], t.coef, -t.coef)
				}
			})
		}
	})
	return by
}

// orderSumAxes sorts the summed axes of a contraction by their strides in the left factor, so
// that its elements are read in order.
func orderSumAxes(k *fusion.ContractionCode) {
	a, b := strides(k.A), strides(k.B)
	order := permute.Counting(0, len(k.K))
	name := func(i int) string { return k.KAt[i].Name }
	slices.SortStableFunc(order, func(i, j int) int {
		if d := a[name(j)] - a[name(i)]; d != 0 {
			return d
		}
		return b[name(j)] - b[name(i)]
	})
	dims, at := make([]int, len(order)), make(ir.Index, len(order))
	for i, from := range order {
		dims[i], at[i] = k.K[from], k.KAt[from]
	}
	k.K, k.KAt = dims, at
}

// windowOf returns a sum as its coordinate plus a constant, and adds the coordinate if it is
// new.
func windowOf(coords *[]coordinate, sum affine, known map[string]int, inside map[string]bool) scalar.Expr {
	constant := scalar.ConstI(ir.I32, int64(sum.constant))
	sum.constant = 0
	size := 1
	slices.SortFunc(sum.terms, func(a, b affineTerm) int {
		if a.of.Name < b.of.Name {
			return -1
		}
		return 1
	})
	for _, t := range sum.terms {
		inside[t.of.Name] = true
		size += t.coef * (known[t.of.Name] - 1)
	}
	for _, c := range *coords {
		if slices.EqualFunc(c.is.terms, sum.terms, func(a, b affineTerm) bool { return a.coef == b.coef && a.of.Name == b.of.Name }) {
			return scalar.Add(c.v, constant)
		}
	}
	v := scalar.NewVar("window"+string(rune('a'+len(*coords))), ir.I32, 0, int64(size-1))
	*coords = append(*coords, coordinate{v, size, sum})
	return scalar.Add(v, constant)
}
