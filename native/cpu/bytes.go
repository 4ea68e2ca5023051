package cpu

import (
	"maps"
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// byteWords makes code that computes with whole arrays of bytes, element by element, compute with words of four.
type byteWords struct {
	c      *compiler
	offset scalar.Expr // of all elements
	at     scalar.Expr // of the words
	words  int
	known  map[int]int                 // the IDs of buffers as words
	made   map[scalar.Expr]scalar.Expr // nil if words have no such operation
}

// minByteWords is the least number of words for which they are worth steps of their own.
const minByteWords = 256

// Masks of the bytes of a word.
const (
	eachByte = 0x01010101
	highBits = 0x80808080
)

// splitBytes returns code for words in place of bytes with its size, and code for the bytes after the last word,
// nil without any. It returns code and outer as they are where words do not have its operations.
func splitBytes(c *compiler, code *fusion.Code, outer []int) (words *fusion.Code, size []int, rest *fusion.Code) {
	elems := product(outer)
	if !jit.Available() || len(code.Stages)+len(code.Points)+len(code.Inner) > 0 || len(code.Rows) == 0 || elems/4 < minByteWords {
		return code, outer, nil
	}
	w := &byteWords{
		c: c, offset: scalar.Simplify(code.Rows[0].Offset), words: elems / 4,
		at: scalar.NewVar("o0", ir.I32, 0, int64(elems/4-1)), known: map[int]int{}, made: map[scalar.Expr]scalar.Expr{},
	}
	if !isDense(code, affineOf(w.offset), outer, elems) {
		return code, outer, nil
	}
	out := &fusion.Code{Outer: []scalar.Expr{w.at}}
	for _, s := range code.Rows {
		to, value := c.buffers[s.Tensor.ID], w.word(s.Value)
		if s.Guarded || to == nil || to.dtype != s.Value.Type || value == nil || !scalar.Equal(scalar.Simplify(s.Offset), w.offset) {
			return code, outer, nil
		}
		out.Rows = append(out.Rows, fusion.ElementStore{
			Tensor: &fusion.Tensor{ID: w.buffer(s.Tensor.ID), Name: s.Tensor.Name, DType: ir.U32}, Offset: w.at, Value: value,
		})
	}
	for _, id := range slices.Sorted(maps.Keys(w.known)) {
		c.add(&wordsStep{c.buffers[id], c.buffers[w.known[id]]})
	}
	if elems%4 > 0 {
		rest = w.after(code, elems)
	}
	return out, []int{w.words}, rest
}

// after returns the code of the bytes after the last word.
func (w *byteWords) after(code *fusion.Code, elems int) *fusion.Code {
	v := scalar.NewVar("o0", ir.I32, 0, int64(elems%4-1))
	place := scalar.Add(v, scalar.ConstI(ir.I32, int64(elems-elems%4)))
	out := &fusion.Code{Outer: []scalar.Expr{v}}
	for _, s := range code.Rows {
		s.Offset = place
		s.Value = scalar.Substitute(s.Value, func(x scalar.Expr) (scalar.Expr, bool) {
			if x.Op == scalar.OpLoad {
				return scalar.LoadAt(x.Ref, x.Type, place), true
			}
			return x, false
		})
		out.Rows = append(out.Rows, s)
	}
	return out
}

// buffer returns the ID of a buffer as words.
func (w *byteWords) buffer(id int) int {
	words, ok := w.known[id]
	if !ok {
		words = w.c.bufferID(&buffer{dtype: ir.U32, elems: w.words})
		w.known[id] = words
	}
	return words
}

// word returns four elements of a value; nil where there is no such operation.
func (w *byteWords) word(x scalar.Expr) scalar.Expr {
	if y, ok := w.made[x]; ok {
		return y
	}
	var y scalar.Expr
	if x.Type.Size() == 1 && (x.Type.IsBool() || x.Type == ir.I8 || x.Type == ir.U8) {
		y = w.compute(x)
	}
	w.made[x] = y
	return y
}

// compute is [byteWords.word] of a value that is not known yet.
func (w *byteWords) compute(x scalar.Expr) scalar.Expr {
	switch x.Op {
	case scalar.OpLoad:
		if from := w.c.buffers[x.Ref]; from == nil || from.dtype != x.Type || !scalar.Equal(scalar.Simplify(x.Args[0]), w.offset) {
			return nil
		}
		return scalar.LoadAt(w.buffer(x.Ref), ir.U32, w.at)
	case scalar.OpConst:
		v, _ := x.Value()
		return scalar.ConstI(ir.U32, int64(uint8(v.I))*eachByte)
	}
	var args []scalar.Expr
	for _, a := range x.Args {
		arg := w.word(a)
		if arg == nil {
			return nil
		}
		args = append(args, arg)
	}
	return applyWords(x, args)
}

// applyWords applies the operation of x to words; nil where there is none.
func applyWords(x scalar.Expr, args []scalar.Expr) scalar.Expr {
	ones := scalar.ConstI(ir.U32, eachByte)
	switch x.Op {
	case scalar.OpAnd, scalar.OpOr, scalar.OpXor:
		return scalar.New(x.Op, args...)
	case scalar.OpNot:
		if x.Type.IsBool() {
			return scalar.Xor(args[0], ones)
		}
		return scalar.Not(args[0])
	case scalar.OpNe, scalar.OpEq:
		if !x.Args[0].Type.IsBool() {
			return nil
		}
		differs := scalar.Xor(args[0], args[1])
		if x.Op == scalar.OpEq {
			return scalar.Xor(differs, ones)
		}
		return differs
	case scalar.OpSelect:
		mask := scalar.Mul(args[0], scalar.ConstI(ir.U32, 0xff)) // of bytes 0 and 1
		return scalar.Xor(args[2], scalar.And(mask, scalar.Xor(args[1], args[2])))
	case scalar.OpAdd:
		return addBytes(args[0], args[1])
	case scalar.OpSub:
		return scalar.Not(addBytes(scalar.Not(args[0]), args[1]))
	}
	return nil
}

// addBytes adds the bytes of words without carries between them.
func addBytes(x, y scalar.Expr) scalar.Expr {
	low, high := scalar.ConstI(ir.U32, 0xffffffff&^highBits), scalar.ConstI(ir.U32, highBits)
	sum := scalar.Add(scalar.And(x, low), scalar.And(y, low))
	return scalar.Xor(sum, scalar.And(scalar.Xor(x, y), high))
}
