package remote_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/format/remote"
)

func Example() {
	var file bytes.Buffer
	err := gguf.Write(&file, nil, []gguf.Entry{{
		Name: "w", Type: gguf.I8, Dims: []int{3},
		Write: func(w io.Writer) error { _, err := w.Write([]byte{1, 2, 3}); return err },
	}})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "model.gguf", time.Time{}, bytes.NewReader(file.Bytes()))
	}))
	defer server.Close()

	r, err := remote.Open(context.Background(), server.URL+"/model.gguf", nil)
	if err != nil {
		log.Fatal(err)
	}
	f, err := gguf.OpenAt(r, r.Size())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Bytes("w"))
	// Output: [1 2 3] <nil>
}
