// Command server classifies texts over HTTP: a POST of [3, 1, 4], word indices, returns the scores
// of the classes. Concurrent requests run as one batch; the number of texts and their length are
// open sizes of the compiled program.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

const words, width, classes, maxTokens, maxBatch = 1000, 64, 4, 512, 32

// classifier is an MLP on the mean of the embeddings of each text. Texts are padded to the longest.
func classifier(b *ir.Builder) {
	batch, seq := ir.Sym("batch"), ir.Sym("seq")
	x := nn.Embedding(b, b.Input("tokens", ir.I32, batch, seq), words, width)
	length := ops.ExpandDims(b, b.Input("lengths", ir.I32, batch), 1)
	inText := ops.Convert(b, ops.Lt(b, ops.Iota(b, ir.I32, 1, batch, seq), length), ir.F32)
	sum := ops.ReduceSum(b, ops.Mul(b, x, ops.ExpandDims(b, inText, 2)), 1)
	mean := ops.Div(b, sum, ops.Convert(b, length, ir.F32))
	b.Output("scores", ops.Softmax(b, nn.Linear(b, nn.MLP(b, mean, 4*width), classes), 1))
}

// load compiles the classifier with random weights; a real server would load a checkpoint.
func load(ctx context.Context, session *rlx.Session) *rlx.Program {
	model := must(ir.Build("classifier", classifier))
	module := must(ir.NewModule("classifier", ir.Entry{Name: "classify", Graph: model}))
	sizes := map[string]rlx.Size{"batch": {Max: maxBatch}, "seq": {Max: maxTokens}}
	program := must(session.CompileWith(ctx, module, rlx.CompileOptions{Sizes: sizes, Buckets: 64}))
	if err := program.Load(ctx, must(rlx.InitialParams(ctx, model, nil, 1))); err != nil {
		log.Fatal(err)
	}
	return program
}

// handler answers requests in batches: those that arrive during a run are in the next one.
func handler(program *rlx.Program) http.HandlerFunc {
	batcher := must(program.Batcher("classify", rlx.BatcherOptions{Pad: []string{"seq"}}))
	return func(w http.ResponseWriter, r *http.Request) {
		var tokens []int32
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&tokens); err != nil || len(tokens) == 0 {
			http.Error(w, "the text must be a list of words, from 0 to 999", http.StatusBadRequest)
			return
		}
		out, err := batcher.Call(r.Context(), rlx.Inputs{
			"tokens": rlx.Int32s(tokens, 1, len(tokens)), "lengths": rlx.Int32s([]int32{int32(len(tokens))}),
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		scores, _ := out["scores"].Float32s()
		json.NewEncoder(w).Encode(scores)
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return x
}

func main() {
	program := load(context.Background(), must(rlx.Open("")))
	log.Fatal(http.ListenAndServe("localhost:8080", handler(program)))
}
