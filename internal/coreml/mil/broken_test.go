package mil_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
)

// model is a program that has every kind of part: weights in the file, constants in
// the program, texts, several parameters.
func model(t *testing.T) *mil.Package {
	t.Helper()
	b := mil.NewBuilder("main", mil.CoreML8)
	b.Reserve("y")
	x := b.Input("x", mil.TypeOf(mil.Float32, 2, 4))
	weights := make([]float64, 12)
	for i := range weights {
		weights[i] = float64(i) / 8
	}
	w := b.Const(mil.Floats(mil.Float32, weights, 4, 3))
	l := b.Op("matmul", mil.Args{"x": x, "y": w, "transpose_x": false, "transpose_y": false})
	g := b.Op("gelu", mil.Args{"x": l, "mode": "EXACT"})
	r := b.Op("reshape", mil.Args{"x": g, "shape": []int{3, 2}})
	s := b.Op("reduce_sum", mil.Args{"x": r, "axes": []int{0}, "keep_dims": false})
	b.Output("y", s)
	f, err := b.Function()
	if err != nil {
		t.Fatal(err)
	}
	return &mil.Package{
		Program:  mil.Program{Opset: mil.CoreML8, Functions: []*mil.Function{f}},
		Metadata: map[string]string{"main/y": "output f32[2] y"},
	}
}

func opOf(p *mil.Package, kind string) *mil.Op {
	ops := p.Program.Functions[0].Ops
	return ops[slices.IndexFunc(ops, func(o *mil.Op) bool { return o.Kind == kind })]
}

// constantOf returns the constant that is a parameter of an operation.
func constantOf(p *mil.Package, kind, parameter string) *mil.Op {
	for _, a := range opOf(p, kind).Inputs {
		if a.Parameter == parameter {
			ops := p.Program.Functions[0].Ops
			return ops[slices.IndexFunc(ops, func(o *mil.Op) bool { return o.Name == a.Values[0] })]
		}
	}
	return nil
}

// TestBrokenProgramsAreRefused breaks a program in the nine ways that coremltools'
// reader refuses, but for the place of weights, which is one of the file.
func TestBrokenProgramsAreRefused(t *testing.T) {
	if err := mil.Validate(&model(t).Program); err != nil {
		t.Fatalf("the whole program is refused: %v", err)
	}
	for name, c := range map[string]struct {
		damage func(p *mil.Package)
		kind   error
	}{
		"wrong sizes declared":  {func(p *mil.Package) { opOf(p, "matmul").Type.Dims[1] = 7 }, ir.ErrShape},
		"wrong type declared":   {func(p *mil.Package) { opOf(p, "matmul").Type.DType = mil.Float16 }, ir.ErrShape},
		"unknown operation":     {func(p *mil.Package) { opOf(p, "gelu").Kind = "gelluu" }, ir.ErrName},
		"undefined name":        {func(p *mil.Package) { opOf(p, "gelu").Inputs[0].Values[0] = "nope" }, ir.ErrName},
		"unknown parameter":     {func(p *mil.Package) { opOf(p, "gelu").Inputs[0].Parameter = "foo" }, ir.ErrName},
		"missing parameter":     {func(p *mil.Package) { opOf(p, "matmul").Inputs = opOf(p, "matmul").Inputs[1:] }, ir.ErrName},
		"impossible reshape":    {func(p *mil.Package) { constantOf(p, "reshape", "shape").Value = mil.Ints([]int{3, 5}, 2) }, ir.ErrShape},
		"unknown word":          {func(p *mil.Package) { constantOf(p, "gelu", "mode").Value.Text = "BOGUS" }, ir.ErrAttr},
		"too few elements":      {func(p *mil.Package) { constantOf(p, "matmul", "y").Value.Data = nil }, ir.ErrShape},
		"defined twice":         {func(p *mil.Package) { opOf(p, "gelu").Name = opOf(p, "matmul").Name }, ir.ErrName},
		"output that is none":   {func(p *mil.Package) { p.Program.Functions[0].Outputs[0] = "z" }, ir.ErrName},
		"state before CoreML8":  {func(p *mil.Package) { p.Program.Opset = mil.CoreML7; addState(p, mil.Float16) }, ir.ErrUnsupported},
		"state of fp32":         {func(p *mil.Package) { addState(p, mil.Float32) }, ir.ErrUnsupported},
		"opset of tomorrow":     {func(p *mil.Package) { p.Program.Opset = 10 }, ir.ErrUnsupported},
		"empty tensor":          {func(p *mil.Package) { p.Program.Functions[0].Inputs[0].Type.Dims[0] = 0 }, ir.ErrShape},
		"input of six axes":     {func(p *mil.Package) { p.Program.Functions[0].Inputs[0].Type.Dims = []int{1, 1, 1, 1, 2, 4} }, ir.ErrShape},
		"input of bools":        {func(p *mil.Package) { p.Program.Functions[0].Inputs[0].Type.DType = mil.Bool }, ir.ErrDType},
		"two functions before":  {func(p *mil.Package) { p.Program.Opset = mil.CoreML7; again(p) }, ir.ErrUnsupported},
		"function of no output": {func(p *mil.Package) { p.Program.Functions[0].Outputs = nil }, ir.ErrGraph},
	} {
		p := model(t)
		c.damage(p)
		err := mil.Validate(&p.Program)
		var named *mil.Error
		if !errors.Is(err, c.kind) || !errors.As(err, &named) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if err := p.Write(filepath.Join(t.TempDir(), "broken.mlpackage")); err == nil {
			t.Errorf("%s: it was written", name)
		}
	}
}

func addState(p *mil.Package, d mil.DType) {
	f := p.Program.Functions[0]
	f.Inputs = append(f.Inputs, mil.Input{Name: "s", Type: mil.TypeOf(d, 2), State: true})
}

func again(p *mil.Package) {
	f := *p.Program.Functions[0]
	f.Name = "again"
	p.Program.Functions = append(p.Program.Functions, &f)
}

// TestPackagesAreDeterministic: equal programs are written as equal files, and reading them returns
// the program.
func TestPackagesAreDeterministic(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a.mlpackage"), filepath.Join(t.TempDir(), "b.mlpackage")
	if err := model(t).Write(a); err != nil {
		t.Fatal(err)
	}
	p, err := mil.Read(a)
	if err != nil {
		t.Fatal(err)
	}
	if p.Metadata["main/y"] != "output f32[2] y" {
		t.Errorf("the metadata are %v", p.Metadata)
	}
	if err := model(t).Write(b); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		x, y := read(t, a, name), read(t, b, name)
		if !bytes.Equal(x, y) || len(x) == 0 {
			t.Errorf("%s: %d and %d bytes differ", name, len(x), len(y))
		}
	}
	if err := model(t).Write(a); !errors.Is(err, os.ErrExist) {
		t.Errorf("a package was written over another: %v", err)
	}
}

var files = []string{"Manifest.json", "Data/com.apple.CoreML/model.mlmodel", "Data/com.apple.CoreML/weights/weight.bin"}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestDamagedPackagesAreRefused truncates every file and changes every byte of the model and of the
// weights' header: the result is a consistent package or an error, never a panic.
func TestDamagedPackagesAreRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m.mlpackage")
	if err := model(t).Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		whole := read(t, dir, name)
		try := func(data []byte) error {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := mil.Read(dir)
			return err
		}
		for _, n := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
			if n == len(whole)-1 && name == files[0] || n == len(whole)-1 && name == files[2] {
				continue // a line end, padding
			}
			if err := try(whole[:n]); err == nil {
				t.Errorf("%s with %d of %d bytes is read", name, n, len(whole))
			}
		}
		for i := range min(len(whole), 1500) {
			damaged := slices.Clone(whole)
			damaged[i] ^= 0x55
			_ = try(damaged) // must not panic
		}
		if err := try(whole); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWeightOffsetsMatchTheProgram: a record that is none, of another type, or
// outside the file is refused.
func TestWeightOffsetsMatchTheProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m.mlpackage")
	if err := model(t).Write(dir); err != nil {
		t.Fatal(err)
	}
	whole := read(t, dir, files[2])
	for what, at := range map[string]int{"sentinel": 64, "element type": 68, "size": 72, "place": 80} {
		damaged := slices.Clone(whole)
		damaged[at]++
		if err := os.WriteFile(filepath.Join(dir, files[2]), damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := mil.Read(dir); !errors.Is(err, mil.ErrPackage) {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
}

// TestUnknownOpsetsAreRefused: a file may name an opset that is not known, or that is not
// of its version of the format.
func TestUnknownOpsetsAreRefused(t *testing.T) {
	for opset, kind := range map[string]error{"CoreML4": ir.ErrUnsupported, "CoreML:": ir.ErrUnsupported, "CoreML9": mil.ErrPackage} {
		dir := filepath.Join(t.TempDir(), "m.mlpackage")
		if err := model(t).Write(dir); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, files[1])
		text := bytes.ReplaceAll(read(t, dir, files[1]), []byte("CoreML8"), []byte(opset))
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
		var typed *mil.Error
		if _, err := mil.Read(dir); !errors.Is(err, kind) || !errors.As(err, &typed) {
			t.Errorf("%s: the error is %v", opset, err)
		}
	}
}

// TestUnwritableFolderIsAnError: a folder that cannot be made is an error of the file system.
func TestUnwritableFolderIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	var path *os.PathError
	if err := model(t).Write(filepath.Join(file, "m.mlpackage")); !errors.As(err, &path) {
		t.Errorf("the error is %v", err)
	}
}
