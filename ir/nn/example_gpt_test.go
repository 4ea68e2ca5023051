package nn_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

const letters, window, rows, blocks, width, heads = " abcdefghijklmnopqrstuvwxyz", 16, 8, 2, 32, 4

// gpt returns the scores of the next letter after each letter.
func gpt(b *ir.Builder, tokens ir.Value) ir.Value {
	x := nn.Embedding(b, tokens, len(letters), width, nn.EmbeddingOptions{Name: "wte", Init: nn.Normal(0, 0.02)})
	x = nn.PositionalEmbedding(b, x, window, nn.PositionalEmbeddingOptions{Name: "wpe"})
	x = nn.Stack(b, "h", blocks, x, func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.TransformerBlock(b, x, heads, nn.TransformerOptions{Name: nn.Here, Causal: true, Dropout: 0.05, Depth: blocks})
	})
	x = nn.LayerNorm(b, x, nn.NormOptions{Name: "ln_f"})
	return ops.MatMul(b, x, ops.Transpose(b, nn.Tie(b, "wte/weight"), 1, 0))
}

// A GPT learns a sentence and writes it, one letter at a time by a cache of keys and values.
func Example_gpt() {
	ctx, text := context.Background(), strings.Repeat("the quick brown fox jumps over the lazy dog ", 8)
	loss := must(ir.Build("gpt", func(b *ir.Builder) {
		nn.Train(b)
		logits := gpt(b, b.Input("tokens", ir.I32, ir.Dims(rows, window)...))
		b.Output("loss", ops.CrossEntropyMean(b, logits, b.Input("next", ir.I32, ir.Dims(rows, window)...)))
	}))
	write := must(ir.Build("write", func(b *ir.Builder) {
		nn.Infer(b)
		nn.Cache(b, window)
		b.Output("next", ops.ArgMax(b, gpt(b, b.Input("token", ir.I32, ir.Dims(1, 1)...)), -1))
	}))
	session := must(rlx.Open("cpu"))
	trainer := must(session.Train(ctx, loss, rlx.Training{
		Optimizer: optim.AdamW{}, Options: optim.Options{ClipNorm: 1}, Rate: 0.003, Seed: 1, Eval: []ir.Entry{{Name: "write", Graph: write}},
	}))
	check(trainer.Run(ctx, 300, func(step int) error {
		tokens, _ := trainer.Input("tokens").Int32s()
		next, _ := trainer.Input("next").Int32s()
		for i := range tokens {
			at := (step*rows+i/window)*7%44 + i%window
			tokens[i], next[i] = int32(strings.IndexByte(letters, text[at])), int32(strings.IndexByte(letters, text[at+1]))
		}
		return nil
	}, nil))
	losses := must(trainer.Losses(ctx))
	token, written := rlx.Int32s([]int32{int32(strings.IndexByte(letters, 'q'))}, 1, 1), "q"
	for range window - 1 {
		out := must(trainer.Program().Call(ctx, "write", rlx.Inputs{"token": token}))
		token = out["next"]
		next, _ := token.Int32s()
		written += string(letters[next[0]])
	}
	fmt.Println(losses[0] > 3, losses[len(losses)-1] < 0.5, written)
	// Output: true true quick brown fox
}
