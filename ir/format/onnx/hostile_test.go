package onnx_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
	"github.com/rlx-go/rlx/native/backendtest"
)

// Small models that ask for much: they are refused, or imported without computing it.
func TestModelsThatAskForMuch(t *testing.T) {
	input := []field{info("x", onnx.Float, "n", "m"), info("i", onnx.Float, 1, 1, 8, 8)}
	output := []field{info("y", onnx.Float)}
	number := func(name string, x ...int64) field { return tensorOf(name, onnx.Int64, []int{len(x)}, intBytes(x...)) }
	// Sizes that are squared again and again, sums and products.
	squares := []field{node("Shape", names("x"), names("s0"))}
	for i := range 60 {
		from, to := "s"+strconv.Itoa(i), "s"+strconv.Itoa(i+1)
		squares = append(squares, node("Add", names(from, "one"), names("t"+strconv.Itoa(i))), node("Mul", names("t"+strconv.Itoa(i), from), names(to)))
	}
	squares = append(squares, node("ConstantOfShape", names("s60"), names("y")))
	loop := func(inner field) field {
		body := graphOf([]field{node("Identity", names("c"), names("kept")), inner}, nil,
			[]field{info("k", onnx.Int64), info("c", onnx.Bool), info("a", onnx.Float)}, []field{info("kept", onnx.Bool), info("b", onnx.Float)})
		return node("Loop", names("turns", "", "a"), names("b"), attribute("body", body))
	}
	nested := node("Slice", names("a", "k", "k"), names("b"))
	for range 12 {
		nested = loop(nested)
	}
	nested.value = append([]field{{1, "turns"}, {1, ""}, {1, "i"}, {2, "y"}}, nested.value.([]field)[4:]...)
	weights := []field{number("one", 1), number("turns", 1000), number("big", 1<<40), number("shape", 1<<30, 1<<30)}
	for name, nodes := range map[string][]field{
		"squares": squares, "nested loops": {nested},
		"fill":   {node("ConstantOfShape", names("shape"), names("z")), node("ReduceSum", names("z"), names("y"))},
		"tile":   {node("Tile", names("one", "big"), names("z")), node("ReduceSum", names("z"), names("y"))},
		"pool":   {node("AveragePool", names("i"), names("y"), attribute("kernel_shape", []int{1 << 30, 1 << 30}), attribute("pads", []int{1 << 30, 1 << 30, 1 << 30, 1 << 30}))},
		"affine": {node("AffineGrid", names("i", "shape"), names("y"))},
		"window": {node("HannWindow", names("big"), names("y"))},
		"range":  {node("Range", names("one", "big", "one"), names("y"))},
	} {
		m, err := onnx.Decode(model(17, graphOf(nodes, weights, input, output)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		begin, before := time.Now(), memory()
		_, _ = m.Import(onnx.Options{})
		if took, more := time.Since(begin), memory()-before; took > 10*time.Second || more > 512<<20 {
			t.Errorf("%s: %v and %d MB", name, took, more>>20)
		}
	}
}

// memory returns the bytes allocated so far.
func memory() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.TotalAlloc
}

// Node tests with changed or truncated bytes are imported, or rejected with a typed error.
func TestDamagedModels(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("RLX_ONNX"), "*", "model.onnx"))
	if err == nil && (len(files) == 0 || os.Getenv("RLX_ONNX") == "") {
		err = errors.New("$RLX_ONNX names no folder of cases: make test-onnx does")
	}
	backendtest.Require(t, "onnx", err)
	random := rand.New(rand.NewPCG(1, 2))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		importDamaged(t, random, filepath.Base(filepath.Dir(file)), data, 12)
	}
}

// TestDamagedLanguageModels does so with the ops of exported language models.
func TestDamagedLanguageModels(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	file, cases := microsoftCases(t)
	for _, name := range cases {
		importDamaged(t, random, name, storedModel(t, file, name), 60)
	}
}

// importDamaged imports a model some times with changed or truncated bytes. An error is of a known kind, and comes soon.
func importDamaged(t *testing.T, random *rand.Rand, name string, data []byte, turns int) {
	t.Helper()
	kinds := []error{onnx.ErrDamaged, ir.ErrUnsupported, ir.ErrShape, ir.ErrDType, ir.ErrAttr, ir.ErrName, ir.ErrIndex, ir.ErrGraph, ir.ErrSymbol, ir.ErrNoRule}
	for turn := range turns {
		damaged := slices.Clone(data)
		for range 1 + turn%12/2 {
			damaged[random.IntN(len(damaged))] = byte(random.Uint32())
		}
		if turn == 0 {
			damaged = damaged[:random.IntN(len(damaged))]
		}
		begin := time.Now()
		m, err := onnx.Decode(damaged)
		if err == nil {
			_, err = m.Import(onnx.Options{Narrow: turn%2 == 0})
		}
		if err != nil && !slices.ContainsFunc(kinds, func(k error) bool { return errors.Is(err, k) }) {
			t.Errorf("%s: an error of no kind: %v", name, err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}
