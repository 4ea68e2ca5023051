package cudacpp_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir/kernel/kerneltest"
	"github.com/rlx-go/rlx/native/cuda/check"
	"github.com/rlx-go/rlx/native/cuda/cudacpp"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGoldenKernelsCompile(t *testing.T) {
	for _, c := range slices.Concat(kerneltest.Cases(), kerneltest.Wide(), kerneltest.Relays(), kerneltest.Products(), kerneltest.HalfProducts()) {
		t.Run(c.Kernel.Name, func(t *testing.T) {
			t.Parallel()
			got, err := cudacpp.Print(c.Kernel)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", c.Kernel.Name+".cu")
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
			if _, err := check.Compile(got); err != nil {
				t.Error(err)
			}
		})
	}
}
