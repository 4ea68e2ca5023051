package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
	_ "github.com/rlx-go/rlx/ir/nn" // all ops
	_ "github.com/rlx-go/rlx/ir/ops"
	_ "github.com/rlx-go/rlx/ir/ops/spd"
	_ "github.com/rlx-go/rlx/ir/ops/splat"
)

// model is the contents of a file: a module, or a precompiled plan.
type model struct {
	module *ir.Module
	plan   *plan.Plan
	open   *plan.Open // plans of several sizes
	file   []byte     // of the plan
	// An ONNX model has its weights, and symbols that are bound when it is imported.
	weights rlx.Inputs
	bound   []string
}

// planMagic begins a plan file.
const planMagic = "RLXP"

// load is [loadAny] for commands that have no use for plans of several sizes.
func load(name string, in io.Reader, s sizes) (*model, error) {
	m, err := loadAny(name, in, s)
	if err == nil && m.open != nil {
		return nil, fmt.Errorf("%s has a plan for each of several sizes: run and bench open it, this command reads plans of one size", name)
	}
	return m, err
}

// loadAny reads a file, "-" for the standard input. Sizes are for the import of an ONNX model alone: see
// [sizes.bind].
func loadAny(name string, in io.Reader, s sizes) (*model, error) {
	if filepath.Ext(name) == ".onnx" {
		return loadONNX(name, onnx.Options{Sizes: s})
	}
	data, err := read(name, in)
	if err != nil {
		return nil, err
	}
	if plan.IsOpen(data) {
		o, err := plan.DecodeOpen(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return &model{open: o, file: data}, nil
	}
	if bytes.HasPrefix(data, []byte(planMagic)) {
		p, err := plan.Decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return &model{plan: p, file: data}, nil
	}
	if err := refuseWeights(name, data); err != nil {
		return nil, err
	}
	title := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	if name == "-" {
		title = "stdin"
	}
	m, err := ir.ParseModule(title, string(data))
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	return &model{module: m}, nil
}

// loadONNX imports an ONNX model as a module with the entry "run".
func loadONNX(name string, o onnx.Options) (*model, error) {
	file, err := onnx.ReadFile(name)
	if err != nil {
		return nil, err
	}
	imported, err := file.Import(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m := &model{weights: rlx.Inputs{}}
	for _, input := range file.Inputs() {
		for _, d := range input.Shape {
			m.bound = append(m.bound, d.String())
		}
	}
	for _, w := range imported.Weights {
		data, err := w.Bytes()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		dims, _ := w.Type.Shape.Ints()
		m.weights[w.Name] = rlx.Tensor{DType: w.Type.DType, Dims: dims, Data: data}
	}
	title := strings.TrimSuffix(filepath.Base(name), ".onnx")
	m.module, err = ir.NewModule(title, ir.Entry{Name: "run", Graph: imported.Graph})
	return m, err
}

func read(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}

// loadModule reads a file with graphs and binds their symbols.
func loadModule(name string, in io.Reader, s sizes) (*model, error) {
	m, err := load(name, in, s)
	if err != nil {
		return nil, err
	}
	if m.module == nil {
		return nil, fmt.Errorf("%s is a plan for %s: it must be the text form of graphs", name, m.plan.Target)
	}
	m.module, err = s.bind(m)
	return m, err
}

// sizes are the sizes of symbols, a flag that may be given several times: "batch=8,seq=128".
type sizes map[string]int

func sizesFlag(f *flag.FlagSet) sizes {
	s := sizes{}
	f.Var(s, "size", "`NAME=N` is the size of a symbol; commas separate several")
	return s
}

func (s sizes) String() string { return "" }

func (s sizes) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, number, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if !ok || name == "" || err != nil || n < 1 {
			return fmt.Errorf("%q must be a name and a size of 1 or more, as batch=8", part)
		}
		if earlier, given := s[name]; given && earlier != n {
			return fmt.Errorf("%s is %d and %d; a symbol has one size", name, earlier, n)
		}
		s[name] = n
	}
	return nil
}

// flags returns the sizes as they are given on a command line.
func (s sizes) flags() (args []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		args = append(args, "-size", fmt.Sprintf("%s=%d", name, s[name]))
	}
	return args
}

// bind returns the module with its symbols bound, but for those that stay open. The error is a
// [usageError] that names the symbols without a size, or the names that are no symbols.
func (s sizes) bind(of *model, open ...string) (*ir.Module, error) {
	m, known := of.module, map[string]bool{}
	for _, e := range m.Entries {
		for _, symbol := range e.Graph.Symbols() {
			known[symbol] = true
		}
	}
	names := slices.Sorted(maps.Keys(known))
	if err := s.check(names, of.bound...); err != nil {
		return nil, err
	}
	if err := s.checkAll(slices.DeleteFunc(names, func(name string) bool { return slices.Contains(open, name) })); err != nil {
		return nil, err
	}
	entries := slices.Clone(m.Entries)
	for i, e := range entries {
		own := map[string]ir.Dim{}
		for _, symbol := range e.Graph.Symbols() {
			if !slices.Contains(open, symbol) {
				own[symbol] = ir.N(s[symbol])
			}
		}
		var err error
		if entries[i].Graph, err = e.Graph.Substitute(own); err != nil {
			return nil, err
		}
	}
	return ir.NewModule(m.Name, entries...)
}

// check refuses sizes of names that are neither symbols nor bound already.
func (s sizes) check(symbols []string, bound ...string) error {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(symbols, name) && !slices.Contains(bound, name) {
			return usagef("-size %s=%d names no symbol of the model: it has %q", name, s[name], symbols)
		}
	}
	return nil
}

// checkAll refuses a symbol without a size.
func (s sizes) checkAll(symbols []string) error {
	for _, name := range symbols {
		if s[name] == 0 {
			return usagef("the model leaves the size %q open: add -size %s=8", name, name)
		}
	}
	return nil
}

// entryOf returns the entry of a name, the only one or the first if the name is empty.
func entryOf(m *ir.Module, name string) (ir.Entry, error) {
	var names []string
	for _, e := range m.Entries {
		if e.Name == name || name == "" {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return ir.Entry{}, usagef("unknown entry %q: have %q", name, names)
}

// planEntry returns the name of an entry of the plan, the first for "".
func (m *model) planEntry(name string) (string, error) {
	var names []string
	for _, e := range m.plans()[0].Entries {
		if e.Name != plan.HolderEntry {
			names = append(names, e.Name)
		}
	}
	if m.open != nil {
		for _, e := range m.open.Entries {
			names = append(names, e.Name)
		}
	}
	switch {
	case slices.Contains(names, name):
		return name, nil
	case name == "" && len(names) > 0:
		return names[0], nil
	}
	return "", usagef("unknown entry %q: have %q", name, names)
}

// plans returns the plans of the file, first the one for what has no open size.
func (m *model) plans() []*plan.Plan {
	if m.open == nil {
		return []*plan.Plan{m.plan}
	}
	all := []*plan.Plan{m.open.Base}
	for i := range m.open.Buckets {
		all = append(all, m.open.Buckets[i].Plan)
	}
	return all
}
