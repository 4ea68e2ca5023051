package generate

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// drafter proposes tokens by a small model (Leviathan et al., Fast Inference from Transformers via
// Speculative Decoding). Its proposals are greedy, so that a verification needs no probabilities of it.
type drafter struct {
	program    *rlx.Program
	vocabulary int
	context    int
	chunks     []int     // chunks for which extend is compiled, ascending
	fed        [][]int32 // by slot, the tokens whose keys and values its states hold
}

// The chunk of a text that has one proposal or two unseen tokens, as after a verification.
const shortChunk = 2

const stepEntry = "step"

func extendEntry(chunk int) string { return fmt.Sprintf("extend %d", chunk) }

// newDrafter compiles the entries of a draft model for the slots of an engine.
func newDrafter(ctx context.Context, s *rlx.Session, m Model, o Options) (*drafter, error) {
	d := &drafter{vocabulary: m.Config.Vocabulary, context: min(o.Context, m.Config.Context), chunks: []int{shortChunk}, fed: make([][]int32, o.Slots)}
	if o.Chunk > shortChunk {
		d.chunks = append(d.chunks, o.Chunk)
	}
	module := &ir.Module{Name: "draft"}
	build := func(name string, chunk int) error {
		g, err := ir.Build(name, func(b *ir.Builder) {
			nn.Infer(b)
			d.graph(b, m, o.Slots, chunk)
		})
		module.Entries = append(module.Entries, ir.Entry{Name: name, Graph: g})
		return err
	}
	err := build(stepEntry, 0)
	for _, chunk := range d.chunks {
		err = errors.Join(err, build(extendEntry(chunk), chunk))
	}
	if err != nil {
		return nil, err
	}
	if d.program, err = m.compile(ctx, s, module, o.Precision); err != nil {
		return nil, err
	}
	return d, nil
}

// graph builds an entry that continues slot row by the first count of chunk tokens, or by the token of
// the last run for a chunk of 0. Its result is the most likely next token.
func (d *drafter) graph(b *ir.Builder, m Model, slots, chunk int) {
	one := ir.N(1)
	row, past := b.Input("row", ir.I32, one), b.Input("past", ir.I32, one)
	last := b.State("draft/token", ir.I32, one)
	tokens, o := ops.ExpandDims(b, last, 0), lm.DecoderOptions{Context: d.context}
	if chunk > 0 {
		tokens = b.Input("tokens", ir.I32, ir.Dims(1, chunk)...)
		o.At = ops.Sub(b, b.Input("count", ir.I32, one), ops.Const(b, ir.I32, 1))
	}
	nn.Cache(b, d.context, nn.CacheOptions{Past: past, Rows: slots, Row: row})
	logits := m.Decoder(b, tokens, o)
	if b.Err() != nil {
		return
	}
	token := ops.Reshape(b, ops.ArgMax(b, logits, -1), one)
	b.SetState("draft/token", token)
	b.Output("token", token)
}

// propose returns at most n tokens that continue those of a slot; fewer at the end of the context or
// where the model does not know a token.
func (d *drafter) propose(ctx context.Context, slot int, tokens []int32, n int) ([]int32, error) {
	past := 0
	for fed := d.fed[slot]; past < min(len(fed), len(tokens)-1) && fed[past] == tokens[past]; past++ {
	}
	for _, id := range tokens[past:] {
		if int(id) >= d.vocabulary {
			return nil, nil
		}
	}
	n = min(n, d.context-len(tokens)+1)
	if n <= 0 {
		return nil, nil
	}
	d.fed[slot] = append(d.fed[slot][:past], tokens[past:]...)
	runs, err := d.start(ctx, slot, past, n)
	draft := make([]int32, 0, n)
	for i, run := range runs {
		out, failed := run.Wait(ctx)
		if err = errors.Join(err, failed); err == nil && i >= len(runs)-n {
			token, _ := out["token"].Int32s()
			draft = append(draft, token...)
		}
	}
	if err != nil {
		return nil, err
	}
	d.fed[slot] = append(d.fed[slot], draft[:n-1]...)
	return draft, nil
}

// start starts the runs that process the tokens of a slot from position past on, and those of n-1
// proposals. The results of the last n are the proposals. The runs before an error are returned, too.
func (d *drafter) start(ctx context.Context, slot, past, n int) (runs []native.Run, err error) {
	run := func(entry string, in rlx.Inputs) {
		if err != nil {
			return
		}
		in["row"], in["past"] = rlx.Int32s([]int32{int32(slot)}, 1), rlx.Int32s([]int32{int32(past)}, 1)
		var r native.Run
		if r, err = d.program.Run(ctx, entry, in); err == nil {
			runs = append(runs, r)
		}
	}
	for all := d.fed[slot]; past < len(all); {
		chunk := d.chunks[0]
		if len(all)-past > chunk {
			chunk = d.chunks[len(d.chunks)-1]
		}
		tokens := make([]int32, chunk)
		count := copy(tokens, all[past:])
		run(extendEntry(chunk), rlx.Inputs{"tokens": rlx.Int32s(tokens, 1, chunk), "count": rlx.Int32s([]int32{int32(count)}, 1)})
		past += count
	}
	for range n - 1 {
		run(stepEntry, rlx.Inputs{})
		past++
	}
	return runs, err
}
