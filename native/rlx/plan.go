package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

var planCommand = command{
	name: "plan", args: "FILE", short: "compile a model ahead of time, for pages without the compiler",
	long: `Compiles a model to a plan file, which the runtime of the npm package @rlx-go/rlx opens without
the compiler. With several targets the plans of the others are its variants: a page takes the first
that its device can run.`,
	define: func(f *flag.FlagSet) runner {
		s, o := sizesFlag(f), trainFlags(f)
		out := f.String("o", "", "plan `FILE` to write; FILE with the extension .rlxp by default")
		list := f.String("target", "webgpu,wasm", "`NAMES` of targets, the first choice first: webgpu, wasm")
		train := f.Bool("train", false, "compile the training step of a loss, by the flags of \"rlx train\"")
		return func(_ context.Context, std stdio, args []string) error {
			file, err := one(args, "FILE")
			if err != nil {
				return err
			}
			loaded, err := loadModule(file, std.in, s)
			if err != nil {
				return err
			}
			m := loaded.module
			if *train {
				if m, err = o.stepOf(m); err != nil {
					return err
				}
			}
			p, err := compileFor(m, strings.Split(*list, ","))
			if err != nil {
				return err
			}
			data, err := plan.Encode(p)
			if err != nil {
				return err
			}
			name := *out
			if name == "" {
				name = m.Name + ".rlxp"
			}
			write := func(w io.Writer) error {
				_, err := w.Write(data)
				return err
			}
			if err := replaceFile(name, write); err != nil {
				return err
			}
			fmt.Fprintf(std.out, "%s: %s, %s\n", name, bytesText(int64(len(data))), plural(len(p.Kernels), "kernel", "kernels"))
			return nil
		}
	},
}

// planTargets compile a module for a target that runs plan files.
var planTargets = map[string]func(m *ir.Module) ([]*plan.Plan, error){
	"webgpu": func(m *ir.Module) ([]*plan.Plan, error) {
		p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
		return []*plan.Plan{p}, err
	},
	"wasm": wasmsimd.Plans,
}

// compileFor returns the plan for the first target, with those for the others as variants.
func compileFor(m *ir.Module, names []string) (*plan.Plan, error) {
	var all []*plan.Plan
	for i, name := range names {
		compile := planTargets[name]
		if compile == nil || slices.Contains(names[:i], name) {
			return nil, usagef("target %q is unknown or given twice: have webgpu and wasm", name)
		}
		plans, err := compile(m)
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", name, err)
		}
		all = append(all, plans...)
	}
	all[0].Variants = all[1:]
	return all[0], nil
}
