package lm_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// A decoder from a configuration, to be trained from the start.
func ExampleDecoder() {
	config, err := lm.ReadConfig(strings.NewReader(`{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
		"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 128}`))
	if err != nil {
		log.Fatal(err)
	}
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		nn.Train(b)
		logits := lm.Decoder(b, config, b.Input("tokens", ir.I32, ir.Dims(8, 32)...))
		b.Output("loss", ops.CrossEntropyMean(b, logits, b.Input("next", ir.I32, ir.Dims(8, 32)...)))
	})
	if err != nil {
		log.Fatal(err)
	}
	first := loss.Ports()[1]
	fmt.Println(first.Name, first.Value.Type())
	// Output: model/embed_tokens/weight f32[256,64]
}
