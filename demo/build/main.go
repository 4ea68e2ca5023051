// Command build writes the data files of the demo's pages:
//
//	go run ./demo/build FOLDER SMALL
//
// digits.bin (all labels, then all pictures, one byte a number), shakespeare.txt.gz, and for each
// model a plan compiled ahead of time, digits-NAME.rlxp or gpt-NAME.rlxp: for WebGPU, with variants
// for the CPU except for the large GPT. The home page fetches field.rlxp for WebGPU, or
// field-relaxed.rlxp or field-simd.rlxp for CPUs with or without relaxed SIMD.
//
// The second folder gets digits-mlp.rlxp and gpt-tiny.rlxp with smaller batches and a smaller context, for
// tests of what a page does while a network is trained: a GPU emulated by software compiles their kernels in a
// third of the time, and makes a step in a quarter.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: build FOLDER SMALL")
	}
	if err := write(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	if err := writeSmall(os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, part := range []func(string) error{writeField, writeDigits, writeText} {
		if err := part(folder); err != nil {
			return err
		}
	}
	return nil
}

// writeField writes the plans of the home page, one for each device.
func writeField(folder string) error {
	if err := writePlan(folder, "field", false, models.FieldModule); err != nil {
		return err
	}
	m, err := models.FieldModule()
	if err != nil {
		return err
	}
	plans, err := wasmsimd.Plans(m)
	if err != nil {
		return err
	}
	for i, name := range []string{"relaxed", "simd"} {
		file, err := plan.Encode(plans[i])
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "field-"+name+".rlxp"), file, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeDigits writes the data of the digits page.
func writeDigits(folder string) error {
	train, test, err := data.Digits()
	if err != nil {
		return err
	}
	bytes := append(append(append(append([]byte{}, train.Labels...), test.Labels...), train.Images...), test.Images...)
	if err := os.WriteFile(filepath.Join(folder, "digits.bin"), bytes, 0o644); err != nil {
		return err
	}
	for name, m := range models.All() {
		if err := writePlan(folder, "digits-"+name, true, func() (*ir.Module, error) { return m.Module(models.Batch, data.TestCount) }); err != nil {
			return err
		}
	}
	return nil
}

// writeText writes the text of the language model's page.
func writeText(folder string) error {
	if err := os.WriteFile(filepath.Join(folder, "shakespeare.txt.gz"), data.ShakespeareFile(), 0o644); err != nil {
		return err
	}
	gpts, err := pageGPTs()
	if err != nil {
		return err
	}
	for name, m := range gpts {
		if err := writePlan(folder, "gpt-"+name, name != "large", func() (*ir.Module, error) { return m.Module(name) }); err != nil {
			return err
		}
	}
	return nil
}

// pageGPTs returns the models of the language model's page, by name.
func pageGPTs() (map[string]models.GPT, error) {
	plain, err := data.Shakespeare()
	if err != nil {
		return nil, err
	}
	return models.PageGPTs(len(data.NewText(plain).Characters)), nil
}

// The sizes of small plans. The digits page is given those of its batches, see serveSmall of demo/test/browser/page.mjs;
// the page of the language model finds its own in the plan.
const (
	smallBatch   = 32
	smallTest    = 40
	smallRows    = 4
	smallContext = 16
)

// writeSmall writes the plans of small sizes.
func writeSmall(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	mlp := func() (*ir.Module, error) { return models.MLP().Module(smallBatch, smallTest) }
	if err := writePlan(folder, "digits-mlp", true, mlp); err != nil {
		return err
	}
	gpts, err := pageGPTs()
	if err != nil {
		return err
	}
	tiny := gpts["tiny"]
	tiny.Batch, tiny.Context = smallRows, smallContext
	return writePlan(folder, "gpt-tiny", true, func() (*ir.Module, error) { return tiny.Module("tiny") })
}

// writePlan writes the plan file of a module, with variants for the CPU if the model runs there.
func writePlan(folder, name string, onCPU bool, module func() (*ir.Module, error)) error {
	m, err := module()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	file, err := compile(m, onCPU)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(folder, name+".rlxp"), file, 0o644)
}

// compile returns a module's plan file.
func compile(m *ir.Module, onCPU bool) ([]byte, error) {
	p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
	if err != nil {
		return nil, err
	}
	if onCPU {
		if p.Variants, err = wasmsimd.Plans(m); err != nil {
			return nil, err
		}
	}
	return plan.Encode(p)
}
