package cudacpp_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGoldenKernelsCompile(t *testing.T) {
	for _, c := range slices.Concat(kerneltest.Cases(), kerneltest.Wide(), kerneltest.AtomicFloats(), kerneltest.Relays(), kerneltest.Products(), kerneltest.HalfProducts()) {
		t.Run(c.Kernel.Name, func(t *testing.T) {
			t.Parallel()
			got, err := cudacpp.Print(c.Kernel)
			if err != nil {
				t.Fatal(err)
			}
			kerneltest.Golden(t, c.Kernel.Name+".cu", got, *update)
			if err := clang.Check(got); err != nil {
				t.Error(err)
			}
		})
	}
}
