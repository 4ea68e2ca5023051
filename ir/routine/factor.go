package routine

import (
	"math"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
)

// Factor is a factorisation of a batch of matrices in LAPACK's conventions: column-major, each in
// place of its matrix, one after the other in memory.
//
// Its arrays are the matrices, what [FactorOp] names besides, i32 codes (0 means success), and a
// workspace whose contents are undefined before and after.
type Factor struct {
	Op FactorOp
	// DType is the element type: f32 or f64.
	DType             dtype.DType
	Batch, Rows, Cols int
	// Workspace is the size of the workspace in bytes. A library that needs more refuses the routine.
	Workspace int
}

// FactorOp is the operation of a [Factor]. K is the smaller of rows and columns.
type FactorOp uint8

// The operations.
const (
	// CholeskyFactor is l in the lower triangle, of l·lᵀ, as potrf computes it. What is above the diagonal
	// stays. There are no other results.
	CholeskyFactor FactorOp = iota
	// LUFactor is l below the diagonal and u above, as getrf computes them, with K pivots, i64 counted from 1.
	LUFactor
	// HouseholderFactor is r above the diagonal and the reflectors below, as geqrf computes them, with K factors τ.
	HouseholderFactor
	// EigenFactor is the eigenvectors of a symmetric matrix as syevd computes them, with the eigenvalues in
	// ascending order. It reads the lower triangle.
	EigenFactor
	factorOps
)

// String returns the name of an operation.
func (o FactorOp) String() string {
	return [...]string{"cholesky", "lu", "householder", "eigen", ""}[min(o, factorOps)]
}

// factorWords is the number of words of a factorisation.
const factorWords = 6

// Name returns "factor".
func (f Factor) Name() string { return "factor" }

// Words implements [Routine].
func (f Factor) Words() []int {
	return []int{int(f.Op), int(f.DType), f.Batch, f.Rows, f.Cols, f.Workspace}
}

func factorOf(words []int) (Routine, error) {
	if len(words) != factorWords {
		return nil, format.Errorf("the factorisation has %d words; it must have %d", len(words), factorWords)
	}
	for _, w := range words[:2] {
		if w < 0 || w > 255 {
			return nil, format.Errorf("a word of the factorisation is %d; it is out of range", w)
		}
	}
	f := Factor{FactorOp(words[0]), dtype.DType(words[1]), words[2], words[3], words[4], words[5]}
	return f, f.Check()
}

// Check returns an error for an invalid factorisation: an unknown operation or type, sizes that are not
// positive or too large, or a matrix that must be square and is not.
func (f Factor) Check() error {
	if f.Op >= factorOps || f.DType != dtype.F32 && f.DType != dtype.F64 {
		return format.Errorf("operation %d of a factorisation of %s; there is none", f.Op, f.DType)
	}
	if min(f.Batch, f.Rows, f.Cols) < 1 || f.Rows > maxNumber/f.Cols || f.Batch > maxNumber/(f.Rows*f.Cols) || f.Workspace < 0 || f.Workspace > maxWorkspace {
		return format.Errorf("%d factorisations of %d×%d with %d bytes; a size is out of range", f.Batch, f.Rows, f.Cols, f.Workspace)
	}
	if f.Rows != f.Cols && (f.Op == CholeskyFactor || f.Op == EigenFactor) {
		return format.Errorf("a matrix of %d×%d; it must be square", f.Rows, f.Cols)
	}
	return nil
}

// maxWorkspace bounds the workspace, which is more than any GPU has.
const maxWorkspace = min(1<<40, math.MaxInt)

// Diagonal returns the number of elements on the diagonal of a matrix.
func (f Factor) Diagonal() int { return min(f.Rows, f.Cols) }

// Arrays implements [Routine].
func (f Factor) Arrays() []Array {
	out := []Array{{f.Batch * f.Rows * f.Cols * f.DType.Size(), true}}
	switch f.Op {
	case LUFactor:
		out = append(out, Array{f.Batch * f.Diagonal() * 8, true})
	case HouseholderFactor, EigenFactor:
		out = append(out, Array{f.Batch * f.Diagonal() * f.DType.Size(), true})
	}
	return append(out, Array{f.Batch * 4, true}, Array{f.Workspace, true})
}
