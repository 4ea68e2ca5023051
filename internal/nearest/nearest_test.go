package nearest_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/nearest"
)

func TestName(t *testing.T) {
	others := []string{"h.0.attn.weight", "h.0.attn.bias", "wte"}
	for name, want := range map[string]string{
		"h/0/attn/weight": "h.0.attn.weight", "h/0/attention/bias": "h.0.attn.bias", "wpe": "wte", "q": "",
	} {
		if got := nearest.Name(name, others); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := nearest.Name("a", nil); got != "" {
		t.Errorf("of none it is %q", got)
	}
}
