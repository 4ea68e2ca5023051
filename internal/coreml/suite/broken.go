package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlx-go/rlx/internal/coreml/mil"
)

// brokenFolder is the folder of a valid package that check.py breaks in several ways, each of which
// coremltools refuses.
const brokenFolder, wholeName = "broken", "whole.mlpackage"

// writeWhole writes the package to break. It has all parts that can be broken: a weight in the file
// of weights, sizes, a string, operations of one operand and of two.
func writeWhole(dir string) error {
	b := mil.NewBuilder("main", mil.CoreML8)
	b.Reserve("y")
	weights := make([]float64, 12)
	for i := range weights {
		weights[i] = float64(i) / 8
	}
	x := b.Input("x", mil.TypeOf(mil.Float32, 2, 4))
	product := b.Op("matmul", mil.Args{"x": x, "y": mil.Floats(mil.Float32, weights, 4, 3), "transpose_x": false, "transpose_y": false})
	reshaped := b.Op("reshape", mil.Args{"x": b.Op("gelu", mil.Args{"x": product, "mode": "EXACT"}), "shape": []int{3, 2}})
	b.Output("y", b.Op("reduce_sum", mil.Args{"x": reshaped, "axes": []int{0}, "keep_dims": false}))
	f, err := b.Function()
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, brokenFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	p := &mil.Package{Program: mil.Program{Opset: mil.CoreML8, Functions: []*mil.Function{f}}}
	path := filepath.Join(folder, wholeName)
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return p.Write(path)
}

// brokenKinds is the number of ways in which check.py breaks a package.
const brokenKinds = 9

// refuse reads the packages that check.py broke: each must be refused, and the valid one must not
// be.
func refuse(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, brokenFolder, "*.mlpackage"))
	if err != nil {
		return err
	}
	if len(paths) != brokenKinds+1 {
		return fmt.Errorf("%d packages in %s, not the whole one and %d that are broken", len(paths), filepath.Join(dir, brokenFolder), brokenKinds)
	}
	var wrong []string
	for _, path := range paths {
		_, err := mil.Read(path)
		if name := filepath.Base(path); (err == nil) != (name == wholeName) {
			wrong = append(wrong, fmt.Sprintf("%s: %v", name, err))
		}
	}
	if wrong != nil {
		return fmt.Errorf("what is broken must be refused, and nothing else: %s", strings.Join(wrong, "; "))
	}
	fmt.Printf("%d broken packages are refused here as by coremltools\n", brokenKinds)
	return nil
}
