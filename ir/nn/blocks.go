package nn

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// ActiveBlocks applies f to each block of x, [n, ...], whose element of active, bool[n], is true; the results of
// the others are 0, and are not computed. f returns a value of the type of a block. All blocks have the same
// parameters, in the open scope. As in [Stack], f gets a builder of its own, may use values of b, and must
// declare no states. Errors are recorded in b: of kind [ir.ErrShape] if active does not fit x,
// [ir.ErrSymbol] for a symbolic n, and [ir.ErrGraph] if f is nil or declares states.
func ActiveBlocks(b *ir.Builder, x, active ir.Value, f func(b *ir.Builder, x ir.Value) ir.Value) ir.Value {
	const op ir.Op = "nn.active_blocks"
	if !b.Require(op, "input", x.Valid() && active.Valid()) || !b.Require(op, "function", f != nil) {
		return ir.Value{}
	}
	l := &layer{b, "active_blocks", x}
	if l.rank(1, "[n, ...]") && !active.Type().Equal(ir.TypeOf(ir.Bool, x.Dim(0))) {
		l.fail(ir.Shapef("active is %s: it must be %s", active.Type(), ir.TypeOf(ir.Bool, x.Dim(0))))
	}
	n := l.size(0)
	if b.Err() != nil || n == 0 {
		return x
	}
	shape := x.Shape()[1:]
	first := ops.Reshape(b, ops.SliceAxis(b, x, 0, ir.N(0), ir.N(1)), shape...)
	k := blockOf(b, first, f)
	if b.Err() != nil {
		return ir.Value{}
	}
	operands := slices.Concat(k.declare(b), k.around)
	if n == 1 {
		if k.random {
			operands = append(operands, Key(b, "block"))
		}
		y := k.when(b, ops.Reshape(b, active), append([]ir.Value{first}, operands...))
		return ops.ExpandDims(b, y, 0)
	}
	xs := []ir.Value{x, active}
	if k.random {
		xs = append(xs, ops.SplitKey(b, Key(b, "block"), ir.N(n)))
	}
	_, ys := ops.Scan(b, ops.Loop{
		Consts: operands, Xs: xs,
		Body: func(b *ir.Builder, consts, _, xs []ir.Value) (next, ys []ir.Value) {
			return nil, []ir.Value{k.when(b, xs[1], slices.Concat(xs[:1], consts, xs[2:]))}
		},
	})
	if b.Err() != nil {
		return ir.Value{}
	}
	return ys[0]
}

// declare declares the parameters of a block.
func (k *block) declare(b *ir.Builder) (params []ir.Value) {
	for _, p := range k.params {
		t := p.Value.Type()
		params = append(params, b.ParamWith(p.Name, p.Options(), t.DType, t.Shape...))
	}
	return params
}

// when returns the result of the block for its operands if a condition is true, and otherwise 0.
func (k *block) when(b *ir.Builder, condition ir.Value, operands []ir.Value) ir.Value {
	return ops.Cond(b, condition, operands,
		func(b *ir.Builder, in []ir.Value) []ir.Value { return b.Splice(k.graph, in) },
		func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.ZerosLike(b, in[0])} })[0]
}
