// Command build writes the data files of the demo's pages:
//
//	go run ./demo/build FOLDER
//
// digits.bin (all labels, then all pictures, one byte a number), shakespeare.txt.gz, and for each
// model a plan compiled ahead of time, digits-NAME.rlxp or gpt-NAME.rlxp: for WebGPU, with variants
// for the CPU except for the large GPT. The home page fetches field.rlxp for WebGPU or
// field-cpu.rlxp for the CPU.
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
	if len(os.Args) != 2 {
		log.Fatal("usage: build FOLDER")
	}
	if err := write(os.Args[1]); err != nil {
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
	first := plans[0]
	first.Variants = plans[1:]
	file, err := plan.Encode(first)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "field-cpu.rlxp"), file, 0o644)
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
		if err := writePlan(folder, "digits-"+name, true, func() (*ir.Module, error) { return m.Module(data.TestCount) }); err != nil {
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
	plain, err := data.Shakespeare()
	if err != nil {
		return err
	}
	for name, m := range models.PageGPTs(len(data.NewText(plain).Characters)) {
		if err := writePlan(folder, "gpt-"+name, name != "large", func() (*ir.Module, error) { return m.Module(name) }); err != nil {
			return err
		}
	}
	return nil
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
