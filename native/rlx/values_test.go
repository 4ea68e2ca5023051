package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
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
