// Command server classifies texts over HTTP: a POST of [3, 1, 4], word indices, returns the scores
// of the classes. Concurrent requests run as one batch; the number of texts and their length are
// open sizes of the compiled program.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"slices"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

const words, width, classes, maxTokens, maxBatch = 1000, 64, 4, 512, 32

// classifier is an MLP on the mean of the embeddings of each text.
func classifier(b *ir.Builder) {
	batch, seq := ir.Sym("batch"), ir.Sym("seq")
	x := nn.Embedding(b, b.Input("tokens", ir.I32, batch, seq), words, width)
	length := ops.ExpandDims(b, b.Input("lengths", ir.I32, batch), 1)
	inText := ops.Lt(b, ops.Iota(b, ir.I32, 1, batch, seq), length)
	sum := ops.ReduceSum(b, ops.Mul(b, x, ops.ExpandDims(b, ops.Convert(b, inText, ir.F32), 2)), 1)
	mean := ops.Div(b, sum, ops.Convert(b, length, ir.F32))
	b.Output("scores", ops.Softmax(b, nn.Linear(b, nn.MLP(b, mean, 4*width), classes), 1))
}

// load compiles the classifier with random weights; a real server would load a checkpoint.
func load(ctx context.Context, device string) (*rlx.Program, error) {
	model, err := ir.Build("classifier", classifier)
	if err != nil {
		return nil, err
	}
	initial, err := rlx.InitGraph(model, nil, map[string]rlx.Initializer{"*": rlx.GlorotUniform()})
	if err != nil {
		return nil, err
	}
	module, err := ir.NewModule("classifier", ir.Entry{Name: "classify", Graph: model}, ir.Entry{Name: "init", Graph: initial})
	if err != nil {
		return nil, err
	}
	session, err := rlx.Open(device)
	if err != nil {
		return nil, err
	}
	sizes := map[string]rlx.Size{"batch": {Max: maxBatch}, "seq": {Max: maxTokens}}
	program, err := session.CompileWith(ctx, module, rlx.CompileOptions{Sizes: sizes, Buckets: 64})
	if err != nil {
		return nil, err
	}
	_, err = program.Call(ctx, "init", rlx.Inputs{rlx.SeedInput: rlx.Uint32(1)})
	return program, err
}

type request struct {
	tokens []int32
	answer chan any // of capacity 1: the scores, or an error
}

// run serves requests in batches: those that arrive during a run are in the next one.
func run(program *rlx.Program, requests <-chan request) {
	for first := range requests {
		batch, longest := []request{first}, len(first.tokens)
		for len(batch) < maxBatch && len(requests) > 0 {
			batch = append(batch, <-requests)
			longest = max(longest, len(batch[len(batch)-1].tokens))
		}
		tokens, lengths := make([]int32, len(batch)*longest), make([]int32, len(batch))
		for i, r := range batch {
			lengths[i] = int32(copy(tokens[i*longest:], r.tokens))
		}
		out, err := program.Call(context.Background(), "classify", rlx.Inputs{
			"tokens": rlx.Int32s(tokens, len(batch), longest), "lengths": rlx.Int32s(lengths, len(batch)),
		})
		for i, r := range batch {
			if err != nil {
				r.answer <- err
				continue
			}
			scores, _ := out["scores"].Float32s()
			r.answer <- scores[i*classes : (i+1)*classes]
		}
	}
}

// handler reads requests and writes answers.
func handler(requests chan<- request) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := request{answer: make(chan any, 1)}
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&q.tokens)
		unknown := func(word int32) bool { return word < 0 || word >= words }
		if n := len(q.tokens); err != nil || n == 0 || n > maxTokens || slices.ContainsFunc(q.tokens, unknown) {
			http.Error(w, "the text must have 1 to 512 words, from 0 to 999", http.StatusBadRequest)
			return
		}
		requests <- q
		answer := <-q.answer
		if err, failed := answer.(error); failed {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(answer)
	}
}

func main() {
	program, err := load(context.Background(), "")
	if err != nil {
		log.Fatal(err)
	}
	requests := make(chan request, maxBatch)
	go run(program, requests)
	log.Fatal(http.ListenAndServe("localhost:8080", handler(requests)))
}
