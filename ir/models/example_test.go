package models_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/ir/nn"
)

// The graph of an encoder for batches of any size and texts of any length.
func ExampleTextEncoder() {
	config, err := models.ReadConfig(strings.NewReader(`{
		"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 100, "hidden_size": 32, "intermediate_size": 64,
		"num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 16, "type_vocab_size": 2, "hidden_act": "gelu"}`))
	if err != nil {
		log.Fatal(err)
	}
	g, err := ir.Build("hidden", func(b *ir.Builder) {
		nn.Infer(b)
		tokens := b.Input("tokens", ir.I32, ir.Sym("batch"), ir.Sym("time"))
		b.Output("hidden", models.TextEncoder(b, *config.Text, tokens))
	})
	if err != nil {
		log.Fatal(err)
	}
	hidden, _ := g.Output("hidden")
	weight, _ := g.Port("bert/encoder/layer/0/attention/self/query/weight")
	fmt.Println(config.Kind(), hidden.Value.Type(), weight.Value.Type())
	// Output: text f32[batch,time,32] f32[32,32]
}
