package generate

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// The entries.
const (
	prefillEntry = "prefill"
	verifyEntry  = "verify"
)

// decodeEntry returns the name of the entry that decodes some slots.
func decodeEntry(rows int) string { return "decode " + strconv.Itoa(rows) }

// rowsOf returns the numbers of rows for which decode is compiled: powers of two, and all slots. A
// run uses the smallest that holds the slots in use, as its cost grows with the rows.
func rowsOf(slots int) (rows []int) {
	for n := 1; n < slots; n *= 2 {
		rows = append(rows, n)
	}
	return append(rows, slots)
}

// maxBiases is the maximum number of biased tokens of a request.
const maxBiases = 300

// module returns the entries. They share keys, values, and the states of sampling: seen and counts,
// for the penalties, and the last token of each slot.
func (e *Engine) module() (*ir.Module, error) {
	m := &ir.Module{Name: "generate"}
	build := func(name string, f func(g *graph)) error {
		g, err := ir.Build(name, func(b *ir.Builder) {
			nn.Infer(b)
			f(&graph{Builder: b, e: e})
		})
		m.Entries = append(m.Entries, ir.Entry{Name: name, Graph: g})
		return err
	}
	if err := build(prefillEntry, (*graph).prefill); err != nil {
		return nil, err
	}
	for _, rows := range e.rows {
		if err := build(decodeEntry(rows), func(g *graph) { g.decode(rows) }); err != nil {
			return nil, err
		}
	}
	if e.options.Draft > 0 {
		return m, build(verifyEntry, (*graph).verify)
	}
	return m, nil
}

// graph builds one entry.
type graph struct {
	*ir.Builder
	e *Engine
}

func (g *graph) input(name string, d ir.DType, dims ...int) ir.Value {
	return g.Input(name, d, ir.Dims(dims...)...)
}

// state returns a state for sampling, i32.
func (g *graph) state(name string, dims ...int) ir.Value {
	return g.State("sampler/"+name, ir.I32, ir.Dims(dims...)...)
}

func (g *graph) set(name string, v ir.Value) { g.SetState("sampler/"+name, v) }

func (g *graph) integer(x int) ir.Value { return ops.Const(g.Builder, ir.I32, float64(x)) }

// cache has attention continue the sequences whose pages the input table lists.
func (g *graph) cache(rows int) {
	o := &g.e.options
	nn.Cache(g.Builder, o.Context, nn.CacheOptions{
		Past: g.input("past", ir.I32, rows), Table: g.input("table", ir.I32, rows, o.slotPages()), Rows: o.pages(), Page: o.Page,
	})
}

// sample returns a token for each row of logits, [rows, 1, vocabulary], given the inputs of sampling.
func (g *graph) sample(logits, seen, counts ir.Value, rows int) ir.Value {
	o := lm.SampleOptions{
		Seen: seen, Counts: counts, Allowed: g.input("allowed", ir.U32, rows, g.e.words),
		BiasTokens: g.input("biased", ir.I32, rows, maxBiases), Biases: g.input("biases", ir.F32, rows, maxBiases),
	}
	logits = ops.Squeeze(g.Builder, logits, 1)
	if n := g.e.options.Alternatives; n > 0 {
		raw := ops.Convert(g.Builder, logits, ir.F32)
		best, ids := ops.TopK(g.Builder, raw, ops.TopKAttrs{K: n, Axis: -1})
		g.Output("alternatives", ids)
		g.Output("chances", ops.Sub(g.Builder, best, ops.ExpandDims(g.Builder, ops.LogSumExp(g.Builder, raw, -1), -1)))
	}
	token, p := lm.Sample(g.Builder, logits, g.input("by", ir.F32, rows, lm.SamplingFields), o)
	g.Output("token", token)
	g.Output("probability", p)
	return token
}

// prefill processes a chunk of the prompt of slot row: the first count tokens, the others are
// padding. first starts a request and resets the slot's counts. Tokens from generated on are of the result,
// as when a request is processed anew. The sampled token is the next one of the result if final is 1; otherwise
// the host ignores it.
func (g *graph) prefill() {
	b, chunk, vocabulary, slots := g.Builder, g.e.options.Chunk, g.e.model.Config.Vocabulary, g.e.options.Slots
	tokens, count := g.input("tokens", ir.I32, 1, chunk), g.input("count", ir.I32, 1)
	row := g.input("row", ir.I32, 1)
	first, final := g.input("first", ir.I32), g.input("final", ir.I32)
	generated := g.input("generated", ir.I32)
	g.cache(1)
	logits := g.e.model.Decoder(b, tokens, lm.DecoderOptions{At: ops.Sub(b, count, g.integer(1)), Context: g.e.options.Context})

	at := ops.Concatenate(b, 0, row, ops.Const(b, ir.I32, 0, ir.N(1)))
	kept := ops.Sub(b, g.integer(1), first)
	rowOf := func(state ir.Value) ir.Value {
		return ops.Mul(b, ops.DynamicSlice(b, state, at, ir.Dims(1, vocabulary)...), kept)
	}
	seen, counts, last := g.state("seen", slots, vocabulary), g.state("counts", slots, vocabulary), g.state("token", slots)
	place := ops.Iota(b, ir.I32, 1, ir.Dims(1, chunk)...)
	marked := ops.Select(b, ops.Lt(b, place, count), tokens, g.integer(vocabulary)) // out of the vocabulary: dropped
	counted := ops.Select(b, ops.Ge(b, place, generated), marked, g.integer(vocabulary))
	ones := ops.Const(b, ir.I32, 1, ir.Dims(1, chunk)...)
	seenRow := g.scatter(ops.ScatterMax, rowOf(seen), marked, ones)
	countsRow := g.scatter(ops.ScatterAdd, rowOf(counts), counted, ones)
	token := g.sample(logits, seenRow, countsRow, 1)
	if b.Err() != nil {
		return
	}
	drawn := ops.ExpandDims(b, token, 1)
	one := ops.Reshape(b, final, ir.Dims(1, 1)...)
	g.set("seen", ops.DynamicUpdateSlice(b, seen, g.scatter(ops.ScatterMax, seenRow, drawn, one), at))
	g.set("counts", ops.DynamicUpdateSlice(b, counts, g.scatter(ops.ScatterAdd, countsRow, drawn, one), at))
	g.set("token", ops.DynamicUpdateSlice(b, last, token, row))
}

// scatter combines updates with the elements of x, [rows, vocabulary], at tokens, [rows, n].
func (g *graph) scatter(f scatterer, x, tokens, updates ir.Value) ir.Value {
	at := ops.Stack(g.Builder, -1, ops.Iota(g.Builder, ir.I32, 0, tokens.Shape()...), tokens)
	return f(g.Builder, x, at, updates, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}, Outside: ops.OutsideDrop}})
}

// decode processes the next token of the slots listed in row: the last sampled one, or the given
// one if that is not negative. A row equal to the number of slots is padding: its past of -1
// prevents reads and writes.
func (g *graph) decode(rows int) {
	b, slots, vocabulary := g.Builder, g.e.options.Slots, g.e.model.Config.Vocabulary
	seen, counts, last := g.state("seen", slots, vocabulary), g.state("counts", slots, vocabulary), g.state("token", slots)
	row, given := g.input("row", ir.I32, rows), g.input("given", ir.I32, rows)
	of := func(state ir.Value) ir.Value { return ops.Take(b, state, row, 0, ops.OutsideClip) }
	tokens := ops.Select(b, ops.Lt(b, given, g.integer(0)), of(last), given)
	g.cache(rows)
	logits := g.e.model.Decoder(b, ops.ExpandDims(b, tokens, 1), lm.DecoderOptions{Context: g.e.options.Context})
	token := g.sample(logits, of(seen), of(counts), rows)
	if b.Err() != nil {
		return
	}
	one := ops.Const(b, ir.I32, 1, ir.N(rows))
	put := func(f scatterer, state, updates ir.Value, axes int, at ...ir.Value) ir.Value {
		indexed := ops.IndexedAxes{Axes: []int{0, 1}[:axes], Outside: ops.OutsideDrop, Unique: true}
		return f(b, state, ops.Stack(b, -1, at...), updates, ops.ScatterAttrs{IndexedAxes: indexed})
	}
	g.set("seen", put(ops.ScatterMax, seen, one, 2, row, token))
	g.set("counts", put(ops.ScatterAdd, counts, one, 2, row, token))
	g.set("token", put(ops.Scatter, last, token, 1, row))
}

// scatterer is the constructor of a scatter.
type scatterer = func(b *ir.Builder, x, at, updates ir.Value, a ops.ScatterAttrs) ir.Value

// verify processes a token of slot row and a draft of its successors, and returns the sampled token
// after each. It serves requests without penalties.
func (g *graph) verify() {
	b, n := g.Builder, g.e.options.Draft+1
	g.cache(1)
	logits := g.e.model.Decoder(b, g.input("tokens", ir.I32, 1, n), lm.DecoderOptions{Context: g.e.options.Context})
	if b.Err() != nil {
		return
	}
	g.sample(ops.SwapAxes(b, logits, 0, 1), ir.Value{}, ir.Value{}, n)
}
