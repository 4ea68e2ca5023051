package conformance

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/ops"
)

// SourcesFile is the name of the file with the text of modules and the hashes of their
// plans. Compilation is deterministic: js/test/same-plans.test.mjs checks the compiler in a
// page against these hashes.
const SourcesFile = "sources.json"

type (
	sourceJSON struct {
		Name    string            `json:"name"`
		Entries []sourceEntryJSON `json:"entries"`
		// Plans holds the SHA-256 of the plan file for each target, by the target's name.
		Plans map[string]string `json:"plans"`
	}
	sourceEntryJSON struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}
)

// sourceTargets maps names to targets that cover the paths of the schedulers and printers
// in a page.
var sourceTargets = []struct {
	name    string
	target  plan.Target
	printer plan.Printer
}{
	{"webgpu", plan.WebGPU(), wgsl.Printer{}},
	{"webgpu f16", withF16(plan.WebGPU()), wgsl.Printer{}},
	{"webgpu subgroups 32", plan.WebGPU().WithSubgroups(32), wgsl.Printer{}},
	{"webgpu of an M1", of(plan.WebGPU(), "Apple M1"), wgsl.Printer{}},
	{"wasm", plan.WebAssembly(false), wasmsimd.Printer{}},
}

func withF16(t plan.Target) plan.Target {
	t.F16 = true
	return t
}

func of(t plan.Target, device string) plan.Target {
	t.Device = hardware.Named(device)
	return t
}

// plans holds the hashes of plan files that have been compiled, by module and target.
type plans map[planKey]string

type planKey struct {
	module *ir.Module
	target string // a name of sourceTargets
}

// add enters the plan file of a module.
func (p plans) add(m Module, target string, data []byte) {
	p[planKey{m.Module, target}] = hashOf(data)
}

func hashOf(data []byte) string {
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}

// sources returns the texts and plan hashes of the suite's modules and of [largeGraphs]; known are
// plans that need not be compiled again.
func sources(suite []Module, known plans) ([]sourceJSON, error) {
	all := make([]*ir.Module, 0, len(suite)+len(largeGraphs))
	for _, m := range suite {
		all = append(all, m.Module)
	}
	for _, large := range largeGraphs {
		m, err := large.module()
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	out := make([]sourceJSON, len(all))
	for i, m := range all {
		out[i] = sourceOf(m, known)
	}
	return out, nil
}

// sourceOf returns the text of a module and the hashes of its plans, without those of
// targets that refuse it.
func sourceOf(m *ir.Module, known plans) sourceJSON {
	s := sourceJSON{Name: m.Name, Plans: map[string]string{}}
	for _, e := range m.Entries {
		s.Entries = append(s.Entries, sourceEntryJSON{e.Name, e.Graph.String()})
	}
	for _, t := range sourceTargets {
		if hash := known[planKey{m, t.name}]; hash != "" {
			s.Plans[t.name] = hash
			continue
		}
		p, err := plan.Compile(m, t.target, t.printer)
		if err != nil {
			continue
		}
		if data, err := plan.Encode(p); err == nil {
			s.Plans[t.name] = hashOf(data)
		}
	}
	return s
}

// largeGraph is a graph with sizes that select special schedules, too large for the suite
// to run.
type largeGraph struct {
	name     string
	gradient bool // compile its VJP
	build    func(b *ir.Builder)
}

func (l largeGraph) module() (*ir.Module, error) {
	g, err := ir.Build(l.name, l.build)
	if err == nil && l.gradient {
		g, err = autodiff.VJP(g)
	}
	if err != nil {
		return nil, err
	}
	return ir.NewModule(l.name, ir.Entry{Name: "main", Graph: g})
}

// largeGraphs covers schedules that small shapes do not select.
var largeGraphs = []largeGraph{
	{"large running sums of rows", false, func(b *ir.Builder) {
		b.Output("y", ops.CumSum(b, b.Input("x", ir.F32, ir.Dims(64, 65536)...), ops.CumSumAttrs{Axis: 1}))
	}},
	{"large running sum of one row", true, func(b *ir.Builder) {
		b.Output("y", ops.CumSum(b, b.Input("x", ir.F32, ir.N(1<<20)), ops.CumSumAttrs{}))
	}},
	{"large running sums of columns", false, func(b *ir.Builder) {
		b.Output("y", ops.CumSum(b, b.Input("x", ir.I32, ir.Dims(4096, 300)...), ops.CumSumAttrs{Exclusive: true, Reverse: true}))
	}},
	{"large softmax", true, func(b *ir.Builder) {
		b.Output("y", ops.Softmax(b, b.Input("x", ir.F32, ir.Dims(4096, 4096)...), 1))
	}},
	{"large products", true, func(b *ir.Builder) {
		x, w, v := b.Input("x", ir.F32, ir.Dims(1024, 1024)...), b.Input("w", ir.F32, ir.Dims(1024, 2048)...), b.Input("v", ir.F32, ir.Dims(2048, 1)...)
		b.Output("y", ops.MatMul(b, ops.Gelu(b, ops.MatMul(b, x, w)), v))
	}},
	{"large sort", false, func(b *ir.Builder) {
		b.Output("y", ops.Sort(b, ops.SortAttrs{}, b.Input("x", ir.F32, ir.N(1<<16)))[0])
	}},
	{"large embedding", true, func(b *ir.Builder) {
		b.Output("y", ops.Embedding(b, b.Input("table", ir.F32, ir.Dims(5000, 256)...), b.Input("at", ir.I32, ir.N(2048))))
	}},
}
