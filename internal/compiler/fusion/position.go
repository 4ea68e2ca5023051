package fusion

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Coords returns one variable per axis, named by prefix and axis number, and the
// constant 0 for axes of size 1.
func Coords(prefix string, dims []int) ir.Index {
	at := make(ir.Index, len(dims))
	for i, d := range dims {
		if d == 1 {
			at[i] = loop.Int(0)
			continue
		}
		at[i] = coordinate(prefix+strconv.Itoa(i), d, d > loop.MaxElements)
	}
	return at
}

// variables is [Coords] with variables also for axes of size 1.
func (p *Partition) variables(prefix string, dims []int) ir.Index {
	at := make(ir.Index, len(dims))
	for i, d := range dims {
		at[i] = coordinate(prefix+strconv.Itoa(i), d, p.Long(d))
	}
	return at
}

// coordinate returns a variable for positions below n, of type I64 if long.
func coordinate(name string, n int, long bool) scalar.Expr {
	t := ir.I32
	if long {
		t = ir.I64
	}
	return scalar.NewVar(name, t, 0, int64(max(n-1, 0)))
}

// Long reports whether positions among n elements are 64-bit.
func (p *Partition) Long(n int) bool { return p.options.Long > 0 && n >= p.options.Long }

// Unflatten returns the coordinates of the row-major index i.
func Unflatten(s *scalar.Simplifier, i scalar.Expr, dims []int) ir.Index {
	at := make(ir.Index, len(dims))
	for k := len(dims) - 1; k > 0; k-- {
		at[k] = scalar.Mod(i, loop.Int(dims[k]))
		i = scalar.FloorDiv(i, loop.Int(dims[k]))
	}
	if len(dims) > 0 {
		at[0] = i
	}
	return simplifyAll(s, at)
}

// Spread assigns coordinates to the axes longer than 1; the others are 0.
func Spread(at ir.Index, dims []int) ir.Index {
	out := make(ir.Index, len(dims))
	k := 0
	for i, d := range dims {
		out[i] = loop.Int(0)
		if d != 1 {
			out[i] = at[k]
			k++
		}
	}
	return out
}

// linear returns the row-major index of a position, in I64 if long.
func linear(dims []int, at ir.Index, long bool) scalar.Expr {
	offset, stride := loop.Int(0), 1
	for i := len(dims) - 1; i >= 0; i-- {
		offset = scalar.Add(steps(at[i], stride, long), offset)
		stride *= dims[i]
	}
	return offset
}

// strided returns the offset of a position in an array with strides, in I64 if long.
func strided(strides []int, at ir.Index, long bool) scalar.Expr {
	offset := loop.Int(0)
	for i := len(strides) - 1; i >= 0; i-- {
		offset = scalar.Add(steps(at[i], strides[i], long), offset)
	}
	return offset
}

// steps returns the offset of a coordinate, in I64 if long.
func steps(x scalar.Expr, stride int, long bool) scalar.Expr {
	if long {
		x = loop.Long(x)
	}
	return scalar.Mul(x, loop.Int(stride))
}

// squeeze removes sizes of 1.
func squeeze(dims []int) []int {
	var out []int
	for _, d := range dims {
		if d != 1 {
			out = append(out, d)
		}
	}
	return out
}

// Product returns the number of points of a space with these sizes.
func Product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// simplifyAll returns a position with each of its coordinates simplified.
func simplifyAll(s *scalar.Simplifier, at ir.Index) ir.Index {
	out := make(ir.Index, len(at))
	for i, e := range at {
		if e.Op == scalar.OpVar || e.Op == scalar.OpConst {
			out[i] = e
			continue
		}
		out[i] = s.Simplify(e)
	}
	return out
}

// pick maps a point of a group to a position of a member; coord holds the coordinate of
// each axis.
func pick(at ir.Index, coord []int) ir.Index {
	out := make(ir.Index, len(coord))
	for i, c := range coord {
		if c < 0 {
			out[i] = loop.Int(0)
		} else {
			out[i] = at[c]
		}
	}
	return out
}

// strides returns the row-major strides.
func strides(dims []int) []int {
	steps, step := make([]int, len(dims)), 1
	for i := len(dims) - 1; i >= 0; i-- {
		steps[i] = step
		step *= dims[i]
	}
	return steps
}
