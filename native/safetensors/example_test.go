package safetensors_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx/ir"
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

// A single tensor of a large file is read, as another element type.
func ExampleOpen() {
	name := filepath.Join(os.TempDir(), "rlx-example-open.safetensors")
	defer os.Remove(name)
	err := safetensors.WriteFile(name, map[string]native.Tensor{"w": native.Float64s([]float64{1, 2})}, nil)
	if err != nil {
		log.Fatal(err)
	}
	f, err := safetensors.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	w, err := f.As("w", ir.F32)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Names(), w)
	// Output: [w] f32[2]
}
