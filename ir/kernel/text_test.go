package kernel_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel"
	"github.com/rlx-go/rlx/ir/kernel/kerneltest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestTextFormOfGoodKernels(t *testing.T) {
	for _, c := range append(kerneltest.Cases(), kerneltest.Wide()...) {
		file := filepath.Join("testdata", c.Kernel.Name+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(c.Kernel.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Kernel.String(); got != string(want) {
			t.Errorf("%s differs from the text form:\n%s", file, got)
		}
	}
}

func TestBuiltinOfIsTheInverseOfTheConstructors(t *testing.T) {
	sizes := [2]int{4, 64}
	for _, c := range []struct {
		name  string
		kind  kernel.Builtin
		index int
	}{
		{kernel.LocalID(2, 8).Name, kernel.BuiltinLocalID, 2},
		{kernel.LocalIndex(8).Name, kernel.BuiltinLocalIndex, 0},
		{kernel.GroupID(1, 8).Name, kernel.BuiltinGroupID, 1},
		{kernel.Lane(sizes).Name, kernel.BuiltinLane, 0},
		{kernel.SubgroupSize(sizes).Name, kernel.BuiltinSubgroupSize, 0},
		{kernel.RunScalar(12, dtype.F32).Name, kernel.BuiltinScalar, 12},
		{kernel.Counter(3).Name, kernel.BuiltinCounter, 3},
		{"local_w", kernel.NoBuiltin, 0},
		{"local_", kernel.NoBuiltin, 0},
		{"scalar01", kernel.NoBuiltin, 0},
		{"counter", kernel.NoBuiltin, 0},
		{"lanes", kernel.NoBuiltin, 0},
	} {
		if kind, index := kernel.BuiltinOf(c.name); kind != c.kind || index != c.index {
			t.Errorf("%s is %d %d, not %d %d", c.name, kind, index, c.kind, c.index)
		}
	}
}

func TestPlacesAlongAnAxisOfOneAreZero(t *testing.T) {
	for _, e := range []interface{ IntConst() (int64, bool) }{kernel.LocalID(1, 1), kernel.GroupID(0, 1), kernel.LocalIndex(1)} {
		if x, ok := e.IntConst(); !ok || x != 0 {
			t.Errorf("%v is not 0", e)
		}
	}
}
