package guide_test

import (
	"context"
	"fmt"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/lm/generate"
)

func Example_generate() {
	ctx := context.Background()
	model := must(lm.Load("../../native/lm/testdata/llama")) // generate.Load reads the tokenizer, too
	defer model.Close()
	session := must(rlx.Open("cpu"))
	defer session.Close(ctx)
	engine := must(generate.New(ctx, session, generate.Of(model), generate.Options{Slots: 4, Context: 64}))
	defer engine.Close(ctx)
	request := generate.Request{Tokens: []int32{5, 8, 13, 21, 34}, MaxTokens: 3}
	for token, err := range engine.Generate(ctx, request) {
		check(err)
		if token.Finish != "" {
			fmt.Println(token.Index+1, "tokens, as many as allowed:", token.Finish)
		}
	}
	result := must(engine.Complete(ctx, request)) // greedy: the same again
	fmt.Println(len(result.Tokens), "tokens,", result.Stats.Reused, "of the prompt reused")
	// Output:
	// 3 tokens, as many as allowed: length
	// 3 tokens, 4 of the prompt reused
}
