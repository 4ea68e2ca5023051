package reduce

import (
	"maps"

	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Weight is a packed weight: Scale·Number + Offset, or − Offset. Scale and Offset may be missing. Number is an integer of
// absolute value 256 at most, as f32.
type Weight struct {
	Scale, Offset, Number scalar.Expr
	Negative              bool
}

// WordLoader returns a word of an array, which it has loaded before or copied elsewhere. If last is not negative, words
// after it are none that count.
type WordLoader func(array int, at scalar.Expr, last int) scalar.Expr

// maxExactInteger bounds the integers that are numbers of 16 bits of any type.
const maxExactInteger = 1 << 8

// LoadWeights returns weights that are computed from words instead of bytes, and adds the loads of the words, unless from
// is not nil and returns them. Equal scales and offsets are one expression. It reports false if weights are of another
// form, if they load no bytes, or bytes at places that depend on others.
func LoadWeights(e *emit.Emitter, elements []scalar.Expr, from WordLoader) ([]Weight, bool) {
	w := newWordLoads(e)
	w.from = from
	out, parts := make([]Weight, len(elements)), map[string]scalar.Expr{}
	shared := func(x scalar.Expr) scalar.Expr {
		if x == nil {
			return nil
		}
		key := scalar.Key(x)
		if parts[key] == nil {
			parts[key] = x
		}
		return parts[key]
	}
	for i, x := range elements {
		t := termOf(x)
		out[i] = Weight{shared(t.scale), shared(t.offset), t.numbers[0], t.negative}
		w.note(x)
	}
	w.loadBases(nil)
	if len(w.bases) == 0 {
		return nil, false
	}
	if from == nil {
		maps.Copy(e.Words, w.tensors)
	}
	done := map[scalar.Expr]scalar.Expr{}
	for i := range out {
		if !w.isExact(out[i].Number, done) {
			return nil, false
		}
		for _, x := range []*scalar.Expr{&out[i].Scale, &out[i].Offset, &out[i].Number} {
			if *x == nil {
				continue
			}
			if *x = w.replaced(*x, done); scalar.Any(*x, isByte) {
				return nil, false
			}
		}
	}
	return out, true
}

// isExact reports whether a number is an integer that a 16-bit float holds.
func (w *wordLoads) isExact(x scalar.Expr, done map[scalar.Expr]scalar.Expr) bool {
	if x.Op != scalar.OpConvert || x.Type != ir.F32 || x.Args[0].Type != ir.I32 {
		return false
	}
	n, minus := lessConstant(w.replaced(x.Args[0], done))
	lo, hi, ok := w.bounds(n)
	return ok && lo-minus >= -maxExactInteger && hi-minus <= maxExactInteger
}
