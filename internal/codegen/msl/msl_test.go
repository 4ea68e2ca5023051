package msl_test

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/ir/loop"
)

var update = flag.Bool("update", false, "write the golden files")

// printed is a kernel as one printer prints it.
type printed struct {
	*kerneltest.Case
	name   string
	source string
}

// golden are the kernels that Metal has types for: it has no f64. Those of bf16 are printed
// for systems with the type bfloat and, but for fragments, for those without.
func golden(t *testing.T) []printed {
	t.Helper()
	var out []printed
	add := func(suffix string, p msl.Printer, cases []*kerneltest.Case) {
		for _, c := range cases {
			source, err := p.Print(c.Kernel)
			must(t, err)
			out = append(out, printed{c, c.Kernel.Name + suffix, source})
		}
	}
	add("", msl.Printer{}, portable())
	add("", msl.Printer{BFloat: true}, kerneltest.Fragments())
	add("", msl.Printer{BFloat: true}, kerneltest.BFloat())
	add("_by_bits", msl.Printer{}, kerneltest.BFloat())
	return out
}

// portable are those without bf16.
func portable() []*kerneltest.Case {
	wide := slices.DeleteFunc(kerneltest.Wide(), func(c *kerneltest.Case) bool { return c.Kernel.Name == "wide_floats" })
	return slices.Concat(kerneltest.Cases(), wide, kerneltest.Half(), []*kerneltest.Case{kerneltest.Shuffled(0)})
}

// The address spaces of Metal are those of OpenCL, so clang finds a pointer in the wrong one.
func TestGoldenKernelsRespectAddressSpaces(t *testing.T) {
	for _, c := range golden(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.Golden(t, c.name+".metal", c.source, *update)
			if err := clang.CheckMetal(c.source); err != nil {
				t.Error(err)
			}
		})
	}
}

// Without the type bfloat there are no fragments of it.
func TestFragmentsOfBF16NeedBFloat(t *testing.T) {
	for _, c := range kerneltest.Fragments() {
		_, err := msl.Printer{}.Print(c.Kernel)
		var unsupported *clike.UnsupportedError
		if errors.As(err, &unsupported) != (c.Kernel.Name == "fragments_bfloat") {
			t.Errorf("%s: %v", c.Kernel.Name, err)
		}
	}
}

// Metal adds floats by atomics on some devices only, so no kernel uses it.
func TestAtomicFloatsAreRefused(t *testing.T) {
	for _, c := range kerneltest.AtomicFloats() {
		_, err := msl.Printer{}.Print(c.Kernel)
		var unsupported *clike.UnsupportedError
		if !errors.As(err, &unsupported) {
			t.Errorf("%s: error %v, want an unsupported one", c.Kernel.Name, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A kernel for pieces of its grid uses the address spaces correctly, too, and binds its two buffers
// last.
func TestKernelsForPiecesOfTheirGrids(t *testing.T) {
	p := msl.Printer{Tiled: func(*loop.Kernel) bool { return true }}
	for i, c := range portable() {
		source, err := p.Print(c.Kernel)
		must(t, err)
		first, wanted := strings.Index(source, "constant uint *first_group [[buffer("), strings.Index(source, "device const uint *wanted [[buffer(")
		if first < 0 || wanted < first || strings.Contains(source[wanted+len("device const uint *wanted [["):], "[[buffer(") {
			t.Errorf("%s: the buffers of a piece are not the last:\n%s", c.Kernel.Name, source)
		}
		if i%10 > 0 {
			continue
		}
		if err := clang.CheckMetal(source); err != nil {
			t.Errorf("%s: %v", c.Kernel.Name, err)
		}
	}
}
