package gguf_test

import (
	"bytes"
	"fmt"
	"io"
	"log"

	"github.com/rlx-go/rlx/ir/format/gguf"
)

func Example() {
	packed, err := gguf.Quantize(gguf.Q8_0, make([]float32, 32))
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	err = gguf.Write(&file, []gguf.Pair{{Key: "general.architecture", Value: "llama"}}, []gguf.Entry{{
		Name: "output.weight", Type: gguf.Q8_0, Dims: []int{1, 32},
		Write: func(w io.Writer) error { _, err := w.Write(packed); return err },
	}})
	if err != nil {
		log.Fatal(err)
	}

	f, err := gguf.OpenAt(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		log.Fatal(err)
	}
	architecture, _ := f.Text("general.architecture")
	info, _ := f.Info("output.weight")
	x, err := f.Floats("output.weight")
	fmt.Println(architecture, info.Type, info.Dims, len(x), err)
	// Output: llama q8_0 [1 32] 32 <nil>
}
