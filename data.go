package rlx

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Shuffled returns batches of examples for [Loop.Data]: size rows of each tensor, along its first
// axis, in an order that depends on the seed and the epoch. The last rows that fill no batch are
// dropped; they differ from epoch to epoch. A batch shares memory with the next one. An epoch
// yields an error of kind [ir.ErrShape] if the tensors have different numbers of rows or fewer than
// size, [ir.ErrAttr] for a size below 1, and those of [Tensor.Check].
func Shuffled(data Inputs, size int, seed uint64) func(epoch int) iter.Seq2[Inputs, error] {
	return func(epoch int) iter.Seq2[Inputs, error] {
		return func(yield func(Inputs, error) bool) {
			rows, err := rowsOf(data, size)
			if err != nil {
				yield(nil, err)
				return
			}
			order := rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(rows)
			yieldRows(data, size, order[:rows/size*size], yield)
		}
	}
}

// InOrder returns batches of examples for [Evaluation.Data]: size rows of each tensor in order. The
// last rows that fill no batch are dropped: [AllInOrder] keeps them. The errors are those of [Shuffled]. [Loop.Data] also has the
// number of the epoch: func(int) iter.Seq2[Inputs, error] { return batches() }.
func InOrder(data Inputs, size int) func() iter.Seq2[Inputs, error] {
	return inOrder(data, size, false)
}

// AllInOrder is [InOrder] for graphs with an open size of the batch: the last batch has the rows that are left.
// If size is larger than the number of rows, one batch has them all. [Evaluation.Weight], the number of rows, makes means those over all rows.
func AllInOrder(data Inputs, size int) func() iter.Seq2[Inputs, error] {
	return inOrder(data, size, true)
}

// inOrder returns batches in order, with a last one of fewer rows if all is set.
func inOrder(data Inputs, size int, all bool) func() iter.Seq2[Inputs, error] {
	return func() iter.Seq2[Inputs, error] {
		return func(yield func(Inputs, error) bool) {
			least := size
			if all {
				least = min(size, 1)
			}
			rows, err := rowsOf(data, least)
			if err != nil {
				yield(nil, err)
				return
			}
			if !all {
				rows -= rows % size
			}
			yieldRows(data, min(size, rows), permute.Counting(0, rows), yield)
		}
	}
}

// rowsOf returns the number of rows of all tensors.
func rowsOf(data Inputs, size int) (int, error) {
	if size < 1 {
		return 0, ir.Attrf("size is %d: it must be 1 or more", size)
	}
	rows := -1
	for name, x := range data {
		if err := x.Check(); err != nil {
			return 0, fmt.Errorf("%q: %w", name, err)
		}
		switch {
		case len(x.Dims) == 0:
			return 0, ir.Shapef("%q is %s: it must have an axis of rows", name, x)
		case rows >= 0 && x.Dims[0] != rows:
			return 0, ir.Shapef("%q has %d rows: it must have as many as others, %d", name, x.Dims[0], rows)
		}
		rows = x.Dims[0]
	}
	if rows < size {
		return 0, ir.Shapef("there are %d rows: they must fill a batch of %d", max(rows, 0), size)
	}
	return rows, nil
}

// yieldRows yields the rows in the given order, size at a time; the last batch has those that are left.
func yieldRows(data Inputs, size int, order []int, yield func(Inputs, error) bool) {
	batch := Inputs{}
	for name, x := range data {
		batch[name] = native.Zeros(x.DType, append([]int{size}, x.Dims[1:]...)...)
	}
	for rows := range slices.Chunk(order, size) {
		for name, x := range data {
			to := batch[name]
			n := len(to.Data) / to.Dims[0]
			if len(rows) < size {
				to = native.Tensor{DType: to.DType, Dims: append([]int{len(rows)}, x.Dims[1:]...), Data: to.Data[:n*len(rows)]}
				batch[name] = to
			}
			for i, row := range rows {
				copy(to.Data[i*n:(i+1)*n], x.Data[row*n:])
			}
		}
		if !yield(batch, nil) {
			return
		}
	}
}

// OfRank returns the rows of one of size ranks from the batches of all, for [Loop.Data] of a run that [DataParallel]
// divides: of each batch of n rows those from rank·n/size to (rank+1)·n/size. What the ranks get together depends
// on the batches alone, so that a run that goes on with another number of ranks trains on the same examples. A
// tensor of rank 0 is whole. The rows share memory with the batch. An epoch yields an error of kind
// [ir.ErrAttr] unless 0 ≤ rank < size or if data returns nil, and [ir.ErrShape] for a batch that size does not divide.
func OfRank(data func(epoch int) iter.Seq2[Inputs, error], rank, size int) func(epoch int) iter.Seq2[Inputs, error] {
	return func(epoch int) iter.Seq2[Inputs, error] {
		return func(yield func(Inputs, error) bool) {
			if rank < 0 || rank >= size || data == nil {
				yield(nil, ir.Attrf("rank is %d of %d and data is given: %t: rank must be from 0 to below the number of ranks, and data given", rank, size, data != nil))
				return
			}
			batches := data(epoch)
			if batches == nil {
				yield(nil, ir.Attrf("data returns nil for epoch %d: it must return an iterator", epoch))
				return
			}
			for batch, err := range batches {
				if err == nil {
					batch, err = rowsOfRank(batch, rank, size)
				}
				if !yield(batch, err) || err != nil {
					return
				}
			}
		}
	}
}

// rowsOfRank returns a rank's rows of a batch.
func rowsOfRank(batch Inputs, rank, size int) (Inputs, error) {
	part := Inputs{}
	for name, x := range batch {
		if len(x.Dims) == 0 {
			part[name] = x
			continue
		}
		if x.Dims[0]%size != 0 {
			return nil, ir.Shapef("%q has %d rows: the number of ranks, %d, must divide them", name, x.Dims[0], size)
		}
		n := len(x.Data) / size
		part[name] = native.Tensor{DType: x.DType, Dims: append([]int{x.Dims[0] / size}, x.Dims[1:]...), Data: x.Data[rank*n : (rank+1)*n]}
	}
	return part, nil
}
