package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Linear state-space and delta-rule layers.
const (
	OpSelectiveScan ir.Op = "selective_scan"
	OpSSD           ir.Op = "ssd"
	OpGatedDelta    ir.Op = "gated_delta"
)

// ChunkAttrs hold the number of steps of a chunk.
type ChunkAttrs struct{ Chunk int }

// Visit shows the attributes.
func (a *ChunkAttrs) Visit(v ir.AttrVisitor) { v.Int("chunk", &a.Chunk) }

// ScaleAttrs hold a factor.
type ScaleAttrs struct{ Scale float64 }

// Visit shows the attributes.
func (a *ScaleAttrs) Visit(v ir.AttrVisitor) { v.Float("scale", &a.Scale) }

func init() {
	const carriedDoc = "state, which may be left out for zeros, and the last result have the shape stated"
	defineComposite(composite{
		op: OpSelectiveScan, operands: []string{"x", "delta", "a", "b", "c", "state"}, optional: 1, types: floats,
		doc: "The selective scan of Mamba (Gu and Dao, Linear-Time Sequence Modeling with Selective State Spaces): h ← exp(Δ·a)·h + Δ·b·x and y = c·h at each step, for x and delta [batch, time, channels], " +
			"a [channels, n], b and c [batch, time, n] and a state [batch, channels, n]. Results are y, like x, and the final state. " +
			"It is computed as a parallel scan, in f32 for narrower types.",
		constraints: []string{"all operands have one element type and the shapes stated", carriedDoc},
		check: func(n *ir.Node) error {
			return checkNamed(n, "btd", "btd", "dn", "btn", "btn", "bdn")
		},
		bodies: selectiveScan,
	})
	defineComposite(composite{
		op: OpSSD, operands: []string{"x", "dt", "a", "b", "c", "state"}, optional: 1, types: floats,
		doc: "The state space of Mamba-2 (Dao and Gu, Transformers are SSMs): h ← exp(dt·a)·h + dt·x⊗b and y = h·c at each step, for x [batch, time, heads, p], " +
			"dt [batch, time, heads], a [heads], b and c [batch, time, groups, n] and a state [batch, heads, p, n]; heads that share b and c form a group, and groups divide " +
			"heads. Results are y, like x, and the final state. Steps are computed by products of matrices within " +
			"chunks, and across chunks as a parallel scan, in f32 for narrower types.",
		newAttrs: func() ir.Attrs { return &ChunkAttrs{64} },
		constraints: []string{
			"all operands have one element type and the shapes stated; the heads divide into the groups", carriedDoc,
			"chunk is positive; time is constant or divides into chunks",
		},
		check: func(n *ir.Node) error {
			if c := n.Attrs().(*ChunkAttrs).Chunk; c < 1 {
				return ir.Attrf("chunk is %d, less than 1", c)
			}
			if err := checkNamed(n, "bthp", "bth", "h", "btgn", "btgn", "bhpn"); err != nil {
				return err
			}
			heads, groups := n.Input(0).Dim(2), n.Input(3).Dim(2)
			if _, err := heads.Div(groups); err != nil {
				return ir.Shapef("%s heads do not divide into %s groups", heads, groups)
			}
			return nil
		},
		bodies: ssd,
	})
	defineComposite(composite{
		op: OpGatedDelta, operands: []string{"q", "k", "v", "g", "beta", "state"}, optional: 1, types: floats,
		doc: "The gated delta rule (Yang, Kautz and Hatamizadeh): S ← exp(g)·S, S ← S + k⊗(β·(v − kᵀS)) and y = scale·qᵀS at each step, for q and k " +
			"[batch, time, heads, d], v [batch, time, heads, e], beta [batch, time, heads], g like beta or, with a gate for each channel, like k, and a " +
			"state [batch, heads, d, e]. Results are y, like v, and the final state. More than 8 steps are computed by products of matrices within chunks, unless " +
			"gates are of channels or the number of steps is not known, else step by step, in f32 for narrower types.",
		newAttrs:    func() ir.Attrs { return &ScaleAttrs{1} },
		constraints: []string{"all operands have one element type and the shapes stated", carriedDoc},
		check: func(n *ir.Node) error {
			gate := "bth"
			if n.Input(3).Rank() == 4 {
				gate = "bthd"
			}
			return checkNamed(n, "bthd", "bthd", "bthe", gate, "bth", "bhde")
		},
		bodies: gatedDelta,
	})
}

// checkNamed reports an error unless the operands have one element type and the shapes
// given as strings of axis letters: axes with equal letters have equal sizes.
func checkNamed(n *ir.Node, shapes ...string) error {
	if err := oneDType(n); err != nil {
		return err
	}
	sizes := map[rune]ir.Dim{}
	for i, v := range n.Inputs() {
		if v.Rank() != len(shapes[i]) {
			return ir.Shapef("%s has rank %d, not %d", n.Def().Operands[i], v.Rank(), len(shapes[i]))
		}
		for axis, letter := range shapes[i] {
			size, known := sizes[letter]
			if known && size != v.Dim(axis) {
				return ir.Shapef("axis %d of %s has size %s, not %s", axis, n.Def().Operands[i], v.Dim(axis), size)
			}
			sizes[letter] = v.Dim(axis)
		}
	}
	return nil
}

// entering adds decay times the initial state, if there is one, to the first term of a
// linear recurrence along axis 1.
func entering(b *ir.Builder, decay, terms ir.Value, state []ir.Value) ir.Value {
	steps, ok := terms.Dim(1).Const()
	if len(state) == 0 || b.Err() != nil || ok && steps == 0 {
		return terms
	}
	first := Mul(b, SliceAxis(b, decay, 1, ir.N(0), ir.N(1)), ExpandDims(b, state[0], 1))
	low, high := ir.Dims(repeatInt(0, terms.Rank())...), ir.Dims(repeatInt(0, terms.Rank())...)
	high[1] = terms.Dim(1).Sub(ir.N(1))
	return Add(b, terms, PadDims(b, first, Zeros(b, first.DType()), low, high, repeatInt(0, terms.Rank())))
}

// lastStep returns the last element of a linear recurrence along axis 1, or, for no steps,
// the initial state, or zeros.
func lastStep(b *ir.Builder, h ir.Value, state []ir.Value) ir.Value {
	if !h.Dim(1).Is(0) {
		return Squeeze(b, SliceAxis(b, h, 1, h.Dim(1).Sub(ir.N(1)), ir.N(1)), 1)
	}
	if len(state) > 0 {
		return state[0]
	}
	return Zeros(b, h.DType(), withoutDim(h.Shape(), 1)...)
}

func selectiveScan(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value {
	d := in[0].DType()
	in = each(in, func(v ir.Value) ir.Value { return wide(b, v) })
	x, delta, state := in[0], in[1], in[5:]
	decay := Exp(b, Mul(b, ExpandDims(b, delta, -1), in[2]))
	terms := Mul(b, ExpandDims(b, Mul(b, delta, x), -1), ExpandDims(b, in[3], 2))
	h := LinearRecurrence(b, decay, entering(b, decay, terms, state), CumSumAttrs{Axis: 1})
	y := ReduceSum(b, Mul(b, h, ExpandDims(b, in[4], 2)), -1)
	return []ir.Value{Convert(b, y, d), Convert(b, lastStep(b, h, state), d)}
}

// ssd pads the sequence to whole chunks with steps of dt = 0, which do not change the
// state.
func ssd(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	d, time := in[0].DType(), in[0].Dim(1)
	chunk := ir.N(n.Attrs().(*ChunkAttrs).Chunk)
	in = each(in, func(v ir.Value) ir.Value { return wide(b, v) })
	chunks := func(v ir.Value) ir.Value { return chunked(b, v, chunk) }
	repeats := 1
	if heads, ok := in[0].Dim(2).Const(); ok {
		if groups, ok := in[3].Dim(2).Const(); ok && groups > 0 {
			repeats = heads / groups
		}
	}
	log := chunks(Mul(b, in[1], in[2])) // [b, c, q, h]
	x := chunks(Mul(b, in[0], ExpandDims(b, in[1], -1)))
	left, right := chunks(Repeat(b, in[3], 2, repeats)), chunks(Repeat(b, in[4], 2, repeats))
	since := CumSum(b, log, CumSumAttrs{Axis: 2})
	total := ReduceSum(b, log, 2) // [b, c, h]

	scores := Mul(b, Einsum(b, "bcihn,bcjhn->bchij", right, left), within(b, since))
	y := Einsum(b, "bchij,bcjhp->bcihp", scores, x)
	rest := Exp(b, Sub(b, ExpandDims(b, total, 2), since))
	terms := Einsum(b, "bcjhn,bcjhp->bchpn", Mul(b, left, ExpandDims(b, rest, -1)), x)
	decay := BroadcastTo(b, ExpandDims(b, Exp(b, total), -1, -2), terms.Shape())
	h := LinearRecurrence(b, decay, entering(b, decay, terms, in[5:]), CumSumAttrs{Axis: 1})
	before := stateBeforeChunk(b, h, in[5:])
	y = Add(b, y, Einsum(b, "bcihn,bchpn->bcihp", Mul(b, right, ExpandDims(b, Exp(b, since), -1)), before))
	y = SliceAxis(b, mergeAxes(b, y, 1), 1, ir.N(0), time)
	return []ir.Value{Convert(b, y, d), Convert(b, lastStep(b, h, in[5:]), d)}
}

// chunked returns [batch, time, ...] as [batch, chunks, chunk, ...], padded with zeros.
func chunked(b *ir.Builder, x ir.Value, chunk ir.Dim) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	time := x.Dim(1)
	if t, ok := time.Const(); ok {
		c, _ := chunk.Const()
		low, high := repeatInt(0, x.Rank()), repeatInt(0, x.Rank())
		if high[1] = (max(t, 1)+c-1)/c*c - t; high[1] > 0 {
			x = Pad(b, x, Zeros(b, x.DType()), low, high, nil)
		}
	}
	count, err := x.Dim(1).Div(chunk)
	if err != nil {
		b.Failf(OpSSD, []ir.Value{x}, ir.Shapef("%s steps do not divide into chunks of %s", time, chunk))
		return ir.Value{}
	}
	return splitAxis(b, x, 1, count)
}

// within returns the decay from step j to step i of a chunk, 0 for j > i, as [b, c, h, i,
// j], from the cumulative sums of log decays.
func within(b *ir.Builder, since ir.Value) ir.Value {
	return decayBetween(b, Transpose(b, since, 0, 1, 3, 2))
}

// decayBetween returns exp(s[i] − s[j]), 0 for j > i, as [..., i, j], from the cumulative sums s of
// log decays along the last axis.
func decayBetween(b *ir.Builder, s ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	gap := Sub(b, ExpandDims(b, s, -1), ExpandDims(b, s, -2))
	last := gap.Shape()[gap.Rank()-2:]
	later := Lt(b, Iota(b, ir.I32, 0, last...), Iota(b, ir.I32, 1, last...))
	return Exp(b, Select(b, later, Const(b, gap.DType(), math.Inf(-1)), gap))
}

// stateBeforeChunk returns the state before each chunk from the states after each.
func stateBeforeChunk(b *ir.Builder, h ir.Value, state []ir.Value) ir.Value {
	if b.Err() != nil || h.Dim(1).Is(0) {
		return h
	}
	first := ZerosLike(b, SliceAxis(b, h, 1, ir.N(0), ir.N(1)))
	if len(state) > 0 {
		first = ExpandDims(b, state[0], 1)
	}
	return SliceAxis(b, Concatenate(b, 1, first, h), 1, ir.N(0), h.Dim(1))
}

// StateSpace are the operands of a linear state space whose step sizes depend on the input,
// all of one float type. [SelectiveScan] and [SSD] give their shapes.
type StateSpace struct {
	// X is the input, and Delta the size of each step, Δ.
	X, Delta ir.Value
	// A is the decay, which Δ multiplies, B the weights of the input, and C those of the state.
	A, B, C ir.Value
	// State is the initial state, zeros where it is left out (the zero Value).
	State ir.Value
}

func (s StateSpace) operands() []ir.Value { return given(s.X, s.Delta, s.A, s.B, s.C, s.State) }

// SelectiveScan returns y and the final state of Mamba's selective state space (Gu and
// Dao): h ← exp(Δ·a)·h + Δ·b·x and y = c·h at each step, for x and Δ [batch, time,
// channels], a [channels, n], b and c [batch, time, n] and a state [batch, channels, n].
func SelectiveScan(b *ir.Builder, s StateSpace) (y, last ir.Value) {
	return two(b.Add(OpSelectiveScan, nil, s.operands()...))
}

// SSD returns y and the final state of Mamba-2's state-space layer (Dao and Gu,
// Transformers are SSMs): h ← exp(Δ·a)·h + Δ·x⊗b and y = h·c at each step, for x [batch,
// time, heads, p], Δ [batch, time, heads], a [heads], b and c [batch, time, groups, n]
// and a state [batch, heads, p, n]. chunk is the number of steps of a chunk, which is
// computed by matrix products; groups divides heads.
func SSD(b *ir.Builder, s StateSpace, chunk int) (y, last ir.Value) {
	return two(b.Add(OpSSD, &ChunkAttrs{chunk}, s.operands()...))
}

// gatedDelta goes by chunks where there are enough steps, by a loop over the steps otherwise and
// for gates of channels, whose decays between steps do not factor out of the products.
func gatedDelta(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	d, v := in[0].DType(), in[2]
	in = each(in, func(v ir.Value) ir.Value { return wide(b, v) })
	state := optional(in[5:])
	if !state.Valid() {
		state = Zeros(b, in[0].DType(), in[1].Dim(0), in[1].Dim(2), in[1].Dim(3), v.Dim(3))
	}
	r := DeltaRule{Q: Mul(b, in[0], ConstLike(b, in[0], n.Attrs().(*ScaleAttrs).Scale)), K: in[1], V: in[2], G: in[3], Beta: in[4], State: state}
	rule := r.bySteps
	if deltaChunk(v.Dim(1)) > 0 && r.G.Rank() == 3 {
		rule = r.byChunks
	}
	y, last := rule(b)
	return []ir.Value{Convert(b, y, d), Convert(b, last, d)}
}

// bySteps computes the delta rule by a loop over the steps.
func (r DeltaRule) bySteps(b *ir.Builder) (y, last ir.Value) {
	g := r.G
	if g.Rank() == 3 {
		g = ExpandDims(b, g, -1)
	}
	xs := each([]ir.Value{r.Q, r.K, r.V, g, r.Beta}, func(v ir.Value) ir.Value { return MoveAxis(b, v, 1, 0) })
	lasts, ys := Scan(b, Loop{
		Carries: []ir.Value{r.State}, Xs: xs,
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			q, k, v := ExpandDims(b, xs[0], -1), ExpandDims(b, xs[1], -1), xs[2]
			s := Mul(b, carries[0], ExpandDims(b, Exp(b, xs[3]), -1))
			known := ReduceSum(b, Mul(b, s, k), -2)
			change := Mul(b, Sub(b, v, known), ExpandDims(b, xs[4], -1))
			s = Add(b, s, Mul(b, k, ExpandDims(b, change, -2)))
			return []ir.Value{s}, []ir.Value{ReduceSum(b, Mul(b, s, q), -2)}
		},
	})
	return MoveAxis(b, optional(ys), 0, 1), optional(lasts)
}

// deltaChunk is the number of steps of a chunk, 0 where steps go one by one: where they are few,
// or their number is not known.
func deltaChunk(time ir.Dim) int {
	switch steps, known := time.Const(); {
	case !known || steps <= 8:
		return 0
	case steps <= 256:
		return 32
	}
	return 64
}

// byChunks computes the delta rule by products of matrices (Yang, Kautz and Hatamizadeh, Gated
// Delta Networks, 2024, section 3.3). Let G be the cumulative sums of g in a chunk and S the state
// before it. The changes u of its steps solve (1 + A)·u = β·v − β·exp(G)·k·S, where A is β·k·kᵀ
// with the decay between steps, below the diagonal. One solve has both parts of u = x − w·S, and
// the loop over chunks is S ← exp(G)·S + kᵀ(x − w·S), with the decay to the chunk's end in k.
func (r DeltaRule) byChunks(b *ir.Builder) (y, last ir.Value) {
	time, width, chunk := r.V.Dim(1), r.V.Dim(3), ir.N(deltaChunk(r.V.Dim(1)))
	// parts returns [batch, time, heads, ...] as [chunks, batch, heads, chunk, ...].
	parts := func(x ir.Value) ir.Value {
		return Transpose(b, chunked(b, x, chunk), []int{1, 0, 3, 2, 4}[:x.Rank()+1]...)
	}
	q, k, v, beta := parts(r.Q), parts(r.K), parts(r.V), ExpandDims(b, parts(r.Beta), -1)
	since := CumSum(b, parts(r.G), CumSumAttrs{Axis: 3})
	decay := decayBetween(b, since)
	total := SliceAxis(b, since, 3, chunk.Sub(ir.N(1)), ir.N(1))
	grown := ExpandDims(b, Exp(b, since), -1)
	across := MoveAxis(b, k, 3, 4)

	a := Mul(b, MatMul(b, k, across), Mul(b, decay, beta))
	right := Concatenate(b, 4, Mul(b, v, beta), Mul(b, k, Mul(b, beta, grown)))
	x := TriangularSolve(b, a, right, TriangularAttrs{LeftSide: true, Lower: true, UnitDiagonal: true})
	pushed := MatMul(b, MoveAxis(b, Mul(b, k, ExpandDims(b, Exp(b, Sub(b, total, since)), -1)), 3, 4), x)
	seen := MatMul(b, Mul(b, MatMul(b, q, across), decay), x)
	of := func(x ir.Value) (u, w ir.Value) {
		return SliceAxis(b, x, 4, ir.N(0), width), SliceAxis(b, x, 4, width, k.Dim(4))
	}
	added, lost := of(pushed)
	lasts, before := Scan(b, Loop{
		Carries: []ir.Value{r.State}, Xs: []ir.Value{Exp(b, total), added, lost},
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			s := carries[0]
			kept := Mul(b, s, ExpandDims(b, xs[0], -1))
			return []ir.Value{Add(b, kept, Sub(b, xs[1], MatMul(b, xs[2], s)))}, []ir.Value{s}
		},
	})
	u, w := of(seen)
	y = Add(b, u, MatMul(b, Sub(b, Mul(b, q, grown), w), optional(before)))
	y = Transpose(b, y, 1, 0, 3, 2, 4)
	return SliceAxis(b, mergeAxes(b, y, 1), 1, ir.N(0), time), optional(lasts)
}

// DeltaRule are the operands of [GatedDelta], of one float type.
type DeltaRule struct {
	// Q and K, queries and keys, are [batch, time, heads, d], and V, values, [batch, time, heads, e].
	Q, K, V ir.Value
	// G, the logarithm of the gate, and Beta, the rate of the change of the state, are
	// [batch, time, heads]. A G like K is a gate for each channel.
	G, Beta ir.Value
	// State is the initial state, [batch, heads, d, e], zeros where it is left out (the zero Value).
	State ir.Value
}

// GatedDelta returns y, like V, and the final state of the gated delta rule (Yang, Kautz and
// Hatamizadeh): S ← exp(g)·S, S ← S + k⊗(β·(v − kᵀS)) and y = scale·qᵀS at each step.
func GatedDelta(b *ir.Builder, r DeltaRule, scale float64) (y, last ir.Value) {
	return two(b.Add(OpGatedDelta, &ScaleAttrs{scale}, given(r.Q, r.K, r.V, r.G, r.Beta, r.State)...))
}
