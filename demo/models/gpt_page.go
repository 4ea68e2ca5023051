package models

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// States of the text that a GPT in a page generates. They stay on the device, so that a run of many
// steps writes many tokens in one submission.
const (
	Written       = "text/tokens" // i32[1,context], the last tokens, from the first position on
	WrittenLength = "text/length" // i32, their number
	WrittenKey    = "text/key"    // u32[2], the random key
)

// PageGPTs returns the models that a page trains, by name. They have no dropout, which pays off
// only in trainings of hours; a page shows overfitting by the held-out loss.
func PageGPTs(vocab int) map[string]GPT {
	return map[string]GPT{
		"tiny":   {Vocab: vocab, Context: 32, Width: 32, Heads: 2, Blocks: 1, Batch: 8},
		"small":  {Vocab: vocab, Context: 64, Width: 64, Heads: 4, Blocks: 2, Batch: 16},
		"medium": {Vocab: vocab, Context: 128, Width: 128, Heads: 4, Blocks: 4, Batch: 32},
		"large":  {Vocab: vocab, Context: 256, Width: 384, Heads: 6, Blocks: 6, Batch: 64},
	}
}

// Module returns the module of a page, with entries that share their state: init (seed), step
// (Tokens, Next and lr), eval (Tokens and Next), look (Tokens), prompt (Tokens, Length and a seed) and write (a
// Temperature), which samples a token after those of prompt and earlier writes.
func (m GPT) Module(name string) (*ir.Module, error) {
	loss, err := m.LossGraph()
	if err != nil {
		return nil, err
	}
	how := m.Training(0)
	how.Options.Schedule = nil
	for _, e := range []struct {
		name string
		make func() (*ir.Graph, error)
	}{{"eval", m.EvalGraph}, {"look", m.LookGraph}, {"prompt", m.PromptGraph}, {"write", m.WriteGraph}} {
		g, err := e.make()
		if err != nil {
			return nil, err
		}
		how.Eval = append(how.Eval, ir.Entry{Name: e.name, Graph: g})
	}
	entries, err := how.Entries(loss)
	if err != nil {
		return nil, err
	}
	return ir.NewModule("gpt-"+name, entries...)
}

// LookGraph returns the graph of what happens inside for Tokens, i32[1,context]: the outputs Weights
// and Expected.
func (m GPT) LookGraph() (*ir.Graph, error) {
	return ir.Build("gpt_look", func(b *ir.Builder) {
		l := m.layers(b)
		l.look = true
		logits := l.head(m.features(l, m.tokens(b, Tokens, 1)))
		b.Output(Weights, ops.Concatenate(b, 0, l.weights...))
		b.Output(Expected, ops.Squeeze(b, ops.Softmax(b, logits, -1), 0))
	})
}

// PromptGraph returns the graph that starts a text with the first Length ones of Tokens,
// i32[1,context], and a key for the input Seed.
func (m GPT) PromptGraph() (*ir.Graph, error) {
	return ir.Build("gpt_prompt", func(b *ir.Builder) {
		text := m.text(b)
		text.set(m.tokens(b, Tokens, 1), b.Input(Length, ir.I32), seedKey(b))
	})
}

// WriteGraph returns the graph that appends a sampled token to the text. If the text fills the
// context, its first token is dropped.
func (m GPT) WriteGraph() (*ir.Graph, error) {
	return ir.Build("gpt_write", func(b *ir.Builder) {
		text := m.text(b)
		drawn := ops.Reshape(b, m.draw(b, text.tokens, text.length, text.key), ir.N(1), ir.N(1))
		context := ops.Const(b, ir.I32, float64(m.Context))
		rest := ops.SliceAxis(b, text.tokens, 1, ir.N(1), ir.N(m.Context-1))
		moved := ops.Concatenate(b, 1, rest, drawn)
		at := ops.Iota(b, ir.I32, 1, text.tokens.Shape()...)
		longer := ops.Select(b, ops.Eq(b, at, text.length), drawn, text.tokens)
		tokens := ops.Select(b, ops.Eq(b, text.length, context), moved, longer)
		length := ops.Min(b, ops.Add(b, text.length, ops.Const(b, ir.I32, 1)), context)
		text.set(tokens, length, ops.FoldIn(b, text.key, ops.Const(b, ir.U32, 0)))
	})
}

// text is a text being written, with its states.
type text struct {
	*ir.Builder
	tokens, length, key ir.Value
}

func (m GPT) text(b *ir.Builder) text {
	return text{
		b, b.State(Written, ir.I32, ir.Dims(1, m.Context)...),
		b.State(WrittenLength, ir.I32), b.State(WrittenKey, ir.U32, ir.N(2)),
	}
}

func (t text) set(tokens, length, key ir.Value) {
	t.SetState(Written, tokens)
	t.SetState(WrittenLength, length)
	t.SetState(WrittenKey, key)
}
