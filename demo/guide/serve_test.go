package guide_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

func Example_serve() {
	ctx := context.Background()
	session := must(rlx.Open("cpu"))
	module := must(ir.NewModule("points", ir.Entry{Name: "infer", Graph: inferGraph(1)}))
	program := must(session.Compile(ctx, module))
	defer session.Close(ctx)
	check(program.Load(ctx, rlx.Inputs{ // those of Example_infer in earnest
		"linear0/weight": rlx.Float32s(make([]float32, 64), 2, 32), "linear0/bias": rlx.Float32s(make([]float32, 32)),
		"linear1/weight": rlx.Float32s(make([]float32, 64), 32, 2), "linear1/bias": rlx.Float32s(make([]float32, 2)),
	}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var point [2]float32
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<10)).Decode(&point); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := program.Call(r.Context(), "infer", rlx.Inputs{"x": rlx.Float32s(point[:], 1, 2)})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		p, _ := out["probabilities"].Float32s()
		_ = json.NewEncoder(w).Encode(p)
	}))
	defer server.Close()
	answer := must(http.Post(server.URL, "application/json", strings.NewReader("[0.5, 1]")))
	defer answer.Body.Close()
	fmt.Print(string(must(io.ReadAll(answer.Body))))
	// Output: [0.5,0.5]
}

func Example_sizes() {
	ctx := context.Background()
	g := must(ir.Build("rows", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("batch"), ir.N(2))
		b.Output("mean", ops.Mean(b, x, 0))
	}))
	session := must(rlx.Open("cpu"))
	defer session.Close(ctx)
	program := must(session.CompileWith(ctx, must(ir.NewModule("rows", ir.Entry{Name: "run", Graph: g})), rlx.CompileOptions{
		Sizes: map[string]rlx.Size{"batch": {Max: 64}}, // 1, 2, 4, ... 64
	}))
	check(program.Prepare(ctx, "run", map[string]int{"batch": 3}))
	for _, rows := range [][]float32{{1, 2}, {1, 2, 3, 4, 5, 6}} { // the second is compiled for four rows
		out := must(program.Call(ctx, "run", rlx.Inputs{"x": rlx.Float32s(rows, len(rows)/2, 2)}))
		fmt.Println(must(out["mean"].Float32s()))
	}
	// Output:
	// [1 2]
	// [3 4]
}

func Example_cache() {
	ctx := context.Background()
	block := func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.TransformerBlock(b, x, 2, nn.TransformerOptions{Causal: true})
	}
	whole := must(ir.Build("whole", func(b *ir.Builder) {
		nn.Infer(b)
		b.Output("y", block(b, b.Input("x", ir.F32, ir.Dims(1, 6, 8)...)))
	}))
	next := must(ir.Build("next", func(b *ir.Builder) {
		nn.Infer(b)
		nn.Cache(b, 6) // keys and values of up to 6 positions are states
		b.Output("y", block(b, b.Input("x", ir.F32, ir.Dims(1, 1, 8)...)))
	}))
	first := must(rlx.InitGraph(next, paramsOf(next), nil))
	session := must(rlx.Open("cpu"))
	program := must(session.Compile(ctx, must(ir.NewModule("m",
		ir.Entry{Name: "whole", Graph: whole}, ir.Entry{Name: "next", Graph: next}, ir.Entry{Name: "init", Graph: first}))))
	defer program.Close(ctx)
	must(program.Call(ctx, "init", rlx.Inputs{rlx.SeedInput: rlx.Uint32(1)}))
	x := make([]float32, 6*8)
	for i := range x {
		x[i] = float32(i%11) / 11
	}
	want := must(must(program.Call(ctx, "whole", rlx.Inputs{"x": rlx.Float32s(x, 1, 6, 8)}))["y"].Float32s())
	worst := float32(0)
	for row := range slices.Chunk(x, 8) { // one position at a time
		got := must(must(program.Call(ctx, "next", rlx.Inputs{"x": rlx.Float32s(row, 1, 1, 8)}))["y"].Float32s())
		for i := range got {
			worst = max(worst, got[i]-want[i], want[i]-got[i])
		}
		want = want[8:]
	}
	fmt.Println(worst < 1e-5)
	// Output: true
}

// paramsOf returns the names of the parameters of a graph.
func paramsOf(g *ir.Graph) (names []string) {
	for _, p := range g.Ports() {
		if p.Kind == ir.ParamPort {
			names = append(names, p.Name)
		}
	}
	return names
}

func Example_pytorch() {
	ctx := context.Background()
	// safetensors.torch.save_file(model.state_dict(), "model.safetensors"), read by safetensors.ReadFile:
	state := rlx.Inputs{
		"0.weight": rlx.Float32s([]float32{1, 2, 3, 4, 5, 6}, 3, 2), "0.bias": rlx.Float32s([]float32{0, 0, 1}),
		"2.weight": rlx.Float32s([]float32{1, 1, 1}, 1, 3), "2.bias": rlx.Float32s([]float32{0.5}),
	}
	g := must(ir.Build("infer", func(b *ir.Builder) {
		h := ops.Relu(b, nn.Linear(b, b.Input("x", ir.F32, ir.Dims(1, 2)...), 3))
		b.Output("y", nn.Linear(b, h, 1))
	}))
	program := must(must(rlx.Open("cpu")).Compile(ctx, must(ir.NewModule("m", ir.Entry{Name: "infer", Graph: g}))))
	defer program.Close(ctx)
	check(program.LoadWith(ctx, state, rlx.LoadOptions{
		Rename: strings.NewReplacer("0.", "linear0/", "2.", "linear1/").Replace, // torch.nn.Sequential(Linear, ReLU, Linear)
		OutIn:  []string{"*/weight"},                                            // PyTorch has [out, in], rlx [in, out]
	}))
	out := must(program.Call(ctx, "infer", rlx.Inputs{"x": rlx.Float32s([]float32{1, 1}, 1, 2)}))
	fmt.Println(must(out["y"].Float32s()))
	// Output: [22.5]
}

func Example_devices() {
	for _, d := range rlx.Devices() {
		if d.Err != nil {
			fmt.Println(d.Name, "is missing:", d.Err)
		}
	}
	module := must(ir.NewModule("points", ir.Entry{Name: "infer", Graph: inferGraph(4)}))
	for _, report := range must(rlx.DevicesFor(module)) {
		fmt.Print(report)
	}
	session := must(rlx.OpenFor(module, rlx.Policy{Prefer: []string{"cpu"}})) // or rlx.Open("cuda,webgpu,cpu")
	fmt.Println(session.Device().Name)
	// Output:
	// cpu computes all 4 nodes: 4 decomposed
	// cpu
}

func Example_text() {
	g := must(ir.Build("double", func(b *ir.Builder) {
		b.Output("y", ops.Mul(b, b.Input("x", ir.F32, ir.Sym("n")), ops.Const(b, ir.F32, 2)))
	}))
	var file bytes.Buffer // os.WriteFile("double.txt", ...), and then: rlx plan double.txt -size n=4
	fmt.Fprint(&file, g)
	read := must(ir.Parse(file.String()))
	fmt.Println(read.Equal(g))
	fmt.Print(read)
	// Output:
	// true
	// graph "double" {
	//   %0 = input "x" : f32[n]
	//   %1 = constant 2 : f32[]
	//   %2 = broadcast_in_dim(%1) {shape=[n] axes=[]} : f32[n]
	//   %3 = mul(%0, %2) : f32[n]
	//   output "y" = %3
	// }
}

func Example_ownOp() {
	ctx := context.Background()
	g := must(ir.Build("mish", func(b *ir.Builder) {
		x := b.Param("x", ir.F32, ir.N(3))
		y := mish(b, x) // a function of a builder: it fuses, and has a derivative, by those of its ops
		b.Output("loss", ops.ReduceSum(b, y))
	}))
	trainer := must(must(rlx.Open("cpu")).Train(ctx, g, rlx.Training{Rate: 0.1, Init: map[string]rlx.Initializer{"x": rlx.Constant(1)}}))
	for range 300 {
		check(trainer.Step(ctx, nil))
	}
	x := must(must(trainer.Params(ctx))["x"].Float32s())
	fmt.Printf("the least value is at %.3f\n", x[0])
	// Output: the least value is at -1.192
}

// mish is x·tanh(log(1 + eˣ)) (Misra 2019).
func mish(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Mul(b, x, ops.Tanh(b, ops.Softplus(b, x)))
}
