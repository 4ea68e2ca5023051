package perplexity_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/lm/perplexity"
)

// Of each window of four predictions the second half counts.
func ExampleMeasure() {
	ctx := context.Background()
	model, err := lm.Load("../testdata/qwen3") // a folder of Hugging Face, with random weights
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	session, err := rlx.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close(ctx)
	result, err := perplexity.Measure(ctx, session, model, []int32{5, 8, 13, 21, 34}, perplexity.Options{Context: 4})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Tokens, "predictions count;", result.Perplexity() > 1)
	// Output: 2 predictions count; true
}
