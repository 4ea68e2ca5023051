package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// IndexFile and ValuesFile are the names of the files that [Write] writes besides the
// plans: the index in JSON, and the elements of all tensors, aligned to 8 bytes.
const (
	IndexFile  = "index.json"
	ValuesFile = "values.bin"
)

// The JSON of the index.
type (
	indexJSON struct {
		Modules []moduleJSON `json:"modules"`
	}
	moduleJSON struct {
		Name     string     `json:"name"`
		Plan     string     `json:"plan"`     // the file name of the plan for WebGPU
		Code     string     `json:"code"`     // the file name of the plan for WebAssembly
		Bytes    int        `json:"bytes"`    // of the plan for devices without subgroups
		Features []string   `json:"features"` // required of the device
		Cases    []caseJSON `json:"cases"`
	}
	caseJSON struct {
		Name  string                `json:"name"`
		Entry string                `json:"entry"`
		State map[string]tensorJSON `json:"state"`
		Runs  []runJSON             `json:"runs"`
	}
	runJSON struct {
		Inputs map[string]tensorJSON `json:"inputs"`
		Want   []resultJSON          `json:"want"`
	}
	resultJSON struct {
		Output    string     `json:"output"`
		About     string     `json:"about"`
		Tensor    tensorJSON `json:"tensor"`
		Abs       float64    `json:"abs"`
		Rel       float64    `json:"rel"`
		NonFinite bool       `json:"nonFinite,omitempty"`
	}
	// tensorJSON is a tensor at an offset of the values; a bool takes one byte.
	tensorJSON struct {
		DType string `json:"dtype"`
		Shape []int  `json:"shape"`
		At    int    `json:"at"`
	}
)

// Write compiles the modules for WebGPU and WebAssembly into a folder. Modules whose files would have one
// name are an error.
func Write(folder string, modules []Module) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	w := &writer{folder: folder, plans: plans{}, written: map[string]bool{}}
	for _, m := range modules {
		if err := w.module(m); err != nil {
			return fmt.Errorf("conformance: %s: %w", m.Name, err)
		}
	}
	src, err := sources(modules, w.plans)
	if err != nil {
		return err
	}
	if err := w.json(SourcesFile, src); err != nil {
		return err
	}
	if err := w.file(ValuesFile, w.values); err != nil {
		return err
	}
	return w.json(IndexFile, w.index)
}

type writer struct {
	folder string
	index  indexJSON
	values []byte
	plans  plans
	// written are the names of the files so far.
	written map[string]bool
}

func (w *writer) file(name string, data []byte) error {
	if w.written[name] {
		return fmt.Errorf("two files have the name %s", name)
	}
	w.written[name] = true
	return os.WriteFile(filepath.Join(w.folder, name), data, 0o644)
}

func (w *writer) json(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.file(name, data)
}

func (w *writer) module(m Module) error {
	p, err := plan.Compile(m.Module, m.Target(), wgsl.Printer{})
	if err != nil {
		return err
	}
	data, err := plan.Encode(p)
	if err != nil {
		return err
	}
	w.plans.add(m, m.targetName(), data)
	bySubgroups, err := w.subgroupPlans(m, p)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(m.Name, " ", "-")
	out := moduleJSON{Name: m.Name, Plan: name + ".rlxp", Code: name + ".wasm.rlxp", Bytes: len(data), Features: append([]string{}, p.Requires.Features...)}
	if err := w.code(m, out.Code); err != nil {
		return err
	}
	for _, c := range m.Cases {
		to := caseJSON{Name: c.Name, Entry: c.Entry, State: w.tensors(c.State)}
		for _, r := range c.Runs {
			to.Runs = append(to.Runs, w.run(r))
		}
		out.Cases = append(out.Cases, to)
	}
	w.index.Modules = append(w.index.Modules, out)
	return w.file(out.Plan, bySubgroups)
}

// subgroupPlans returns the plans of a module for subgroup sizes 8 (lavapipe) and 32, and
// then p for other devices; a device takes the first that it supports. Without subgroup
// kernels it returns p alone.
func (w *writer) subgroupPlans(m Module, p *plan.Plan) ([]byte, error) {
	var all []*plan.Plan
	for _, size := range []int{8, 32} {
		s, err := plan.Compile(m.Module, m.Target().WithSubgroups(size), wgsl.Printer{})
		if err != nil {
			return nil, err
		}
		if s.Requires.Subgroup != [2]int{} {
			all = append(all, s)
		}
		data, err := plan.Encode(s)
		if err != nil {
			return nil, err
		}
		w.plans.add(m, fmt.Sprintf("%s subgroups %d", m.targetName(), size), data)
	}
	all = append(all, p)
	all[0].Variants = all[1:]
	return plan.Encode(all[0])
}

// code compiles the plan of a module for WebAssembly. That without relaxed SIMD, alone, is a page's.
func (w *writer) code(m Module, name string) error {
	both, err := wasmsimd.Plans(m.Module)
	if err != nil {
		return err
	}
	data, err := plan.Encode(both[1])
	if err != nil {
		return err
	}
	w.plans.add(m, "wasm", data)
	both[0].Variants = both[1:]
	if data, err = plan.Encode(both[0]); err != nil {
		return err
	}
	return w.file(name, data)
}

func (w *writer) run(r Run) runJSON {
	out := runJSON{Inputs: w.tensors(r.Inputs)}
	for _, x := range r.Want {
		out.Want = append(out.Want, resultJSON{
			Output: x.Output, About: x.About, Tensor: w.tensor(x.Array),
			Abs: x.Abs, Rel: x.Rel, NonFinite: x.NonFinite,
		})
	}
	return out
}

func (w *writer) tensors(arrays map[string]*ir.Array) map[string]tensorJSON {
	out := map[string]tensorJSON{}
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		out[name] = w.tensor(arrays[name])
	}
	return out
}

// tensor appends the elements, rounded to their type.
func (w *writer) tensor(a *ir.Array) tensorJSON {
	a = a.Clone()
	a.Round()
	at := len(w.values)
	w.values = append(w.values, a.Bytes()...)
	for len(w.values)%8 != 0 {
		w.values = append(w.values, 0)
	}
	return tensorJSON{DType: a.DType.String(), Shape: append([]int{}, a.Dims...), At: at}
}
