package guide_test

import (
	"context"
	"fmt"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/lm"
)

func Example_languageModel() {
	ctx := context.Background()
	model := must(lm.Load("../../native/lm/testdata/smollm")) // or a file, "model.gguf"
	defer model.Close()
	entry := func(name string, tokens int) ir.Entry {
		return ir.Entry{Name: name, Graph: must(ir.Build(name, func(b *ir.Builder) {
			nn.Infer(b)
			nn.Cache(b, 64)
			tokens := b.Input("tokens", ir.I32, ir.Dims(1, tokens)...)
			logits := model.Decoder(b, tokens, irlm.DecoderOptions{Last: true})
			b.Output("next", ops.ArgMax(b, logits, -1))
		}))}
	}
	session := must(rlx.Open("cpu"))
	program := must(session.Compile(ctx, must(ir.NewModule("model", entry("prompt", 4), entry("one", 1)))))
	check(model.Set(ctx, program))
	out := must(program.Call(ctx, "prompt", rlx.Inputs{"tokens": rlx.Int32s([]int32{26, 8, 61, 40}, 1, 4)}))
	var written []int32
	for range 5 {
		next, _ := out["next"].Int32s()
		written = append(written, next[0])
		out = must(program.Call(ctx, "one", rlx.Inputs{"tokens": rlx.Int32s(next, 1, 1)}))
	}
	fmt.Println(model.Config.Architecture, written)
	// Output: llama [16 53 44 44 44]
}
