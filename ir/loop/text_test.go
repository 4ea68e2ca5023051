package loop_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

var update = flag.Bool("update", false, "write the golden files")

func TestTextFormOfGoodKernels(t *testing.T) {
	for _, c := range slices.Concat(kerneltest.Cases(), kerneltest.Wide(), kerneltest.AtomicFloats(), kerneltest.Relays(), kerneltest.Products()[:2], kerneltest.HalfProducts()[2:3], kerneltest.HalfProducts()[4:], kerneltest.Fragments()[:1]) {
		kerneltest.Golden(t, c.Kernel.Name+".txt", c.Kernel.String(), *update)
	}
}

func TestBuiltinOfIsTheInverseOfTheConstructors(t *testing.T) {
	sizes := [2]int{4, 64}
	for _, c := range []struct {
		name  string
		kind  loop.Builtin
		index int
	}{
		{loop.LocalID(2, 8).Name, loop.BuiltinLocalID, 2},
		{loop.LocalIndex(8).Name, loop.BuiltinLocalIndex, 0},
		{loop.GroupID(1, 8).Name, loop.BuiltinGroupID, 1},
		{loop.Lane(sizes).Name, loop.BuiltinLane, 0},
		{loop.RunScalar(12, dtype.F32).Name, loop.BuiltinScalar, 12},
		{loop.Counter(3).Name, loop.BuiltinCounter, 3},
		{"local_w", loop.NoBuiltin, 0},
		{"local_", loop.NoBuiltin, 0},
		{"scalar01", loop.NoBuiltin, 0},
		{"counter", loop.NoBuiltin, 0},
		{"lanes", loop.NoBuiltin, 0},
	} {
		if kind, index := loop.BuiltinOf(c.name); kind != c.kind || index != c.index {
			t.Errorf("%s is %d %d, not %d %d", c.name, kind, index, c.kind, c.index)
		}
	}
}

func TestIndicesAlongAnAxisOfOneAreZero(t *testing.T) {
	for _, e := range []interface{ IntConst() (int64, bool) }{loop.LocalID(1, 1), loop.GroupID(0, 1), loop.LocalIndex(1)} {
		if x, ok := e.IntConst(); !ok || x != 0 {
			t.Errorf("%v is not 0", e)
		}
	}
}
