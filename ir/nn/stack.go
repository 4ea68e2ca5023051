package nn

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// StackOptions are the options of [Stack].
type StackOptions struct {
	// Scan runs the blocks as one loop over parameters that are stacked along a first axis,
	// "block/linear0/weight" of [n, ...]: the graph does not grow with n. Without it the blocks
	// are unrolled, with parameters "block/0/linear0/weight" and so on. An optimizer takes a stacked parameter as one, with that axis:
	// optim.Muon updates none of their matrices, and the norms of optim.LAMB are those of all blocks together. optim.BelowRank2 goes by the
	// parameters of a block.
	Scan bool
	// Checkpoint has the backward pass recompute each block from its input instead of storing what
	// it computed.
	Checkpoint bool
}

// Stack applies n blocks of equal structure to x: f to x, f to the result, and so on; f returns a
// value of the type of x. Parameters of the blocks are in the scope name. With Scan or Checkpoint
// f gets a builder of its own: its layers and ops may use values of b, as a mask or the context of
// attention, but it must return a value of its own and declare no states. Errors are recorded in b:
// of kind [ir.ErrAttr] for a negative n, and [ir.ErrGraph] if f is nil or declares states.
func Stack(b *ir.Builder, name string, n int, x ir.Value, f func(b *ir.Builder, x ir.Value) ir.Value, o ...StackOptions) ir.Value {
	const op ir.Op = "nn.stack"
	opts := option(b, "stack", o)
	if !b.Require(op, "input", x.Valid()) || !b.Require(op, "function", f != nil) {
		return ir.Value{}
	}
	if n < 0 {
		b.Failf(op, []ir.Value{x}, ir.Attrf("n is %d: it must not be negative", n))
		return ir.Value{}
	}
	b.Scope(name, func() {
		switch {
		case n == 0:
		case opts.Scan:
			x = scanned(b, n, x, f, opts.Checkpoint)
		default:
			x = unrolled(b, n, x, f, opts.Checkpoint)
		}
	})
	return x
}

func unrolled(b *ir.Builder, n int, x ir.Value, f func(b *ir.Builder, x ir.Value) ir.Value, checkpoint bool) ir.Value {
	for i := 0; i < n && b.Err() == nil; i++ {
		b.Scope(strconv.Itoa(i), func() {
			if checkpoint {
				x = checkpointed(b, x, f)
			} else {
				x = f(b, x)
			}
		})
	}
	return x
}

// checkpointed returns f(x) as one op that reverse mode recomputes.
func checkpointed(b *ir.Builder, x ir.Value, f func(b *ir.Builder, x ir.Value) ir.Value) ir.Value {
	k := blockOf(b, x, f)
	if b.Err() != nil {
		return ir.Value{}
	}
	operands := slices.Concat([]ir.Value{x}, k.declare(b), k.around)
	if k.random {
		operands = append(operands, Key(b, "block"))
	}
	return ops.Checkpoint(b, k.graph, 0, operands...)[0]
}

// scanned runs the blocks as a loop over stacked parameters.
func scanned(b *ir.Builder, n int, x ir.Value, f func(b *ir.Builder, x ir.Value) ir.Value, checkpoint bool) ir.Value {
	k := blockOf(b, x, f)
	if b.Err() != nil {
		return ir.Value{}
	}
	var xs []ir.Value
	for _, p := range k.params {
		t, o := p.Value.Type(), p.Options()
		o.Initial = stacked(o.Initial, t)
		xs = append(xs, b.ParamWith(p.Name, o, t.DType, append(ir.Shape{ir.N(n)}, t.Shape...)...))
	}
	if k.random {
		xs = append(xs, ops.SplitKey(b, Key(b, "block"), ir.N(n)))
	}
	carries, _ := ops.Scan(b, ops.Loop{
		Consts: k.around, Carries: []ir.Value{x}, Xs: xs, Length: ir.N(n),
		Body: func(b *ir.Builder, around, carries, xs []ir.Value) (next, ys []ir.Value) {
			params := len(k.params)
			operands := slices.Concat(carries, xs[:params], around, xs[params:])
			if checkpoint {
				return ops.Checkpoint(b, k.graph, 0, operands...), nil
			}
			return b.Splice(k.graph, operands), nil
		},
	})
	if b.Err() != nil {
		return ir.Value{}
	}
	return carries[0]
}

// block is a function of one value as a closed graph. Its operands are the input, the parameters, the
// values of the graph around it that it uses, and a random key.
type block struct {
	graph  *ir.Graph
	params []ir.Port
	around []ir.Value
	random bool // there is a key
}

// blockOf builds f as a block for a value like x.
func blockOf(b *ir.Builder, x ir.Value, f func(b *ir.Builder, x ir.Value) ir.Value) (k block) {
	const input, output = "x", "y"
	g, err := ir.Build("block", func(inner *ir.Builder) {
		c := *contextOf(b)
		c.counts, c.random = map[string]int{}, newStream()
		if by, scope := c.stored, b.ScopeName(); by != nil {
			c.stored = func(name string) Storage { return by(scope + "/" + name) }
		}
		inner.SetContext(contextKey{}, &c)
		in := inner.Port(ir.InputPort, input, x.Type())
		c.random.key = inner.Port(ir.InputPort, blockKey, ir.TypeOf(ir.U32, ir.N(2)))
		c.around = b
		inner.SetCapture(k.captures(inner))
		if c.cache != nil {
			c.cache = &cache{length: c.cache.length, CacheOptions: CacheOptions{DType: c.cache.DType}}
		}
		y := f(inner, in)
		if inner.Err() == nil && y.Valid() && !y.Type().Equal(x.Type()) {
			inner.Failf("nn.stack", []ir.Value{in}, ir.Shapef("a block returns %s: it must be of the type of x", y.Type()))
		}
		inner.Output(output, y)
	})
	if err == nil {
		err = k.close(g)
	}
	if err != nil {
		b.Fail(err)
	}
	return k
}

// blockKey is the input of a block for its random key.
const blockKey = "key"

// captures returns the function that makes an input of each value around a block that it uses.
func (k *block) captures(inner *ir.Builder) func(v ir.Value) ir.Value {
	inputs := map[ir.Value]ir.Value{}
	return func(v ir.Value) ir.Value {
		in, known := inputs[v]
		if !known {
			in = inner.Port(ir.InputPort, "around"+strconv.Itoa(len(k.around)), v.Type())
			inputs[v], k.around = in, append(k.around, v)
		}
		return in
	}
}

// close sets the graph of the block to g with its ports as inputs: the input, the parameters in
// order, the values around it, and the key if anything is drawn.
func (k *block) close(g *ir.Graph) error {
	read := g.ReadPorts()
	first, around, last := g.Ports()[:1], []ir.Port(nil), []ir.Port(nil)
	for _, p := range g.Ports()[1:] {
		switch {
		case p.Kind == ir.StatePort:
			return ir.Errorf(ir.ErrGraph, "nn.stack: the block declares state %q: it must have none with Scan or Checkpoint, as a loop carries what changes; unroll the blocks", p.Name)
		case p.Kind == ir.ParamPort:
			k.params = append(k.params, p)
		case p.Name != blockKey:
			around = append(around, p)
		case read[p.Name]:
			k.random, last = true, []ir.Port{p}
		}
	}
	var err error
	k.graph, err = ir.Transform(g.Name(), func(b *ir.Builder) {
		to := map[string]ir.Value{}
		for _, p := range slices.Concat(first, k.params, around, last) {
			to[p.Name] = b.Port(ir.InputPort, p.Name, p.Value.Type())
		}
		in := make([]ir.Value, len(g.Ports()))
		for i, p := range g.Ports() {
			in[i] = to[p.Name]
		}
		b.Output("y", b.Splice(g, in)[0])
	})
	return err
}
