package kerneltest

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// Products returns f32 products for each source of the operands of a [loop.MmaShape].
func Products() []*Case {
	return []*Case{
		NewProductKernel(dtype.F32, 16, false, false).Case(),
		NewProductKernel(dtype.F32, 32, false, true).Case(),
		NewProductKernel(dtype.F32, 256, false, true).Case(),
	}
}

// HalfProducts returns 16-bit products, and a kernel with the shuffles that accompany them: an
// exchange between the threads of a row.
func HalfProducts() []*Case {
	return []*Case{
		NewProductKernel(dtype.F16, 8, false, false).Case(),
		NewProductKernel(dtype.BF16, 24, false, false).Case(),
		NewProductKernel(dtype.F16, 128, true, false).Case(),
		NewProductKernel(dtype.BF16, 256, true, false).Case(),
		NewProductKernel(dtype.F16, 32, false, true).Case(),
		NewProductKernel(dtype.BF16, 64, true, true).Case(),
		Shuffled(0),
	}
}

// ProductKernel is a kernel of one warp group that multiplies a 64×k matrix by a k×n one with
// asynchronous copies and multiply-adds, in parts that tests omit or reorder.
type ProductKernel struct {
	Operand dtype.DType
	N       int
	Panels  bool // B has its rows along n, in panels
	Left    bool // A is in registers

	Copies, Wait, Fence, Barrier []loop.Stmt
	Fragments                    []loop.Stmt
	Multiply, Done, Store        []loop.Stmt
}

// The arrays of a [ProductKernel].
const (
	ProductLeft   = iota // A, row-major
	ProductRight         // B, row-major with panels, else column-major
	ProductResult        // D
	LeftTile
	RightTile
)

// K returns the depth of the product: a row of a tile.
func (p *ProductKernel) K() int { return loop.RowElements(p.Operand) }

// NewProductKernel returns the kernel for operands of a type, F16, BF16 or F32, and an atom of n
// columns. With panels n is a multiple of the elements of a tile's row.
func NewProductKernel(operand dtype.DType, n int, panels, inRegisters bool) *ProductKernel {
	p := &ProductKernel{Operand: operand, N: n, Panels: panels, Left: inRegisters}
	piece := loop.ChunkElements(operand)
	copies := func(from, to, rows, row, depth int) {
		perRow := row / piece
		for first := 0; first < rows*perRow; first += loop.WarpGroup {
			id := s.Add(loop.LocalID(0, loop.WarpGroup), i32(first))
			r, at := s.Div(id, i32(perRow)), s.Mul(s.Rem(id, i32(perRow)), i32(piece))
			free, k := r, at
			if depth > 0 {
				free, k = at, r
			}
			var copied loop.Stmt = &loop.CopyAsync{
				To: to, ToAt: loop.TileOffset(operand, depth, free, k), From: from, Count: piece,
				FromAt: s.Add(s.Mul(r, i32(row)), at),
			}
			if rows*perRow-first < loop.WarpGroup {
				copied = when(s.Lt(id, i32(rows*perRow)), copied)
			}
			p.Copies = append(p.Copies, copied)
		}
	}
	copies(ProductLeft, LeftTile, loop.MmaRows, p.K(), 0)
	if panels {
		copies(ProductRight, RightTile, p.K(), n, p.K())
	} else {
		copies(ProductRight, RightTile, n, p.K(), 0)
	}
	p.Copies = append(p.Copies, &loop.CopyCommit{})
	p.Wait, p.Fence, p.Barrier = []loop.Stmt{&loop.CopyWait{}}, []loop.Stmt{&loop.ProxyFence{}}, []loop.Stmt{barrier()}
	p.products()
	return p
}

// products adds the multiply-adds and the stores of the sums.
func (p *ProductKernel) products() {
	atom := loop.MmaShape{Operand: p.Operand, N: p.N}
	var sums []string
	for i := range atom.Sums() {
		sums = append(sums, fmt.Sprintf("sum%d", i))
		p.Fragments = append(p.Fragments, &loop.Var{Name: sums[i], Init: f32(0)})
	}
	row, column := atom.Origin(loop.LocalID(0, loop.WarpGroup))
	m := &loop.Mma{Shape: atom}
	for k := 0; k < p.K(); k += atom.K() {
		t := loop.MmaTerm{Sums: sums, A: loop.Tile{Array: LeftTile, At: i32(0), K: k}, B: loop.Tile{Array: RightTile, At: i32(0), K: k}}
		if p.Panels {
			t.B.Depth = p.K()
		}
		if p.Left {
			for i := range 4 {
				r, kk := atom.Left(i)
				name := fmt.Sprintf("left%d_%d", k, i)
				t.LeftRegisters = append(t.LeftRegisters, name)
				element := func(at s.Expr) s.Expr {
					return s.LoadAt(LeftTile, p.Operand, loop.TileOffset(p.Operand, 0, s.Add(row, i32(r)), s.Add(at, i32(k+kk))))
				}
				if p.Operand == dtype.F32 {
					p.Fragments = append(p.Fragments, &loop.Var{Name: name, Init: element(column)})
					continue
				}
				pair := s.Mul(column, i32(2))
				p.Fragments = append(p.Fragments, &loop.Var{Name: name, Init: s.ConstI(dtype.U32, 0)}, &loop.Pack{
					Name: name, Type: p.Operand,
					Low: s.Convert(element(pair), dtype.F32), High: s.Convert(element(s.Add(pair, i32(1))), dtype.F32),
				})
			}
		}
		m.Terms = append(m.Terms, t)
	}
	p.Multiply, p.Done = []loop.Stmt{m}, []loop.Stmt{&loop.MmaWait{Names: sums}}
	for i, name := range sums {
		r, c := atom.Sum(i)
		at := s.Add(s.Mul(s.Add(row, i32(r)), i32(p.N)), s.Add(s.Mul(column, i32(2)), i32(c)))
		p.Store = append(p.Store, store(ProductResult, at, s.FreeVar(name, dtype.F32)))
	}
}

// Kernel returns the parts in order as a kernel.
func (p *ProductKernel) Kernel() *loop.Kernel {
	array := func(name string, t dtype.DType, n int, space loop.Space, access loop.Access) loop.Array {
		return loop.Array{Name: name, DType: t, Width: 1, Len: n, Space: space, Access: access}
	}
	k := &loop.Kernel{
		Name: p.name(), Workgroup: [3]int{loop.WarpGroup, 1, 1}, Groups: [3]int{1, 1, 1},
		Arrays: []loop.Array{
			ProductLeft:   array("left", p.Operand, loop.MmaRows*p.K(), loop.Storage, loop.Read),
			ProductRight:  array("right", p.Operand, p.N*p.K(), loop.Storage, loop.Read),
			ProductResult: array("result", dtype.F32, loop.MmaRows*p.N, loop.Storage, loop.ReadWrite),
			LeftTile:      array("left_tile", p.Operand, loop.MmaRows*p.K(), loop.Shared, loop.Read),
			RightTile:     array("right_tile", p.Operand, p.N*p.K(), loop.Shared, loop.Read),
		},
	}
	for _, part := range [][]loop.Stmt{p.Copies, p.Wait, p.Fence, p.Barrier, p.Fragments, p.Multiply, p.Done, p.Store} {
		k.Body = append(k.Body, part...)
	}
	return k
}

func (p *ProductKernel) name() string {
	name := fmt.Sprintf("product_%s_%d", p.Operand, p.N)
	if p.Panels {
		name += "_panels"
	}
	if p.Left {
		name += "_left"
	}
	return name
}

// Case returns the kernel with operands that use all their digits, and their product.
func (p *ProductKernel) Case() *Case {
	matrix := func(seed uint32, n int) []float64 { return mapped(floats(seed, n), dtype.BF16.Round) }
	a, b := matrix(1, loop.MmaRows*p.K()), matrix(2, p.K()*p.N)
	want := zeros(loop.MmaRows * p.N)
	for i := range want {
		row, column := i/p.N, i%p.N
		for k := range p.K() {
			want[i] += a[row*p.K()+k] * b[k*p.N+column]
		}
	}
	return &Case{
		Kernel:    p.Kernel(),
		Arrays:    [][]float64{a, p.right(b), zeros(len(want))},
		Want:      [][]float64{nil, nil, want},
		Tolerance: math.Ldexp(1, -18),
	}
}

// right returns B in the layout of the kernel.
func (p *ProductKernel) right(b []float64) []float64 {
	if p.Panels {
		return b
	}
	transposed := make([]float64, len(b))
	for i, x := range b {
		transposed[i%p.N*p.K()+i/p.N] = x
	}
	return transposed
}

// Shuffled combines each of 64 threads' value with those of three others of its warp or, if a
// subgroup size is given, of its subgroup.
func Shuffled(subgroup int) *Case {
	const threads, across = 64, 16
	x := floats(9, threads)
	want := zeros(threads)
	li, size, far := loop.LocalIndex(threads), [3]int{threads, 1, 1}, [3]int{1, 6, 31}
	if subgroup > 0 { // in a workgroup of two axes
		li, size, far = mad(loop.LocalID(1, threads/across), i32(across), loop.LocalID(0, across)), [3]int{across, threads / across, 1}, [3]int{1, 2, subgroup - 1}
	}
	body := block{let("x0", s.LoadAt(0, dtype.F32, li))}
	sum := fv("x0")
	for i, xor := range far {
		name := fmt.Sprintf("other%d", i)
		body = append(body, &loop.Shuffle{Name: name, Value: fv("x0"), Xor: xor})
		sum = s.Add(s.Mul(sum, f32(2)), fv(name))
	}
	for t := range want {
		want[t] = ((2*x[t]+x[t^far[0]])*2+x[t^far[1]])*2 + x[t^far[2]]
	}
	return &Case{
		Kernel: &loop.Kernel{
			Name:      "shuffled",
			Arrays:    []loop.Array{input("x", dtype.F32, threads), output("y", dtype.F32, threads)},
			Workgroup: size,
			Groups:    [3]int{1, 1, 1},
			Subgroup:  [2]int{subgroup, subgroup},
			Body:      append(body, store(1, li, sum)),
		},
		Arrays:    [][]float64{x, zeros(threads)},
		Want:      [][]float64{nil, want},
		Tolerance: 1e-5,
	}
}
