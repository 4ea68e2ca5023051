package chat_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir/format/chat"
)

// What filters yield one by one is a generator in Python: true even if it yields nothing. The texts are those of jinja2.
func TestGeneratorsAreTrue(t *testing.T) {
	for source, want := range map[string]string{
		"{{ 'a' if []|selectattr('role', 'equalto', 'system') else 'b' }}":           "a",
		"{{ 'a' if []|selectattr('role', 'equalto', 'system')|list else 'b' }}":      "b",
		"{{ not []|reject('none') }} {{ not none|map('upper') }}":                    "False False",
		"{{ not []|unique }} {{ not {}|items }} {{ not []|reverse }}":                "False False False",
		"{{ not ''|reverse }} {{ not []|sort }} {{ []|select|first|default(1) }}":    "True True 1",
		"{{ [missing, none] }} {{ {'a': missing} }} {{ (missing, 1) }}{{ missing }}": "[Undefined, None] {'a': Undefined} (Undefined, 1)",
	} {
		tmpl, err := chat.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tmpl.Render(nil); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", source, got, err, want)
		}
	}
}
