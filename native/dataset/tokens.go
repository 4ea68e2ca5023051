package dataset

import (
	"encoding/binary"
	"io"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Tokens are the tokens of a text, in order.
type Tokens []int32

// ReadTokens reads little-endian tokens of type [ir.U16], [ir.I32] or [ir.U32] up to the end. The
// error is of kind [ir.ErrDType] for another type, [ir.ErrAttr] for a nil reader, and [ErrDamaged] for a token above 2³¹−1 or an
// incomplete one.
func ReadTokens(r io.Reader, d ir.DType) (Tokens, error) {
	if d != ir.U16 && d != ir.I32 && d != ir.U32 {
		return nil, ir.DTypef("the type of tokens is %s: it must be u16, i32 or u32", d)
	}
	if r == nil {
		return nil, ir.Attrf("r is nil: it must be a reader")
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	size := d.Size()
	if len(data)%size != 0 {
		return nil, damagedf("it has %d bytes: they must be a multiple of %d", len(data), size)
	}
	out := make(Tokens, len(data)/size)
	for i := range out {
		if size == 2 {
			out[i] = int32(binary.LittleEndian.Uint16(data[2*i:]))
			continue
		}
		n := binary.LittleEndian.Uint32(data[4*i:])
		if n > math.MaxInt32 {
			return nil, damagedf("token %d is %d: it must be from 0 to %d", i, n, math.MaxInt32)
		}
		out[i] = int32(n)
	}
	return out, nil
}

// Windows returns batches for rlx.Loop.Data: "tokens", i32[size, length], are windows at random
// positions of the text, and "targets", of the same type, the tokens after each. The positions
// depend on the seed and the epoch; the batches of an epoch have as many tokens as the text. A
// batch shares memory with the next one. An epoch yields an error of kind [ir.ErrAttr] for a size
// or length below 1 and for a text shorter than size·length + 1 tokens.
func (t Tokens) Windows(size, length int, seed uint64) func(epoch int) iter.Seq2[map[string]native.Tensor, error] {
	return func(epoch int) iter.Seq2[map[string]native.Tensor, error] {
		return t.batches(size, length, func() func(window int) int {
			random := rand.New(rand.NewPCG(seed, uint64(epoch)))
			return func(int) int { return random.IntN(len(t) - length) }
		})
	}
}

// InOrder returns batches for the Data of an rlx.Evaluation, as those of [Tokens.Windows], of windows one after the other. The last
// tokens, which fill no batch, are left out.
func (t Tokens) InOrder(size, length int) func() iter.Seq2[map[string]native.Tensor, error] {
	return func() iter.Seq2[map[string]native.Tensor, error] {
		return t.batches(size, length, func() func(window int) int {
			return func(window int) int { return window * length }
		})
	}
}

// batches returns the batches of an epoch. positions returns, for each pass, the function from the number of a window to its first token.
func (t Tokens) batches(size, length int, positions func() func(window int) int) iter.Seq2[map[string]native.Tensor, error] {
	return func(yield func(map[string]native.Tensor, error) bool) {
		if size < 1 || length < 1 || (len(t)-1)/size < length {
			yield(nil, ir.Attrf("%d tokens for batches of %d × %d: both must be 1 or more, and the tokens more than their product", len(t), size, length))
			return
		}
		tokens, targets := make([]int32, size*length), make([]int32, size*length)
		batch := map[string]native.Tensor{"tokens": native.Int32s(tokens, size, length), "targets": native.Int32s(targets, size, length)}
		position := positions()
		for i := range (len(t) - 1) / (size * length) {
			for row := range size {
				at := position(i*size + row)
				copy(tokens[row*length:(row+1)*length], t[at:])
				copy(targets[row*length:(row+1)*length], t[at+1:])
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}
