package tokenizer_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/rlx-go/rlx/ir/format/tokenizer"
)

const small = `{
	"added_tokens": [{"id": 4, "content": "<|end|>", "special": true}],
	"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"},
	"decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"},
	"model": {"type": "BPE", "vocab": {"h": 0, "i": 1, "▁": 2, "hi": 3}, "merges": [["h", "i"]]}
}`

func Example() {
	t, err := tokenizer.Read(strings.NewReader(small))
	if err != nil {
		log.Fatal(err)
	}
	ids, err := t.Encode("hi hi<|end|>", tokenizer.EncodeOptions{})
	text, _ := t.Decode(ids, tokenizer.DecodeOptions{OmitSpecial: true})
	fmt.Println(ids, text, err)
	// Output: [3 2 3 4] hi hi <nil>
}

func ExampleTokenizer_Stream() {
	t, err := tokenizer.Read(strings.NewReader(small))
	if err != nil {
		log.Fatal(err)
	}
	s := t.Stream(tokenizer.DecodeOptions{OmitSpecial: true})
	for _, id := range []int32{3, 2, 3, 4} { // as a model generates them
		text, err := s.Push(id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q ", text)
	}
	text, err := s.Flush()
	fmt.Printf("%q %v\n", text, err)
	// Output: "hi" " " "hi" "" "" <nil>
}
