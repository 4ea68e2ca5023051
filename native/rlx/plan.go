package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/sized"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/format/onnx"
)

var planCommand = command{
	name: "plan", args: "FILE", short: "compile a model ahead of time, for pages without the compiler",
	long: `Compiles a model to a plan file, which the runtime of the npm package @rlx-go/rlx opens without
the compiler. With several targets the plans of the others are its variants: a page takes the first
that its device can run. With -buckets sizes stay open: the file has a plan for each combination of
them, and a call is padded to the smallest that serves its sizes; in a page openSized of
@rlx-go/rlx/sized reads it. For WebGPU the int64 values of an ONNX model become i32 where they are in
range, inputs too.`,
	define: func(f *flag.FlagSet) runner {
		s, o := sizesFlag(f), trainFlags(f)
		out := f.String("o", "", "plan `FILE` to write; FILE with the extension .rlxp by default")
		buckets, exact := bucketsFlag(f), f.String("exact", "", "`NAMES` of symbols of -buckets that are not padded: calls have one of the sizes")
		list := f.String("target", "webgpu,wasm", "`NAMES` of targets, the first choice first: webgpu, wasm")
		train := f.Bool("train", false, "compile the training step of a loss, by the flags of \"rlx train\"")
		return func(_ context.Context, std stdio, args []string) error {
			file, err := one(args, "FILE")
			if err != nil {
				return err
			}
			targets, err := targetsOf(strings.Split(*list, ","))
			if err != nil {
				return err
			}
			m, err := loadOpen(file, std.in, s, buckets, targets)
			if err != nil {
				return err
			}
			if *train {
				if m, err = o.stepOf(m); err != nil {
					return err
				}
			}
			data, what, err := compileFile(m, targets, buckets, *exact)
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
			fmt.Fprintf(std.out, "%s: %s, %s\n", name, bytesText(int64(len(data))), what)
			return nil
		}
	},
}

// planTargets are the targets that run plan files, by name.
var planTargets = map[string][]sized.Target{
	"webgpu": {{Target: plan.WebGPU(), Printer: wgsl.Printer{}}},
	"wasm": {
		{Target: plan.WebAssembly(true), Printer: wasmsimd.Printer{Relaxed: true}},
		{Target: plan.WebAssembly(false), Printer: wasmsimd.Printer{}},
	},
}

// targetsOf returns the targets of names.
func targetsOf(names []string) (all []sized.Target, err error) {
	for i, name := range names {
		targets := planTargets[name]
		if targets == nil || slices.Contains(names[:i], name) {
			return nil, usagef("target %q is unknown or given twice: have webgpu and wasm", name)
		}
		all = append(all, targets...)
	}
	return all, nil
}

// compileFile returns the plan file of a module, and the number of its kernels or plans as text.
func compileFile(m *ir.Module, targets []sized.Target, b buckets, exact string) (data []byte, what string, err error) {
	if len(b) > 0 {
		o := sized.Options{Sizes: b, Targets: targets}
		if exact != "" {
			o.Exact = strings.Split(exact, ",")
			for _, symbol := range o.Exact {
				if b[symbol] == nil {
					return nil, "", usagef("-exact %s has no -buckets", symbol)
				}
			}
		}
		open, err := sized.Compile(m, o)
		if err != nil {
			return nil, "", err
		}
		data, err = plan.EncodeOpen(open)
		return data, plural(len(open.Buckets), "combination of sizes", "combinations of sizes"), err
	}
	if exact != "" {
		return nil, "", usagef("-exact %s needs -buckets", exact)
	}
	p, err := compileFor(m, targets)
	if err != nil {
		return nil, "", err
	}
	data, err = plan.Encode(p)
	return data, plural(len(p.Kernels), "kernel", "kernels"), err
}

// compileFor returns the plan for the first target, with those for the others as variants.
func compileFor(m *ir.Module, targets []sized.Target) (*plan.Plan, error) {
	var all []*plan.Plan
	for _, t := range targets {
		p, err := plan.Compile(m, t.Target, t.Printer)
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", t.Target.Name, err)
		}
		all = append(all, p)
	}
	all[0].Variants = all[1:]
	return all[0], nil
}

// buckets are the sizes to compile for, by symbol, a flag: "seq=16,64,batch=1..8".
type buckets map[string][]int

func bucketsFlag(f *flag.FlagSet) buckets {
	b := buckets{}
	f.Var(b, "buckets", "`NAME=N,N` leaves the size of a symbol open and compiles for these, 1..8 for 1, 2, 4 and 8; commas separate several symbols")
	return b
}

func (b buckets) String() string { return "" }

func (b buckets) Set(text string) error {
	name := ""
	for part := range strings.SplitSeq(text, ",") {
		numbers := part
		if before, after, ok := strings.Cut(part, "="); ok {
			name, numbers = before, after
			if b[name] != nil {
				return fmt.Errorf("%s is given twice", name)
			}
		}
		first, last, isRange := strings.Cut(numbers, "..")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil || name == "" || from < 1 || to < from || to > maxBucket {
			return fmt.Errorf("%q must be a name and sizes of 1 or more, as seq=16,64 or batch=1..8", text)
		}
		for n := from; n < to; n *= 2 {
			b[name] = append(b[name], n)
		}
		b[name] = append(b[name], to)
	}
	for name, sizes := range b {
		slices.Sort(sizes)
		b[name] = slices.Compact(sizes)
	}
	return nil
}

// maxBucket bounds the sizes of a bucket.
const maxBucket = 1 << 30

// loadFor is [load] for some targets: an ONNX model has i32 in place of i64, where values are in range, for one without i64.
func loadFor(name string, in io.Reader, s sizes, targets []sized.Target) (*model, error) {
	if filepath.Ext(name) != ".onnx" {
		return load(name, in, s)
	}
	no64 := func(t sized.Target) bool { return t.Target.Support(ir.I64) == dtype.Unsupported }
	return loadONNX(name, onnx.Options{Sizes: s, Narrow: slices.ContainsFunc(targets, no64)})
}

// loadOpen is [loadFor] for a module whose sizes with buckets stay open.
func loadOpen(name string, in io.Reader, s sizes, b buckets, targets []sized.Target) (*ir.Module, error) {
	loaded, err := loadFor(name, in, s, targets)
	if err != nil {
		return nil, err
	}
	if loaded.module == nil {
		return nil, fmt.Errorf("%s is a plan for %s: it must be the text form of graphs", name, loaded.plan.Target)
	}
	open := slices.Sorted(maps.Keys(b))
	for _, symbol := range open {
		if _, bound := s[symbol]; bound {
			return nil, usagef("%s has a -size and -buckets: give one of them", symbol)
		}
	}
	m, err := s.bind(loaded, open...)
	if err != nil {
		return nil, err
	}
	for _, symbol := range open {
		if !slices.ContainsFunc(m.Entries, func(e ir.Entry) bool { return slices.Contains(e.Graph.Symbols(), symbol) }) {
			return nil, usagef("-buckets %s names no symbol of the model", symbol)
		}
	}
	return m, nil
}
