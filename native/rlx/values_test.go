package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/safetensors"
)

// inputsGraph has inputs of several types.
const inputsGraph = `graph "inputs" {
  %0 = input "x" : f32[2,3]
  %1 = input "n" : i64[]
  %2 = input "u" : u8[2]
  %3 = input "b" : bool[]
  output "x" = %0
  output "n" = %1
  output "u" = %2
  output "b" = %3
}
`

// TestInputsOfTheCommandLine has lists that an input cannot hold, which once became other numbers.
func TestInputsOfTheCommandLine(t *testing.T) {
	for in, want := range map[string]string{
		"x=[[1,2],[3,4,5,6]]":     "has a list of 2 elements in 1 lists",
		"x=[[[1]],[2],[3,4,5,6]]": "has a list of 3 elements in 0 lists",
		"x=[1,2,3]":               "has 3 numbers",
		"x=[[1,2,3],[4,5,null]]":  "numbers alone",
		"n=1.5":                   "has 1.5: it must have numbers of i64",
		"u=[1,256]":               "has 256: it must have numbers of u8",
		"u=[1,-1]":                "has -1: it must have numbers of u8",
		"x=[1,2,3,4,5,4e38]":      "has 4e38: it must have numbers of f32",
		"b=2":                     "has 2: it must have numbers of bool",
	} {
		if code, _, err := call(t, inputsGraph, "run", "-device", "cpu", "-in", in, "-"); code != exitError || !strings.Contains(err, want) {
			t.Errorf("%s: exit status %d, %s", in, code, err)
		}
	}
	out := filepath.Join(t.TempDir(), "out.safetensors")
	if code, _, err := call(t, inputsGraph, "run", "-device", "cpu", "-out", out, "-in", "n=9007199254740993", "-in", "b=true", "-"); code != 0 {
		t.Fatal(err)
	}
	values, _, err := safetensors.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := values["n"].Int64s(); err != nil || n[0] != 1<<53+1 {
		t.Error(n, err)
	}
}

// fullDisk refuses all bytes.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"run", "-device", "cpu", "-"}} {
		var stderr strings.Builder
		if code := run(t.Context(), args, stdio{strings.NewReader(inputsGraph), fullDisk{}, &stderr}); code != exitError || !strings.Contains(stderr.String(), "no space") {
			t.Errorf("%v: exit status %d, %s", args, code, stderr.String())
		}
	}
}

// TestFilesThatCannotBeWritten are found before the work, and keep what was there.
func TestFilesThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing", "w.npz")
	data := filepath.Join(folder, "data.safetensors")
	if err := safetensors.WriteFile(data, rlx.Inputs{"x": rlx.Float32s([]float32{1, 2}, 2, 1)}, nil); err != nil {
		t.Fatal(err)
	}
	code, _, err := call(t, inputsGraph, "train", "-data", data, "-save", missing, "-")
	if code != exitError || strings.Contains(err, "device") || !strings.Contains(err, missing) {
		t.Errorf("exit status %d, %s", code, err)
	}
	name := filepath.Join(folder, "a.npz")
	if err := os.WriteFile(name, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(name, func(io.Writer) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "old" {
		t.Errorf("%q, %v", text, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Error(left, err)
	}
}

// TestFittedTensors converts the element types that NumPy's arrays often have to those of inputs.
func TestFittedTensors(t *testing.T) {
	half, err := rlx.Of(ir.F16, []uint16{0x3e00}) // 1.5
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := rlx.Of(ir.U8, []uint8{200})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		x    rlx.Tensor
		to   ir.DType
		want string
	}{
		"f64":             {rlx.Float64s([]float64{1.5}), ir.F32, "f32[1] [1.5]"},
		"f16":             {half, ir.F32, "f32[1] [1.5]"},
		"u8":              {bytes, ir.I32, "i32[1] [200]"},
		"i64":             {rlx.Int64s([]int64{-3}), ir.I32, "i32[1] [-3]"},
		"i64 too large":   {rlx.Int64s([]int64{1 << 40}), ir.I32, "i64[1] [1.099511627776e+12]"},
		"integers":        {bytes, ir.F32, "u8[1] [200]"},
		"floats":          {half, ir.I32, "f16[1] [1.5]"},
		"its own type":    {rlx.Int32s([]int32{4}), ir.I32, "i32[1] [4]"},
		"another integer": {rlx.Int64s([]int64{4}), ir.U8, "i64[1] [4]"},
	} {
		got := fitted(c.x, c.to)
		a, err := got.Array()
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(got, " [", a.Float(0), "]"); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}
