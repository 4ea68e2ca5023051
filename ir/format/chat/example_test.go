package chat_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/rlx-go/rlx/ir/format/chat"
)

func Example() {
	t, err := chat.Parse(`{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}`)
	if err != nil {
		log.Fatal(err)
	}
	text, err := t.Render(map[string]any{
		"messages":              []chat.Message{{Role: "user", Content: " Hello "}},
		"add_generation_prompt": true,
	})
	fmt.Println(text, err)
	// Output: <|user|>Hello<|assistant|> <nil>
}

func ExampleError() {
	t, err := chat.Parse("{% if messages[0].role == 'system' %}\n{{ raise_exception('no system messages') }}{% endif %}")
	if err != nil {
		log.Fatal(err)
	}
	_, err = t.Render(map[string]any{"messages": []chat.Message{{Role: "system"}}})
	fmt.Println(errors.Is(err, chat.ErrRaised), err)
	// Output: true chat template, line 2: refused by the template: no system messages
}
