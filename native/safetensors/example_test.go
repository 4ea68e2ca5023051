package safetensors_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

func Example() {
	var file bytes.Buffer
	weights := map[string]native.Tensor{"w": native.Float32s([]float32{1, 2, 3, 4}, 2, 2)}
	if err := safetensors.Write(&file, weights, map[string]string{"model": "example"}); err != nil {
		log.Fatal(err)
	}
	read, metadata, err := safetensors.Read(&file)
	if err != nil {
		log.Fatal(err)
	}
	w, err := read["w"].Float32s()
	fmt.Println(read["w"], w, metadata["model"], err)
	// Output: f32[2,2] [1 2 3 4] example <nil>
}
