package nn

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// cache holds the keys and values of earlier positions: see [Cache].
type cache struct {
	CacheOptions
	length int
	past   ir.Value // number of earlier positions, i32; the zero Value before its first use
	steps  ir.Dim   // number of positions that this run adds
}

// CacheState is the state that counts the positions in the caches, a rank-0 i32: see [Cache].
const CacheState = "cache/length"

// CacheOptions are the options of [Cache], for programs that count positions themselves: several
// sequences of different lengths, some of which each run continues. Recurrent layers take none of
// them.
type CacheOptions struct {
	// Past is the number of positions that came before in each sequence of x, i32[sequences] for an x of
	// [sequences, time, width], instead of [CacheState]. Positions at length and after are not kept.
	Past ir.Value
	// Rows is the number of sequences in the states; 0 means that of x. It needs Past.
	Rows int
	// Row is the sequence of the states that each sequence of x continues, i32[sequences], without
	// repetitions; the zero Value means its number. It needs Past.
	Row ir.Value
	// Table, i32[sequences, n], lists the pages of each sequence of x, so that a sequence takes memory as it grows
	// (Kwon et al., PagedAttention). The states then have Rows pages of Page positions each, and position p is in
	// the page Table[sequence, p/Page]. Pages from the length of a sequence on are not used; no two sequences of a
	// run may write to one page. It needs Past, Rows and Page, replaces Row, and length is at most n·Page.
	Table ir.Value
	// Page is the number of positions of a page: 64 or 128 on GPUs, whose kernels read a page at a time.
	Page int
	// DType is the float type in which attention keeps keys and values, and computes the products with them:
	// f16 and bf16 take half the memory of f32. The zero value means that of x.
	DType ir.DType
}

// Cache has the layers from here on continue the sequence of earlier runs: causal self-attention
// keeps the keys and values of at most length positions in states, recurrent layers and [Mamba]
// their last values. A run then takes the next positions alone, one or more. The state
// [CacheState], i32, counts them; set to 0 it begins a new sequence. A run past length positions
// fails with an error of kind [ir.ErrIndex]. With [CacheOptions] the program counts. The cost of attention
// follows the positions that came before, not length. Errors are recorded in b: of kind [ir.ErrAttr] if
// length is less than 1, or options lack Past; of kind [ir.ErrShape] if Past or Row is no i32[sequences]; of
// kind [ir.ErrDType] if DType is no float type.
func Cache(b *ir.Builder, length int, o ...CacheOptions) {
	const kind = "cache"
	opts := option(b, kind, o)
	switch {
	case b.Err() != nil:
		return
	case opts.DType.Valid() && !opts.DType.IsFloat():
		b.Failf("nn.cache", nil, ir.DTypef("DType is %s: it must be a float type", opts.DType))
		return
	case length < 1:
		b.Failf("nn.cache", nil, ir.Attrf("length is %d: it must be 1 or more", length))
		return
	case opts.Rows < 0 || !opts.Past.Valid() && (opts.Rows > 0 || opts.Row.Valid()):
		b.Failf("nn.cache", nil, ir.Attrf("Rows is %d, Row given: %t, Past given: %t: Rows must not be negative, and both need Past", opts.Rows, opts.Row.Valid(), opts.Past.Valid()))
		return
	}
	if !opts.checkPages(b, length) {
		return
	}
	for name, v := range map[string]ir.Value{"Past": opts.Past, "Row": opts.Row} {
		if v.Valid() && (v.DType() != ir.I32 || v.Rank() != 1 || v.Dim(0) != opts.Past.Dim(0)) {
			b.Failf("nn.cache", []ir.Value{v}, ir.Shapef("%s is %s: it must be i32[sequences]", name, v.Type()))
			return
		}
	}
	contextOf(b).cache = &cache{length: length, CacheOptions: opts, past: opts.Past}
}

// checkPages records an error unless the options of pages are all given and valid, or none is.
func (o *CacheOptions) checkPages(b *ir.Builder, length int) bool {
	switch t := o.Table; {
	case !t.Valid() && o.Page == 0:
		return true
	case !t.Valid() || o.Page < 1 || o.Rows < 1 || !o.Past.Valid() || o.Row.Valid():
		b.Failf("nn.cache", nil, ir.Attrf("Table given: %t, Page is %d, Rows %d, Past given: %t, Row given: %t: with pages all but Row must be given", t.Valid(), o.Page, o.Rows, o.Past.Valid(), o.Row.Valid()))
		return false
	case t.DType() != ir.I32 || t.Rank() != 2 || o.Past.Rank() != 1 || t.Dim(0) != o.Past.Dim(0):
		b.Failf("nn.cache", []ir.Value{t, o.Past}, ir.Shapef("Table is %s and Past %s: they must be i32[sequences, n] and i32[sequences]", t.Type(), o.Past.Type()))
		return false
	}
	if n, ok := o.Table.Dim(1).Const(); !ok || length > n*o.Page {
		b.Failf("nn.cache", []ir.Value{o.Table}, ir.Attrf("length is %d and Table %s: the pages of %d positions must hold it", length, o.Table.Type(), o.Page))
		return false
	}
	return true
}

// before returns the number of positions in the cache, i32 or with the option Past i32[sequences], for a run that
// adds n. All layers of a graph add the same number.
func (c *cache) before(l *layer, n ir.Dim) ir.Value {
	b := l.Builder
	if k, ok := n.Const(); ok && k > c.length && !c.Past.Valid() {
		l.fail(ir.Shapef("%d positions are added to the cache: its length is %d", k, c.length))
	}
	if !c.past.Valid() && b.Err() == nil {
		c.steps = n
		b.Unscoped(func() {
			c.past = b.State(CacheState, ir.I32)
			next := ops.Add(b, c.past, ops.DimSize(b, ir.I32, n))
			last := ops.CheckIndex(b, ops.Sub(b, next, ops.Const(b, ir.I32, 1)), ir.N(c.length), "position in the cache")
			b.SetState(CacheState, ops.Add(b, last, ops.Const(b, ir.I32, 1)))
		})
	}
	if b.Err() == nil && !c.Past.Valid() && c.steps != n {
		l.fail(ir.Shapef("%s positions are added to the cache: it must be %s, as by the layers before", n, c.steps))
	}
	return c.past
}

// write stores x, [..., heads, time, size], in a state of the layer and returns the state.
func (c *cache) write(l *layer, name string, x ir.Value) ir.Value {
	b := l.Builder
	shape, time := x.Shape().Clone(), x.Dim(-2)
	past := c.before(l, time)
	shape[x.Rank()-2] = ir.N(c.length)
	if !c.Past.Valid() {
		start := make([]ir.Value, x.Rank())
		for i := range start {
			start[i] = ops.Const(b, ir.I32, 0)
		}
		start[x.Rank()-2] = past
		x = ops.DynamicUpdateSlice(b, b.State(name, x.DType(), shape...), x, ops.Stack(b, 0, start...))
		b.SetState(name, x)
		return x
	}
	if c.Rows > 0 {
		shape[0] = ir.N(c.Rows)
	}
	at := c.places(b, past, ir.Shape{x.Dim(0), time})
	if c.Table.Valid() {
		shape[x.Rank()-2] = ir.N(c.Page)
	}
	x = ops.Scatter(b, b.State(name, x.DType(), shape...), at, ops.Transpose(b, x, 0, 2, 1, 3),
		ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 2}, Outside: ops.OutsideDrop, Unique: true}})
	b.SetState(name, x)
	return x
}

// places returns where new positions of each sequence are in the states, i32[sequences, time, 2]: the row, or
// the page, and the position in it. Those outside of the states are not written.
func (c *cache) places(b *ir.Builder, past ir.Value, grid ir.Shape) ir.Value {
	row, at := ops.Iota(b, ir.I32, 0, grid...), ops.Add(b, ops.Iota(b, ir.I32, 1, grid...), ops.ExpandDims(b, past, 1))
	switch {
	case c.Table.Valid():
		integer := func(x int) ir.Value { return ops.Const(b, ir.I32, float64(x)) }
		used := ops.And(b, ops.Ge(b, at, integer(0)), ops.Lt(b, at, integer(c.length)))
		row = ops.TakeAlongAxis(b, c.Table, ops.Div(b, at, integer(c.Page)), 1, ops.OutsideClip)
		row, at = ops.Select(b, used, row, integer(-1)), ops.Rem(b, at, integer(c.Page))
	case c.Row.Valid():
		row = ops.BroadcastTo(b, ops.ExpandDims(b, c.Row, 1), grid)
	}
	return ops.Stack(b, -1, row, at)
}

// carried returns the value of a state of the layer that continues a sequence, zeros at the start
// of one. keep sets its value after n more positions.
func (l *layer) carried(name string, n ir.Dim, shape ...ir.Dim) (v ir.Value, keep func(v ir.Value)) {
	b, c := l.Builder, contextOf(l.Builder).cache
	if c == nil {
		return ops.Zeros(b, l.x.DType(), shape...), func(ir.Value) {}
	}
	if c.Past.Valid() {
		l.fail(ir.Attrf("the cache has the option Past: it must be left out for recurrent layers"))
	}
	past := c.before(l, n)
	v = b.State(name, l.x.DType(), shape...)
	v = ops.Select(b, ops.Eq(b, past, ops.Const(b, ir.I32, 0)), ops.ZerosLike(b, v), v)
	return v, func(v ir.Value) { b.SetState(name, v) }
}

// Positions returns the positions of n elements of a sequence, i32[n]: from 0, or with a [Cache]
// after those of earlier runs. With the option Past of the cache they are i32[sequences, n].
func Positions(b *ir.Builder, n ir.Dim) ir.Value {
	return (&layer{Builder: b, kind: "positions"}).positions(n)
}

func (l *layer) positions(n ir.Dim) ir.Value {
	p := ops.Iota(l.Builder, ir.I32, 0, n)
	c := contextOf(l.Builder).cache
	if c == nil {
		return p
	}
	past := c.before(l, n)
	if past.Rank() > 0 {
		past = ops.ExpandDims(l.Builder, past, 1)
	}
	return ops.Add(l.Builder, p, past)
}

// PositionalEmbeddingOptions are the options of [PositionalEmbedding].
type PositionalEmbeddingOptions struct {
	// Name is the scope of the parameter; "" means "positional_embedding" and a number.
	Name string
	// Init is how the table starts; the default is normal(0, 0.02), as in GPT-2.
	Init ir.Initial
}

// PositionalEmbedding returns x, [..., time, width], plus a learned row for each position, at most
// length of them. Its parameter is weight [length, width]. With a [Cache] positions continue those
// of earlier runs. Errors are recorded in b: of kind [ir.ErrShape] if x is longer than length.
func PositionalEmbedding(b *ir.Builder, x ir.Value, length int, o ...PositionalEmbeddingOptions) (y ir.Value) {
	const kind = "positional_embedding"
	opts := option(b, kind, o)
	within(b, kind, opts.Name, x, func(l *layer) {
		if !l.rank(2, "[..., time, width]") || !l.require(length >= 1, "length is %d: it must be 1 or more", length) {
			return
		}
		width, time := l.size(-1), x.Dim(-2)
		if n, ok := time.Const(); ok && n > length {
			l.fail(ir.Shapef("x is %s: it must have at most %d positions", x.Type(), length))
		}
		if b.Err() != nil {
			return
		}
		table := l.param("weight", opts.Init, Normal(0, 0.02), length, width)
		switch {
		case contextOf(b).cache != nil:
			table = contextOf(b).cache.rowsOf(b, table, l.positions(time))
		case !time.Is(length):
			table = ops.SliceAxis(b, table, 0, ir.N(0), time)
		}
		y = ops.Add(b, x, table)
	})
	return y
}

// rowsOf returns the rows of a table of positions. Positions that the cache checks, and those of padding, are not checked again.
func (c *cache) rowsOf(b *ir.Builder, table, at ir.Value) ir.Value {
	length, _ := table.Dim(0).Const()
	if c.Past.Valid() || c.length <= length {
		return ops.Take(b, table, at, 0, ops.OutsideClip)
	}
	return ops.Embedding(b, table, at)
}

// SinusoidalEncoding returns x, [..., time, width], plus sines and cosines of the positions
// (Vaswani et al., Attention Is All You Need): sin(p·base^(−2i/width)) at 2i and the cosine at 2i+1,
// with base 10,000. With a [Cache] positions continue those of earlier runs. Errors are recorded in
// b: of kind [ir.ErrShape] for an odd width.
func SinusoidalEncoding(b *ir.Builder, x ir.Value) ir.Value {
	const kind = "sinusoidal_encoding"
	if !b.Require("nn."+kind, "input", x.Valid()) {
		return ir.Value{}
	}
	l := &layer{b, kind, x}
	if !l.rank(2, "[..., time, width]") {
		return ir.Value{}
	}
	width := l.size(-1)
	if b.Err() == nil && width%2 != 0 {
		l.fail(ir.Shapef("x is %s: its width must be even", x.Type()))
	}
	if b.Err() != nil {
		return ir.Value{}
	}
	cos, sin := ops.RopeTable(b, l.positions(x.Dim(-2)), width, 0)
	pairs := ops.Stack(b, -1, sin, cos)
	pairs = ops.Reshape(b, pairs, append(pairs.Shape()[:pairs.Rank()-2].Clone(), ir.N(width))...)
	return ops.Add(b, x, ops.Convert(b, pairs, x.DType()))
}

// RopeOptions are the options of rotary positions (Su et al., RoFormer): see [AttentionOptions].
type RopeOptions struct {
	// Base is the base of the angles; 0 means 10,000.
	Base float64
	// Size is how many features of a head are rotated, the first ones; 0 means all. It is even.
	Size int
	// Interleaved pairs neighbours, as in GPT-J; by default the halves of the rotated features are
	// paired, as in GPT-NeoX and Llama.
	Interleaved bool
	// Frequencies, if not nil, are the angles of one position for each pair, Size/2 of them, used instead of
	// base^(−2i/Size): those of models whose context was extended. Their number is Size/2; Size may be left
	// out.
	Frequencies []float64
	// Amplitude multiplies the rotated features, as YaRN has it; 0 means 1.
	Amplitude float64
}

// rotate applies rotary positions to heads of queries and keys, [..., heads, time, features].
func rotate(l *layer, o RopeOptions, features int, q, k ir.Value) (ir.Value, ir.Value) {
	size := o.Size
	switch {
	case size == 0 && o.Frequencies != nil:
		size = 2 * len(o.Frequencies)
	case size == 0:
		size = features
	}
	if !l.require(size > 0 && size%2 == 0 && size <= features, "Size is %d: it must be even and at most the features of a head, %d", size, features) ||
		!l.require(o.Base >= 0 && !math.IsInf(o.Base, 0), "Base is %v: it must be finite and not negative", o.Base) ||
		!l.require(o.Frequencies == nil || len(o.Frequencies) == size/2, "Frequencies has %d numbers: it must have half of Size, %d", len(o.Frequencies), size) ||
		!l.require(o.Amplitude >= 0 && !math.IsInf(o.Amplitude, 0), "Amplitude is %v: it must be finite and not negative", o.Amplitude) {
		return q, k
	}
	cos, sin := ropeTable(l, o, size, q.Dim(-2))
	if cos.Rank() > 2 { // positions of each sequence, for all heads
		cos, sin = ops.ExpandDims(l.Builder, cos, 1), ops.ExpandDims(l.Builder, sin, 1)
	}
	cos, sin = ops.Convert(l.Builder, cos, q.DType()), ops.Convert(l.Builder, sin, q.DType())
	attrs := ops.RopeAttrs{Interleaved: o.Interleaved}
	return ops.Rope(l.Builder, q, cos, sin, attrs), ops.Rope(l.Builder, k, cos, sin, attrs)
}

// ropeTable returns the cosines and sines of the angles of n positions, f32[n, size/2].
func ropeTable(l *layer, o RopeOptions, size int, n ir.Dim) (cos, sin ir.Value) {
	b, at := l.Builder, l.positions(n)
	if o.Frequencies == nil {
		cos, sin = ops.RopeTable(b, at, size, o.Base)
	} else {
		frequencies := ir.NewArray(ir.F32, len(o.Frequencies))
		copy(frequencies.F, o.Frequencies)
		frequencies.Round()
		angles := ops.Mul(b, ops.ExpandDims(b, ops.Convert(b, at, ir.F32), -1), ops.Literal(b, frequencies))
		cos, sin = ops.Cos(b, angles), ops.Sin(b, angles)
	}
	if a := o.Amplitude; a != 0 && a != 1 && b.Err() == nil {
		cos, sin = ops.Mul(b, cos, ops.ConstLike(b, cos, a)), ops.Mul(b, sin, ops.ConstLike(b, sin, a))
	}
	return cos, sin
}
