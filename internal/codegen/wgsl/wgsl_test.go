package wgsl_test

import (
	"errors"
	"flag"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/ir"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGoldenShaders(t *testing.T) {
	for _, c := range slices.Concat(kerneltest.Cases(), kerneltest.Half(), kerneltest.AtomicFloats(), []*kerneltest.Case{kerneltest.Shuffled(32), kerneltest.Fragments()[0]}) {
		t.Run(c.Kernel.Name, func(t *testing.T) {
			got, err := wgsl.Print(c.Kernel)
			if err != nil {
				t.Fatal(err)
			}
			kerneltest.Golden(t, c.Kernel.Name+".wgsl", got, *update)
		})
	}
}

func TestAsynchronousWorkIsRefused(t *testing.T) {
	for _, c := range slices.Concat(kerneltest.Products(), kerneltest.Relays()) {
		var unsupported *clike.UnsupportedError
		if _, err := wgsl.Print(c.Kernel); !errors.As(err, &unsupported) || !errors.Is(err, ir.ErrUnsupported) {
			t.Errorf("%s: error %v, want an unsupported one", c.Kernel.Name, err)
		}
	}
}
