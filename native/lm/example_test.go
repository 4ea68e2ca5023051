package lm_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/native/lm"
)

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
