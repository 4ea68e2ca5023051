package lm_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/safetensors"
)

// An adapter that a page has trained for six steps, on a file in blocks of 4 and 8 bits, goes on here from its checkpoint
// (saveCheckpoint in TypeScript): with its matrices, the states of Adam and the number of steps.
func ExampleModel_Loss() {
	const rows, length = 2, 8
	ctx := context.Background()
	m := must(lm.Load("testdata/llama/model.gguf"))
	defer m.Close()
	g := must(ir.Build("loss", func(b *ir.Builder) {
		nn.Train(b)
		tokens, next := b.Input("tokens", ir.I32, ir.Dims(rows, length)...), b.Input("next", ir.I32, ir.Dims(rows, length)...)
		layers := []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"} // all but that of the logits
		nn.LoRA(b, nn.LoRAOptions{Rank: 2, Alpha: 6, Targets: layers}, func() {
			b.Output("loss", m.Loss(b, tokens, next, irlm.LossOptions{Context: length, Checkpoint: true}))
		})
	}))
	step := must(optim.History(must(optim.Step(g, "loss", optim.Adam{}, optim.Options{})), "loss", 64)) // the page keeps 64 losses
	session := must(rlx.Open("cpu"))
	defer session.Close(ctx)
	program := must(session.Compile(ctx, must(ir.NewModule("tuning", ir.Entry{Name: "step", Graph: step}))))
	check(m.Set(ctx, program)) // the weights, which the checkpoint lacks
	values, _, err := safetensors.ReadFile("testdata/tuning.safetensors")
	check(err)
	check(program.LoadWith(ctx, values, rlx.LoadOptions{AllowMissing: true}))
	trainer := must(rlx.NewTrainer(ctx, program, "loss"))
	check(trainer.SetRate(0.01))
	tokens, next := []int32{15, 9, 26, 5, 35, 8, 9, 7}, []int32{9, 26, 5, 35, 8, 9, 7, 2}
	batch := rlx.Inputs{"tokens": rlx.Int32s(slices.Repeat(tokens, rows), rows, length), "next": rlx.Int32s(slices.Repeat(next, rows), rows, length)}
	fmt.Println(trainer.Steps(), "steps of the page")
	for range 20 {
		check(trainer.Step(ctx, batch))
	}
	losses := must(trainer.Losses(ctx))
	fmt.Printf("%d losses here, of which the last is less than a third of the first: %t\n", len(losses), losses[19] < losses[0]/3)
	// Output:
	// 6 steps of the page
	// 20 losses here, of which the last is less than a third of the first: true
}

func must[T any](x T, err error) T {
	check(err)
	return x
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A folder of Hugging Face. Parameters are windows of the file until they are read.
func ExampleLoad() {
	m, err := lm.Load("testdata/qwen2")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	t, err := m.Tensor("model/layers/0/self_attn/q_proj/weight")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Config.Architecture, m.Config.Layers, m.Config.Window, t.DType, t.Dims)
	// Output: qwen2 2 5 bf16 [32 32]
}
