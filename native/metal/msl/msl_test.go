package msl_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir/kernel/kerneltest"
	"github.com/rlx-go/rlx/native/metal/msl"
	"github.com/rlx-go/rlx/native/metal/msl/check"
)

var update = flag.Bool("update", false, "write the golden files")

// golden are the kernels that Metal has types for: it has no f64.
func golden() []*kerneltest.Case {
	wide := slices.DeleteFunc(kerneltest.Wide(), func(c *kerneltest.Case) bool { return c.Kernel.Name == "wide_floats" })
	return slices.Concat(kerneltest.Cases(), wide, kerneltest.Half(), kerneltest.Fragments(), []*kerneltest.Case{kerneltest.Shuffled(0)})
}

// The address spaces of Metal are those of OpenCL, so clang can tell a pointer that
// leaves its own.
func TestGoldenKernelsKeepToTheirAddressSpaces(t *testing.T) {
	for _, c := range golden() {
		t.Run(c.Kernel.Name, func(t *testing.T) {
			t.Parallel()
			got, err := msl.Print(c.Kernel)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", c.Kernel.Name+".metal")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs from what is printed; look at the difference, then run go test -update", file)
			}
			if err := check.Compile(got); err != nil {
				t.Error(err)
			}
		})
	}
}
