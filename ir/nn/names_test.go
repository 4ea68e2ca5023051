package nn_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

var update = flag.Bool("update", false, "write the files of testdata")

// models are graphs whose names are checked in addition to those of the layers of PyTorch's values.
var models = map[string]func(b *ir.Builder, x ir.Value) ir.Value{
	"batch_norm frozen": func(b *ir.Builder, x ir.Value) (y ir.Value) {
		nn.Train(b)
		nn.Frozen(b, func() { y = nn.BatchNorm(b, nn.Linear(b, x, 4)) })
		return y
	},
	"batch_norm shared": func(b *ir.Builder, x ir.Value) (y ir.Value) {
		nn.Train(b)
		x = nn.BatchNorm(b, x)
		nn.Shared(b, func() { y = nn.BatchNorm(b, x) })
		return y
	},
	"lora attention": func(b *ir.Builder, x ir.Value) (y ir.Value) {
		nn.LoRA(b, nn.LoRAOptions{}, func() { y = nn.Attention(b, x, 2, nn.AttentionOptions{Causal: true}) })
		return y
	},
	"lora of queries": func(b *ir.Builder, x ir.Value) (y ir.Value) {
		nn.LoRA(b, nn.LoRAOptions{Targets: []string{"q_proj"}}, func() { y = nn.Attention(b, x, 2, nn.AttentionOptions{Separate: true}) })
		return y
	},
	"llama": func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Stack(b, "layers", 2, x, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.TransformerBlock(b, x, 4, nn.TransformerOptions{
				Name: nn.Here, Hidden: 6, Activation: nn.SwiGlu, RMSNorm: true, NoBias: true, Causal: true, KVHeads: 2, Rope: &nn.RopeOptions{},
				Attention: nn.AttentionOptions{Separate: true, NormQK: true},
			})
		})
	},
	"scanned": func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Stack(b, "blocks", 3, x, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.TransformerBlock(b, x, 2, nn.TransformerOptions{Name: nn.Here, Depth: 3})
		}, nn.StackOptions{Scan: true})
	},
	"grouped": func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.GroupedLinear(b, ops.Reshape(b, x, ir.Dims(10, 8)...), b.Input("groups", ir.I32, ir.N(10)), 3, 4)
	},
	"cached": func(b *ir.Builder, x ir.Value) ir.Value {
		nn.Infer(b)
		nn.Cache(b, 8)
		y, _, _ := nn.LSTM(b, nn.Attention(b, x, 2, nn.AttentionOptions{Causal: true}), 3)
		return nn.Mamba(b, y, nn.MambaOptions{State: 2})
	},
	"rules by fans": func(b *ir.Builder, x ir.Value) ir.Value {
		x, _ = nn.MoE(b, x, 4, nn.MoEOptions{Init: nn.HeNormal(), Hidden: 2})
		return nn.Stack(b, "s", 3, x, func(b *ir.Builder, x ir.Value) ir.Value {
			x = nn.Linear(b, x, 8, nn.LinearOptions{Init: nn.GlorotUniform()})
			return nn.Linear(b, x, 8, nn.LinearOptions{Init: nn.Orthogonal(1)})
		}, nn.StackOptions{Scan: true})
	},
	"named": func(b *ir.Builder, x ir.Value) ir.Value {
		x = nn.In(b, "features", func() ir.Value {
			x := nn.Conv1d(b, x, 4, 1, nn.ConvOptions{Name: "0"})
			return nn.LayerNorm(b, x, nn.NormOptions{Name: "1"})
		})
		nn.Train(b)
		return nn.MLP(b, nn.Dropout(b, nn.PositionalEmbedding(b, x, 16), 0.1), 8)
	},
}

// TestNamesOfParametersAreStable lists the parameters and states that each layer declares. A name that changes here
// makes the checkpoints of users unreadable.
func TestNamesOfParametersAreStable(t *testing.T) {
	var out strings.Builder
	list := func(name string, g *ir.Graph) {
		out.WriteString(name + "\n")
		for _, p := range g.Ports() {
			if p.Kind == ir.InputPort {
				continue
			}
			o := p.Options()
			out.WriteString("  " + p.Kind.String() + " " + p.Name + " " + p.Value.Type().String() + " " + o.Initial.String())
			if o.Frozen {
				out.WriteString(" frozen")
			}
			out.WriteString("\n")
		}
	}
	for _, c := range torchCases(t) {
		list(c.Name, c.graph(t))
	}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		list(name, build(t, models[name]))
	}
	const file = "testdata/names.txt"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("%s is not what the layers declare (write it with -update and read the difference):\n%s", file, out.String())
	}
}

// build returns the graph of a function of x f32[2,5,8] with the result as output "y".
func build(t *testing.T, f func(b *ir.Builder, x ir.Value) ir.Value) *ir.Graph {
	t.Helper()
	g, err := graphOf(f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func graphOf(f func(b *ir.Builder, x ir.Value) ir.Value) (*ir.Graph, error) {
	return ir.Build("model", func(b *ir.Builder) { b.Output("y", f(b, b.Input("x", ir.F32, ir.Dims(2, 5, 8)...))) })
}

// TestGraphsWithLayersRoundTrip asserts that the text form has the rules of the parameters.
func TestGraphsWithLayersRoundTrip(t *testing.T) {
	for name, f := range models {
		g := build(t, f)
		text := g.String()
		back, err := ir.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if again := back.String(); again != text {
			t.Errorf("%s reads back as\n%s, written\n%s", name, again, text)
		}
		for i, p := range g.Ports() {
			if got, want := back.Ports()[i].Options(), p.Options(); !got.Initial.Equal(want.Initial) || got.Frozen != want.Frozen {
				t.Errorf("%s: %s reads back with %v, written %v", name, p.Name, got, want)
			}
		}
	}
}

// TestDocumentationShowsTheExamples holds the model in the package's documentation to Example, and
// the one in the README to the GPT of Example_gpt.
func TestDocumentationShowsTheExamples(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	between := func(text, from, to string) string {
		_, text, _ = strings.Cut(text, from)
		text, _, _ = strings.Cut(text, to)
		return text
	}
	shown := strings.ReplaceAll(between(read("doc.go"), "no object holds them:\n//\n", "//\n//"), "//", "")
	if body := between(read("example_test.go"), "func Example() {\n", "\tcheck(err)"); shown == "" || shown != body {
		t.Errorf("the documentation shows\n%s\nthe example is\n%s", shown, body)
	}
	_, layers, _ := strings.Cut(read("../../README.md"), "### Layers\n")
	if shown, body := between(layers, "```go\n", "```"), "func gpt("+between(read("example_gpt_test.go"), "func gpt(", "\n}\n")+"\n}\n"; shown == "" || shown != body {
		t.Errorf("the README shows\n%s\nthe example is\n%s", shown, body)
	}
}

// TestExamplesAreShort counts the lines of the example functions, without comments and empty lines:
// the code from layers to a trained program.
func TestExamplesAreShort(t *testing.T) {
	for model, most := range map[string]int{"gpt": 60, "cnn": 20, "unet": 60} {
		file, functions := "example_"+model+"_test.go", []string{model, "Example_" + model}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines, found := strings.Split(string(text), "\n"), 0
		count := 0
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !slices.Contains(functions, f.Name.Name) {
				continue
			}
			found++
			for _, line := range lines[set.Position(f.Pos()).Line-1 : set.Position(f.End()).Line] {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
					count++
				}
			}
		}
		if found != len(functions) || count > most {
			t.Errorf("%s has %d of the functions %v, with %d lines; they have %d at most", file, found, functions, count, most)
		}
	}
}
