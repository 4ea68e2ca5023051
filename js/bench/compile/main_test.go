//go:build unix

package main

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
)

// TestDispatchesOfAToken counts the dispatches of a layer and of all else in a token of a language model, with packed weights or
// numbers: each takes 3 to 6 µs, whatever it computes. 12 arrays are what the page's compiler uses of a GPU that has them.
func TestDispatchesOfAToken(t *testing.T) {
	arrays := func(t target, n int) target {
		t.plan.StorageBuffers = n
		return t
	}
	numbers := func(string) nn.Storage { return nn.Storage{OutIn: true, DType: ir.F32} }
	for _, c := range []struct {
		name        string
		target      target
		stored      func(name string) nn.Storage
		layer, rest int
	}{
		{"warps", arrays(targets["warps"], 12), packed, 6, 6},
		{"warps, 8 arrays", targets["warps"], packed, 8, 7},
		{"webgpu", targets["webgpu"], packed, 10, 6},
		{"cuda", targets["cuda"], packed, 10, 6},
		{"warps, numbers", arrays(targets["warps"], 12), numbers, 6, 6},
		{"webgpu, numbers", targets["webgpu"], numbers, 10, 6},
		{"cuda, numbers", targets["cuda"], numbers, 10, 6},
	} {
		few, more := dispatches(t, 2, c.target, c.stored), dispatches(t, 3, c.target, c.stored)
		if layer, rest := more-few, 3*few-2*more; layer != c.layer || rest != c.rest {
			t.Errorf("%s: %d dispatches a layer and %d others, want %d and %d", c.name, layer, rest, c.layer, c.rest)
		}
	}
}

// dispatches returns the number of a token with some layers.
func dispatches(t *testing.T, layers int, to target, stored func(name string) nn.Storage) int {
	t.Helper()
	model := languageModels["smollm2-135M"]
	model.Layers = layers
	g, err := token(model, stored)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("main", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	to.plan.Limits.BindingBytes, to.plan.Limits.BufferBytes = bindingBytes, bufferBytes
	p, err := plan.Compile(m, to.plan, to.printer)
	if err != nil {
		t.Fatal(err)
	}
	return len(p.Entries[0].Steps)
}
