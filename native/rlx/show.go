package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/cuda"
	"github.com/rlx-go/rlx/native/metal"
)

var showCommand = command{
	name: "show", args: "FILE", short: "show a model: graph, groups, kernels, memory over time",
	long: `Shows the graph of a model, the groups that are computed by one kernel or a few, the kernels in the
order in which a run launches them, and the memory of its values over time, for one target. -svg
draws kernels and memory. FILE may be a plan file, too, which has no graph, or a file of weights (.gguf,
.safetensors, .npz), of which the metadata and the tensors are listed.`,
	define: func(f *flag.FlagSet) runner {
		var o showOptions
		asJSON, s := jsonFlag(f), sizesFlag(f)
		f.StringVar(&o.target, "target", "webgpu", "`NAME` of the target: "+strings.Join(targetNames(), ", "))
		f.StringVar(&o.entry, "entry", "", "`NAME` of the entry to show; all by default")
		f.StringVar(&o.parts, "part", "graph,groups,kernels,memory", "`PARTS` to show, of graph, groups, kernels, memory and source")
		f.StringVar(&o.svg, "svg", "", "`FILE` to draw to; of several entries each to its own, as FILE-ENTRY.svg")
		return func(_ context.Context, std stdio, args []string) error {
			file, err := one(args, "FILE")
			if err != nil {
				return err
			}
			if weightsFormat(file) != "" {
				return showWeights(std.out, file, *asJSON)
			}
			v, err := o.load(file, std.in, s)
			if err != nil {
				return err
			}
			if *asJSON {
				return writeJSON(std.out, v.summary())
			}
			if o.svg != "" {
				return v.draw(std.out, o.svg)
			}
			return v.write(std.out, strings.Split(o.parts, ","))
		}
	},
}

func showWeights(w io.Writer, file string, asJSON bool) error {
	v, err := viewWeights(file)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(w, v)
	}
	return v.write(w)
}

type showOptions struct{ target, entry, parts, svg string }

// target is the device that "show" compiles for.
type target struct {
	target  func() plan.Target
	printer plan.Printer
}

// targets are the targets by name.
func targets() map[string]target {
	return map[string]target{
		"webgpu": {plan.WebGPU, wgsl.Printer{}},
		"cuda":   {cuda.Target, cudacpp.Printer{}},
		"metal":  {metal.Target, msl.Printer{}},
		"wasm":   {func() plan.Target { return plan.WebAssembly(true) }, wasmsimd.Printer{Relaxed: true}},
	}
}

func targetNames() []string { return []string{"webgpu", "cuda", "metal", "wasm"} }

// view is the output of "show".
type view struct {
	module  *ir.Module // nil for a plan file
	plan    *plan.Plan
	target  target
	written [][]bool
	entries []*plan.Entry
}

// partNames are the parts of the text.
var partNames = []string{"graph", "groups", "kernels", "memory", "source"}

func (o *showOptions) load(file string, in io.Reader, s sizes) (*view, error) {
	for part := range strings.SplitSeq(o.parts, ",") {
		if !slices.Contains(partNames, part) {
			return nil, usagef("unknown part %q: have %s", part, strings.Join(partNames, ", "))
		}
	}
	t, ok := targets()[o.target]
	if !ok {
		return nil, usagef("unknown target %q: have %s", o.target, strings.Join(targetNames(), ", "))
	}
	m, err := load(file, in, s)
	if err != nil {
		return nil, err
	}
	v := &view{plan: m.plan, target: t}
	if m.module != nil {
		if v.module, err = s.bind(m); err != nil {
			return nil, err
		}
		var kernels []plan.Printed
		if v.plan, kernels, err = plan.CompileKernels(v.module, t.target(), t.printer); err != nil {
			return nil, err
		}
		for _, k := range kernels {
			v.written = append(v.written, k.Written)
		}
	}
	var names []string
	for i := range v.plan.Entries {
		e := &v.plan.Entries[i]
		if names = append(names, e.Name); o.entry == "" || e.Name == o.entry {
			v.entries = append(v.entries, e)
		}
	}
	if len(v.entries) == 0 {
		return nil, usagef("unknown entry %q: have %q", o.entry, names)
	}
	return v, nil
}

// write writes the parts as text.
func (v *view) write(w io.Writer, parts []string) error {
	has := func(part string) bool { return slices.Contains(parts, part) }
	fmt.Fprintf(w, "module %q for %s: %s, %s, %s\n", v.plan.Name, v.plan.Target,
		plural(len(v.plan.Entries), "entry", "entries"), plural(len(v.plan.Kernels), "kernel", "kernels"), v.buffers())
	for _, e := range v.entries {
		stages := stagesOf(v.plan, e, v.written)
		fmt.Fprintf(w, "\nentry %q: %s\n", e.Name, plural(e.Dispatches(), "launch", "launches"))
		if has("graph") {
			v.writeGraph(w, e.Name)
		}
		if has("groups") {
			if err := v.writeGroups(w, e.Name); err != nil {
				return err
			}
		}
		if has("kernels") {
			if err := writeStages(w, stages); err != nil {
				return err
			}
		}
		if has("memory") {
			writeMemory(w, stages, liveBytes(valuesOf(v.plan, e, stages), len(stages)))
		}
	}
	if has("source") {
		for _, k := range v.plan.Kernels {
			fmt.Fprintf(w, "\nkernel %s\n%s\n", k.Name, k.Source)
		}
	}
	return nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// buffers returns "1.0 KiB of state, 2.0 MiB of temp".
func (v *view) buffers() string {
	var kinds [plan.StatusBuffer + 1]int64
	for _, b := range v.plan.Buffers {
		kinds[b.Kind] += int64(b.Bytes)
	}
	var parts []string
	for kind, n := range kinds {
		if n > 0 && plan.BufferKind(kind) != plan.StatusBuffer {
			parts = append(parts, bytesText(n)+" of "+plan.BufferKind(kind).String())
		}
	}
	if len(parts) == 0 {
		return "no memory"
	}
	return strings.Join(parts, ", ")
}

func (v *view) writeGraph(w io.Writer, entry string) {
	if v.module == nil {
		return
	}
	for _, e := range v.module.Entries {
		if e.Name == entry {
			fmt.Fprintf(w, "\n%s", e.Graph)
		}
	}
}

func (v *view) writeGroups(w io.Writer, entry string) error {
	if v.module == nil {
		return nil
	}
	all, err := plan.Partitions(v.module, v.target.target(), v.target.printer)
	if err != nil {
		return err
	}
	fmt.Fprint(w, "\ngroups\n")
	for i, e := range v.module.Entries {
		if e.Name == entry {
			for line := range strings.Lines(all[i].String()) {
				fmt.Fprint(w, "  ", line)
			}
		}
	}
	return nil
}

func writeStages(w io.Writer, stages []stage) error {
	fmt.Fprint(w, "\nkernels\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "  #\tTIMES\tWORKGROUPS\tREADS\tWRITES\tKERNEL\n")
	for i := range stages {
		s := &stages[i]
		read, written := s.bytes()
		fmt.Fprintf(t, "  %d\t%d\t%s\t%s\t%s\t%s%s\n", i, s.times, s.grid(), bytesText(int64(read)), bytesText(int64(written)), strings.Repeat("  ", len(s.repeats)), s.name)
	}
	return t.Flush()
}

// writeMemory draws the bytes of live values by one bar for each stage, or for several of a long
// entry.
func writeMemory(w io.Writer, stages []stage, live []int) {
	const rows, width = 40, 48
	if len(live) == 0 {
		return
	}
	peak := slices.Max(live)
	at := slices.Index(live, peak)
	fmt.Fprintf(w, "\nmemory of values between kernels: at most %s, at #%d %s\n", bytesText(int64(peak)), at, stages[at].name)
	each := (len(live) + rows - 1) / rows
	for from := 0; from < len(live); from += each {
		most := slices.Max(live[from:min(from+each, len(live))])
		bar := int(math.Round(width * float64(most) / float64(max(peak, 1))))
		fmt.Fprintf(w, "  %4d %s %s\n", from, strings.Repeat("#", bar)+strings.Repeat(".", width-bar), bytesText(int64(most)))
	}
}

// draw writes a picture of each entry.
func (v *view) draw(out io.Writer, file string) error {
	ext := filepath.Ext(file)
	for _, e := range v.entries {
		name := file
		if len(v.entries) > 1 {
			name = strings.TrimSuffix(file, ext) + "-" + strings.ReplaceAll(e.Name, string(filepath.Separator), "-") + ext
		}
		stages := stagesOf(v.plan, e, v.written)
		if err := os.WriteFile(name, drawEntry(v.plan, e, stages), 0o666); err != nil {
			return err
		}
		fmt.Fprintln(out, name)
	}
	return nil
}

// The summary of a view, for JSON.
type (
	viewJSON struct {
		Name    string           `json:"name"`
		Target  string           `json:"target"`
		Buffers map[string]int64 `json:"buffers"`
		Entries []entryJSON      `json:"entries"`
	}
	entryJSON struct {
		Name     string      `json:"name"`
		Launches int         `json:"launches"`
		Peak     int         `json:"peak"` // bytes of values between kernels
		Stages   []stageJSON `json:"stages"`
	}
	stageJSON struct {
		Kernel  string `json:"kernel"`
		Times   int    `json:"times"`
		Groups  [3]int `json:"groups"`
		Threads int    `json:"threads"`
		Reads   int    `json:"reads"`
		Writes  int    `json:"writes"`
		Live    int    `json:"live"` // bytes of values between kernels
	}
)

func (v *view) summary() viewJSON {
	out := viewJSON{Name: v.plan.Name, Target: v.plan.Target, Buffers: map[string]int64{}}
	for _, b := range v.plan.Buffers {
		out.Buffers[b.Kind.String()] += int64(b.Bytes)
	}
	for _, e := range v.entries {
		stages := stagesOf(v.plan, e, v.written)
		live := liveBytes(valuesOf(v.plan, e, stages), len(stages))
		x := entryJSON{Name: e.Name, Launches: e.Dispatches()}
		for i := range stages {
			read, written := stages[i].bytes()
			x.Peak = max(x.Peak, live[i])
			x.Stages = append(x.Stages, stageJSON{stages[i].name, stages[i].times, stages[i].groups, stages[i].threads, read, written, live[i]})
		}
		out.Entries = append(out.Entries, x)
	}
	return out
}
