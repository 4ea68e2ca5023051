package guide_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/safetensors"
)

func Example_train() {
	ctx := context.Background()
	session := must(rlx.Open("cpu"))
	eval := must(ir.Build("eval", func(b *ir.Builder) {
		nn.Infer(b)
		logits := model(b, b.Input("x", ir.F32, ir.Dims(200, 2)...))
		b.Output("accuracy", nn.Accuracy(b, logits, b.Input("labels", ir.I32, ir.N(200))))
	}))
	trainer := must(session.Train(ctx, lossGraph(20), rlx.Training{
		Optimizer: optim.AdamW{}, Rate: 0.01, Seed: 1, Eval: []ir.Entry{{Name: "eval", Graph: eval}},
	}))
	last := must(rlx.Fit(ctx, trainer, rlx.Loop{
		Data: rlx.Shuffled(points(400), 20, 1), Epochs: 30,
		Eval: rlx.Evaluation{Entry: "eval", Data: rlx.InOrder(points(200), 200)},
	}))
	fmt.Println(last.Step, last.Eval["accuracy"] > 0.95)
	// Output: 600 true
}

func Example_measure() {
	ctx := context.Background()
	session := must(rlx.Open("cpu"))
	eval := must(ir.Build("eval", func(b *ir.Builder) {
		nn.Infer(b)
		logits, labels := model(b, b.Input("x", ir.F32, ir.Dims(200, 2)...)), b.Input("labels", ir.I32, ir.N(200))
		probabilities := ops.Softmax(b, logits, 1)
		nn.Confusion(b, "classes", ops.ArgMax(b, logits, -1), labels, 2)
		nn.AUC(b, "auc", probabilities, labels)
		nn.Calibration(b, "chances", probabilities, labels)
	}))
	trainer := must(session.Train(ctx, lossGraph(20), rlx.Training{Rate: 0.01, Seed: 1, Eval: []ir.Entry{{Name: "eval", Graph: eval}}}))
	last := must(rlx.Fit(ctx, trainer, rlx.Loop{
		Data: rlx.Shuffled(points(400), 20, 1), Epochs: 30,
		Eval: rlx.Evaluation{Entry: "eval", Data: rlx.InOrder(points(200), 200)},
		Stop: rlx.EarlyStop{Metric: "classes mcc", Larger: true},
	}))
	fmt.Println(last.Eval["classes mcc"] > 0.9, last.Eval["auc"] > 0.98, last.Eval["chances ece"] < 0.2)
	// Output: true true true
}

func Example_resume() {
	ctx := context.Background()
	session := must(rlx.Open("cpu"))
	folder := must(os.MkdirTemp("", "guide"))
	defer os.RemoveAll(folder)
	loop := rlx.Loop{
		Data: rlx.Shuffled(points(400), 20, 1), Steps: 50,
		Save: rlx.Checkpoints{Folder: folder, Every: 25, Last: 2, Resume: true},
	}
	first := must(session.Train(ctx, lossGraph(20), rlx.Training{Seed: 1}))
	must(rlx.Fit(ctx, first, loop))

	loop.Steps = 100 // later, in another process
	second := must(session.Train(ctx, lossGraph(20), rlx.Training{Seed: 1}))
	last := must(rlx.Fit(ctx, second, loop))
	files := must(filepath.Glob(filepath.Join(folder, "step-*")))
	fmt.Println(last.Step, len(files), filepath.Base(files[1]))
	// Output: 100 2 step-00000100.safetensors
}

func Example_observe() {
	ctx := context.Background()
	session := must(rlx.Open("cpu"))
	folder := must(os.MkdirTemp("", "guide"))
	defer os.RemoveAll(folder)
	events := must(rlx.NewEvents(filepath.Join(folder, "runs"))) // tensorboard --logdir runs
	defer events.Close()
	var lines bytes.Buffer
	trainer := must(session.Train(ctx, lossGraph(20), rlx.Training{StopOnNaN: true, Watch: true}))
	must(rlx.Fit(ctx, trainer, rlx.Loop{
		Data: rlx.Prefetch(rlx.Shuffled(points(400), 20, 1), 2), Steps: 40, Every: 20,
		Callbacks: []func(r rlx.Report) error{events.Report, rlx.JSONLines(&lines), func(r rlx.Report) error {
			if r.Loss < 0.01 {
				return rlx.ErrStop
			}
			return nil
		}},
	}))
	fmt.Println(bytes.Count(lines.Bytes(), []byte("\n")), bytes.Contains(lines.Bytes(), []byte(`"step":20`)))
	// Output: 2 true
}

func Example_average() {
	ctx := context.Background()
	session := must(rlx.Open("cpu"))
	eval := must(ir.Build("eval", func(b *ir.Builder) {
		nn.Infer(b)
		logits := model(b, b.Input("x", ir.F32, ir.Dims(200, 2)...))
		b.Output("accuracy", nn.Accuracy(b, logits, b.Input("labels", ir.I32, ir.N(200))))
	}))
	trainer := must(session.Train(ctx, lossGraph(20), rlx.Training{
		Rate: 0.01, Seed: 1, Options: optim.Options{Average: 0.99}, EvalAverages: []ir.Entry{{Name: "eval", Graph: eval}},
	}))
	last := must(rlx.Fit(ctx, trainer, rlx.Loop{
		Data: rlx.Shuffled(points(400), 20, 1), Epochs: 30,
		Eval: rlx.Evaluation{Entry: "eval", Data: rlx.InOrder(points(200), 200)},
	}))
	weights := must(trainer.Averages(ctx)) // in place of Params, for inference
	fmt.Println(last.Eval["accuracy"] > 0.95, weights["linear0/weight"])
	// Output: true f32[2,32]
}

func Example_inspect() {
	g := must(ir.Build("inspect", func(b *ir.Builder) {
		h := ops.Exp(b, b.Input("x", ir.F32, ir.N(3)))
		b.Output("h", h) // a value inside is another output
		b.Output("y", ops.ReduceSum(b, h, 0))
	}))
	fmt.Print(g)
	out := must(ir.Eval(g, map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{0, 0, 0})}, ir.EvalOptions{}))
	fmt.Println(out[0].F, out[1].F)
	// Output:
	// graph "inspect" {
	//   %0 = input "x" : f32[3]
	//   %1 = exp(%0) : f32[3]
	//   %2 = reduce_sum(%1) {axes=[0]} : f32[]
	//   output "h" = %1
	//   output "y" = %2
	// }
	// [1 1 1] [3]
}

func Example_loop() {
	ctx := context.Background()
	session := must(rlx.Open("cpu"))
	trainer := must(session.Train(ctx, lossGraph(20), rlx.Training{Optimizer: optim.SGD{Momentum: 0.9}, Seed: 1}))
	for step := range 200 {
		rate := 0.1
		if step >= 150 {
			rate = 0.01
		}
		check(trainer.SetRate(rate))
		check(trainer.Step(ctx, points(20))) // returns before the device is done
	}
	losses := must(trainer.Losses(ctx)) // waits
	fmt.Println(len(losses), losses[199] < losses[0])
	// Output: 200 true
}

func Example_infer() {
	ctx := context.Background()
	session := must(rlx.Open("cpu"))
	trainer := must(session.Train(ctx, lossGraph(20), rlx.Training{Rate: 0.01, Seed: 1}))
	must(rlx.Fit(ctx, trainer, rlx.Loop{Data: rlx.Shuffled(points(400), 20, 1), Epochs: 30}))
	folder := must(os.MkdirTemp("", "guide"))
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "weights.safetensors")
	check(safetensors.WriteFile(file, must(trainer.Params(ctx)), nil))

	program := must(session.Compile(ctx, must(ir.NewModule("points", ir.Entry{Name: "infer", Graph: inferGraph(2)}))))
	defer program.Close(ctx)
	values, _, err := safetensors.ReadFile(file)
	check(err)
	check(program.Load(ctx, values))
	out := must(program.Call(ctx, "infer", rlx.Inputs{"x": rlx.Float32s([]float32{0, 0, 1.3, 0.2}, 2, 2)}))
	p := must(out["probabilities"].Float32s())
	fmt.Println(p[1] > 0.5, p[3] > 0.5)
	// Output: true false
}

func Example_gan() {
	ctx := context.Background()
	generate := func(b *ir.Builder, noise ir.Value) ir.Value {
		return nn.Linear(b, noise, 1, nn.LinearOptions{Name: "generator"})
	}
	judge := func(b *ir.Builder, x ir.Value) ir.Value {
		h := ops.Tanh(b, nn.Linear(b, x, 16, nn.LinearOptions{Name: "critic/in"}))
		return nn.Linear(b, h, 1, nn.LinearOptions{Name: "critic/out"})
	}
	noise := func(b *ir.Builder) ir.Value { return b.Input("noise", ir.F32, ir.Dims(32, 1)...) }
	critic := must(ir.Build("critic", func(b *ir.Builder) {
		var fake, real ir.Value
		made := generate(b, noise(b))
		fake = judge(b, made)
		nn.Shared(b, func() { real = judge(b, b.Input("real", ir.F32, ir.Dims(32, 1)...)) })
		b.Output("loss", ops.Mean(b, ops.Add(b, ops.Softplus(b, fake), ops.Softplus(b, ops.Neg(b, real)))))
	}))
	generator := must(ir.Build("generator", func(b *ir.Builder) {
		b.Output("loss", ops.Mean(b, ops.Softplus(b, ops.Neg(b, judge(b, generate(b, noise(b)))))))
	}))
	session := must(rlx.Open("cpu"))
	joint := must(session.TrainJointly(ctx, rlx.JointTraining{Seed: 1, Objectives: []rlx.Objective{
		{Name: "critic", Loss: critic, Rate: 0.01, Options: optim.Options{Frozen: []string{"generator"}}},
		{Name: "generator", Loss: generator, Rate: 0.01, Options: optim.Options{Frozen: []string{"critic"}}},
	}}))
	defer joint.Program().Close(ctx)
	x, real := make([]float32, 32), make([]float32, 32)
	for step := range 600 {
		for i := range x {
			x[i] = float32((i*7+step)%32)/16 - 1
			real[i] = 3 + 0.5*x[(i*5)%32] // from 2.5 to 3.5
		}
		noise := rlx.Float32s(x, 32, 1)
		check(joint.Trainer("critic").Step(ctx, rlx.Inputs{"noise": noise, "real": rlx.Float32s(real, 32, 1)}))
		check(joint.Trainer("generator").Step(ctx, rlx.Inputs{"noise": noise}))
	}
	bias := must(must(joint.Program().Get(ctx, "generator/bias")).Float32s())
	fmt.Println(bias[0] > 2, bias[0] < 4)
	// Output: true true
}

func Example_lora() {
	ctx := context.Background()
	session := must(rlx.Open("cpu"))
	base := must(session.Train(ctx, lossGraph(20), rlx.Training{Rate: 0.01, Seed: 1}))
	must(rlx.Fit(ctx, base, rlx.Loop{Data: rlx.Shuffled(points(400), 20, 1), Epochs: 20}))
	weights := must(base.Params(ctx))

	tuned := must(ir.Build("tuned", func(b *ir.Builder) {
		nn.Train(b)
		var logits ir.Value
		nn.LoRA(b, nn.LoRAOptions{Rank: 2}, func() { logits = model(b, b.Input("x", ir.F32, ir.Dims(20, 2)...)) })
		b.Output("loss", ops.CrossEntropyMean(b, logits, b.Input("labels", ir.I32, ir.N(20))))
	}))
	trainer := must(session.Train(ctx, tuned, rlx.Training{Rate: 0.01, Seed: 2}))
	check(trainer.Program().LoadWith(ctx, weights, rlx.LoadOptions{AllowMissing: true, AllowExtra: true}))
	must(rlx.Fit(ctx, trainer, rlx.Loop{Data: rlx.Shuffled(points(400), 20, 1), Epochs: 1}))
	for name, after := range must(trainer.Params(ctx)) {
		if before, known := weights[name]; known && !bytes.Equal(before.Data, after.Data) {
			fmt.Println(name, "has changed")
		}
	}
	adapter := must(trainer.Program().Get(ctx, "linear0/lora_B/weight"))
	fmt.Println(adapter, bytes.Count(adapter.Data, []byte{0}) < len(adapter.Data))

	folder := must(os.MkdirTemp("", "adapter"))
	defer os.RemoveAll(folder)
	check(safetensors.WriteAdapter(folder, safetensors.Adapter{Tensors: must(trainer.Params(ctx))}))
	read := must(safetensors.ReadAdapter(folder)) // or of PEFT's save_pretrained
	check(trainer.Program().LoadWith(ctx, read.Tensors, rlx.LoadOptions{AllowMissing: true}))
	fmt.Println(len(read.Tensors), "matrices of rank", read.Rank)
	merged := must(read.Merge(must(trainer.Params(ctx)), nil)) // for a program without nn.LoRA
	fmt.Println(len(merged), "weights")
	// Output:
	// f32[2,32] true
	// 4 matrices of rank 2
	// 4 weights
}

func Example_errors() {
	ctx := context.Background()
	_, err := ir.Build("wrong", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(8, 3)...), b.Param("w", ir.F32, ir.Dims(4, 2)...)
		b.Output("y", ops.MatMul(b, x, w))
	})
	fmt.Println(errors.Is(err, ir.ErrShape))
	session := must(rlx.Open("cpu"))
	trainer := must(session.Train(ctx, lossGraph(20), rlx.Training{}))
	err = trainer.Step(ctx, points(10))
	fmt.Println(errors.Is(err, ir.ErrShape))
	var missing *rlx.CheckpointError
	err = trainer.Program().Load(ctx, rlx.Inputs{"linear0/weight": rlx.Float32(1)})
	fmt.Println(errors.As(err, &missing), missing.Missing[0])
	short, cancel := context.WithCancel(ctx)
	cancel()
	_, err = rlx.Fit(short, trainer, rlx.Loop{Data: rlx.Shuffled(points(400), 20, 1), Steps: 10})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// true
	// true
	// true linear0/bias
	// true
}
