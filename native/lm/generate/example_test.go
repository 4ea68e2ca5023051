package generate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/lm/generate"
)

// Tokens are streamed as they are sampled. With a tokenizer, [generate.Load], a request has a text.
func ExampleEngine_Generate() {
	ctx := context.Background()
	model, err := lm.Load("../testdata/llama")
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	session, err := rlx.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close(ctx)
	engine, err := generate.New(ctx, session, generate.Of(model), generate.Options{Slots: 1, Chunk: 8, Context: 32})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close(ctx)
	for token, err := range engine.Generate(ctx, generate.Request{Tokens: []int32{5, 8, 13, 21}, MaxTokens: 3}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %q\n", token.Index, token.Finish)
	}
	// Output:
	// 0 ""
	// 1 ""
	// 2 "length"
}
