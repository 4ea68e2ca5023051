// Command build writes what the page of the demo fetches besides its own code:
//
//	go run ./demo/build FOLDER
//
// digits.bin (all labels, then all pictures, one byte a number), and for each
// model the plan made of it ahead of time, digits-NAME.rlxp: for WebGPU, with
// variants for the CPU.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/wasm/simd"
	"github.com/rlx-go/rlx/webgpu/wgsl"
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
	train, test, err := data.Digits()
	if err != nil {
		return err
	}
	bytes := append(append(append(append([]byte{}, train.Labels...), test.Labels...), train.Images...), test.Images...)
	if err := os.WriteFile(filepath.Join(folder, "digits.bin"), bytes, 0o644); err != nil {
		return err
	}
	for name, m := range models.All() {
		if err := writeModel(filepath.Join(folder, "digits-"+name), m); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func writeModel(path string, m models.Model) error {
	module, err := m.Module(data.TestCount)
	if err != nil {
		return err
	}
	file, err := compile(module)
	if err != nil {
		return err
	}
	return os.WriteFile(path+".rlxp", file, 0o644)
}

// compile returns a module's plan file.
func compile(m *ir.Module) ([]byte, error) {
	p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
	if err != nil {
		return nil, err
	}
	cpu, err := simd.Plans(m)
	if err != nil {
		return nil, err
	}
	p.Variants = cpu
	return plan.Encode(p)
}
