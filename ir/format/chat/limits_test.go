package chat_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir/format/chat"
)

// Hostile templates end with an error, and soon.
func TestLimits(t *testing.T) {
	for _, source := range []string{
		"{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
		"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
		"{{ 'a' * 1000000000 }}", "{{ 1000000000 * 'a' }}", "{{ range(1000000000) }}", "{{ range(100000)|list|string * 100 }}",
		"{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s]|join %}{% endfor %}",
		"{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s|replace('a', 'aa') %}{% endfor %}",
		"{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}",
		"{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
		"{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
		"{% set ns = namespace(l=[1]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l|tojson }}",
		"{% set ns = namespace(l={}) %}{% for i in range(100) %}{% set ns.l = {'a': ns.l, 'b': ns.l} %}{% endfor %}{{ ns.l == ns.l }}",
		"{% set s = 'abcdefgh' * 100000 %}{% for i in range(100000) %}{{ s[-1] }}{% endfor %}",
		"{% set s = 'abcdefgh' * 10000 %}{% for i in range(100000) %}{{ 'x' in s }}{{ s|upper|length }}{{ s.find('x') }}{% endfor %}",
		"{% for i in range(1000) %}{{ 'a' * 100000 }}{% endfor %}",
		strings.Repeat("(", 100000), "{{ " + strings.Repeat("(", 100000) + "}}", "{{ " + strings.Repeat("[", 100000) + "}}", "{{ " + strings.Repeat("not ", 100000) + "1 }}",
		"{{ " + strings.Repeat("-", 100000) + "1 }}", strings.Repeat("{% if 1 %}", 100000), "{{ 1" + strings.Repeat(" if 1 else 1", 100000) + " }}",
		"{% if 0 %}" + strings.Repeat("{% elif 0 %}", 50000) + "{% endif %}", strings.Repeat("a", 2<<20),
	} {
		begin := time.Now()
		template, err := chat.Parse(source)
		if err == nil {
			_, err = template.Render(nil)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%.80s: %v", source, took)
		}
		var e *chat.Error
		if !strings.HasPrefix(source, "(") && (!errors.Is(err, chat.ErrLimit) || !errors.As(err, &e) || e.Line != 1) {
			t.Errorf("%.80s: %v", source, err)
		}
	}
}

// A namespace may hold itself.
func TestCircle(t *testing.T) {
	template, err := chat.Parse("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}{{ ns == ns }}{{ ns.a == [1] }}{{ [ns]|length }}")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := template.Render(nil); err != nil || text != "<namespace>TrueFalse1" {
		t.Errorf("%q %v", text, err)
	}
}

// Values of Go become those of templates.
func TestGoValues(t *testing.T) {
	template, err := chat.Parse("{{ a }}{{ b }}{{ c }}{{ d }}{{ e }}{{ f|tojson }}{{ g.role }}{{ g.x }}{{ h[0].content }}{{ i|tojson }}")
	if err != nil {
		t.Fatal(err)
	}
	m := chat.Message{Role: "user", Content: "hi", More: map[string]any{"x": 1}}
	text, err := template.Render(map[string]any{
		"a": nil, "b": true, "c": 3, "d": float32(0.5), "e": []string{"x"}, "f": map[string]any{"z": 1, "y": []any{uint8(2)}},
		"g": m, "h": []chat.Message{m}, "i": chat.JSON(`{"z": [1, 2.5], "a": null}`),
	})
	if want := `NoneTrue30.5['x']{"y": [2], "z": 1}user1hi{"z": [1, 2.5], "a": null}`; err != nil || text != want {
		t.Errorf("%q %v, want %q", text, err, want)
	}
	for _, bad := range []any{struct{}{}, make(chan int), chat.JSON(`{`), chat.JSON(`1 2`), []any{func() {}}} {
		if _, err := template.Render(map[string]any{"a": bad}); !errors.Is(err, chat.ErrValue) {
			t.Errorf("%T: %v", bad, err)
		}
	}
}

// Quote rewrites the texts of messages and of mappings and lists, and no other.
func TestQuote(t *testing.T) {
	template, err := chat.Parse("{{ a }}{{ messages[0].content }}{{ messages[0].x }}{{ messages[0].role }}{{ b|tojson }}")
	if err != nil {
		t.Fatal(err)
	}
	text, err := template.RenderWith(map[string]any{
		"a": "<a>", "b": chat.JSON(`{"<k>": ["<b>"]}`), "messages": []chat.Message{{Role: "<r>", Content: "<c>", More: map[string]any{"x": "<x>"}}},
	}, chat.Options{Quote: func(s string) string { return strings.ReplaceAll(s, "<", "(") }})
	if want := `<a>(c>(x>(r>{"(k>": ["(b>"]}`; err != nil || text != want {
		t.Errorf("%q %v, want %q", text, err, want)
	}
}

func TestErrorsHaveLines(t *testing.T) {
	for source, want := range map[string]int{"a\nb\n{{ missing.x }}": 3, "\n{% for i in [1] %}\n\n{{ 1 + '' }}{% endfor %}": 4, "\n{{ 'a' ?": 2, "{% if 1 %}\n\n{% endfor %}": 3, "\n\n{{ raise_exception('no') }}": 3} {
		template, err := chat.Parse(source)
		if err == nil {
			_, err = template.Render(nil)
		}
		var e *chat.Error
		if !errors.As(err, &e) || e.Line != want {
			t.Errorf("%q: %v, want line %d", source, err, want)
		}
	}
}

// FuzzRender renders anything; each error is of a kind of the package.
func FuzzRender(f *testing.F) {
	r := func(s string) { f.Add(s) }
	r("{% for m in messages %}{{ m.role|upper }}{{ loop.index }}{% endfor %}")
	r("{%- set ns = namespace(a=1) -%}{% macro f(x) %}{{ x[::-1] }}{% endmacro %}{{ f('ab') ~ ns.a }}")
	r("{{ {'a': [1, 2.5, none]}|tojson(indent=2) }}{{ 'a,b'.split(',') | map('upper') | join }}")
	r("{{ 1 if x is defined else -2 ** 3 // 4 }}{# c #}{% filter trim %} a {% endfilter %}")
	f.Fuzz(func(t *testing.T, source string) {
		template, err := chat.Parse(source)
		if err == nil {
			_, err = template.RenderWith(map[string]any{"messages": []chat.Message{{Role: "user", Content: "Hi"}}, "x": 3}, now)
		}
		var e *chat.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%v", err)
		}
	})
}
