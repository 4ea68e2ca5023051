// Package sized compiles modules with open sizes ahead of time.
//
// Its input is a module and the sizes to compile for, by symbol. Its output is a [plan.Open]: a plan for each
// combination of sizes, of a graph in which package padding masks the elements beyond the true sizes, and a base plan,
// with the entries without open sizes. All plans declare the parameters and states of the whole module. A runtime
// chooses a plan for the sizes of each call.
package sized

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/padding"
	"github.com/rlx-go/rlx/internal/compiler/padding/padded"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
)

// Target is a target with its printer.
type Target struct {
	Target  plan.Target
	Printer plan.Printer
}

// maxBuckets bounds the plans of an entry.
const maxBuckets = 1024

// Options are the options of [Compile].
type Options struct {
	// Sizes are the sizes to compile for, by symbol. All combinations are compiled.
	Sizes map[string][]int
	// Exact are the symbols that are not padded: their true size must be one of Sizes.
	Exact []string
	// Targets are those of each plan: the first, and those of its variants.
	Targets []Target
}

// Compile compiles the entries of a module with open sizes for combinations of sizes, and the others
// once. The error is of kind [ir.ErrSymbol] for a symbol without sizes, [ir.ErrAttr] for more than
// 1,024 combinations, and otherwise of [Describe] or [plan.Compile].
func Compile(m *ir.Module, o Options) (*plan.Open, error) {
	holder, err := Holder(m)
	if err != nil {
		return nil, err
	}
	out := &plan.Open{Name: m.Name}
	c := &compiler{options: o, holder: ir.Entry{Name: plan.HolderEntry, Graph: holder}, states: make([]plan.Layout, len(o.Targets))}
	var closed []ir.Entry
	for _, e := range m.Entries {
		if len(e.Graph.Symbols()) == 0 {
			closed = append(closed, e)
		}
	}
	if out.Base, err = c.compile(m.Name, closed...); err != nil {
		return nil, err
	}
	for i, p := range out.Base.All() {
		c.states[i] = plan.LayoutOf(p)
	}
	for _, e := range m.Entries {
		if len(e.Graph.Symbols()) > 0 {
			if err := c.entry(out, e); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

type compiler struct {
	options Options
	holder  ir.Entry
	states  []plan.Layout // of the base plan, by target
}

// compile compiles entries for all targets, with the parameters and states of the base plan.
func (c *compiler) compile(name string, entries ...ir.Entry) (*plan.Plan, error) {
	m, err := ir.NewModule(name, append(slices.Clone(entries), c.holder)...)
	if err != nil {
		return nil, err
	}
	var all []*plan.Plan
	for i, t := range c.options.Targets {
		t.Target.States = c.states[i]
		p, err := plan.Compile(m, t.Target, t.Printer)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	all[0].Variants = all[1:]
	return all[0], nil
}

// entry compiles an entry for all combinations of sizes.
func (c *compiler) entry(out *plan.Open, e ir.Entry) error {
	exact := func(symbol string) bool { return slices.Contains(c.options.Exact, symbol) }
	described, analysis, err := Describe(e, exact)
	if err != nil {
		return err
	}
	all, err := combinations(e.Name, described.Symbols, c.options.Sizes)
	if err != nil {
		return err
	}
	out.Entries = append(out.Entries, *described)
	for _, sizes := range all {
		b := plan.Bucket{Entry: len(out.Entries) - 1, Sizes: sizes}
		bound := described.Bound(&b)
		var g *ir.Graph
		if analysis == nil {
			g, err = e.Graph.Bind(bound)
		} else {
			g, err = analysis.Graph(bound)
		}
		if err == nil {
			b.Plan, err = c.compile(out.Name, ir.Entry{Name: e.Name, Graph: g})
		}
		if err != nil {
			return format.Errorf("entry %q with %s: %w", e.Name, format.Sprintf("%v of %v", sizes, described.Symbols), err)
		}
		out.Buckets = append(out.Buckets, b)
	}
	return nil
}

// combinations returns all combinations of sizes of symbols.
func combinations(entry string, symbols []string, sizes map[string][]int) ([][]int, error) {
	all := [][]int{nil}
	for _, s := range symbols {
		if len(sizes[s]) == 0 {
			return nil, ir.Errorf(ir.ErrSymbol, "entry %q: symbol %q has no sizes to compile for", entry, s)
		}
		if len(all)*len(sizes[s]) > maxBuckets {
			return nil, ir.Attrf("entry %q: more than %d combinations of sizes", entry, maxBuckets)
		}
		var next [][]int
		for _, before := range all {
			for _, n := range sizes[s] {
				next = append(next, append(slices.Clone(before), n))
			}
		}
		all = next
	}
	return all, nil
}

// Describe describes an entry with open sizes and returns the analysis of its padding, nil if exact
// holds for all symbols. The error is of kind [ir.ErrSymbol] for an open size of a parameter or state and
// for a symbol that no axis of an input has as its size, and of [ir.ErrUnsupported] for a graph that
// cannot be padded.
func Describe(e ir.Entry, exact func(symbol string) bool) (*plan.OpenEntry, *padding.Analysis, error) {
	made := &plan.OpenEntry{Name: e.Name, Symbols: e.Graph.Symbols()}
	axes := map[ir.Dim]bool{}
	for _, p := range e.Graph.Ports() {
		shape := p.Value.Shape()
		for _, d := range shape {
			axes[d] = true
		}
		if p.Kind == ir.InputPort {
			made.Inputs = append(made.Inputs, plan.OpenInput{Name: p.Name, DType: p.Value.DType(), Shape: shape})
		} else if slices.ContainsFunc(shape, isSymbolic) {
			return nil, nil, ir.Errorf(ir.ErrSymbol, "entry %q: %s has an open size; only inputs may", e.Name, p.Value.Node())
		}
	}
	for _, s := range made.Symbols {
		if !axes[ir.Sym(s)] {
			return nil, nil, ir.Errorf(ir.ErrSymbol, "entry %q: symbol %q is not the size of an axis of an input, only part of one", e.Name, s)
		}
		made.Exact = append(made.Exact, exact(s))
	}
	for _, o := range e.Graph.Outputs() {
		made.Writes = made.Writes || o.State
	}
	if !slices.Contains(made.Exact, false) {
		made.Outputs = exactOutputs(e.Graph)
		return made, nil, nil
	}
	analysis, err := padding.Analyze(e.Graph, func(symbol string) bool { return !exact(symbol) })
	if err != nil {
		return nil, nil, format.Errorf("entry %q cannot be padded, Exact compiles it for each size: %w", e.Name, err)
	}
	made.Fit = *analysis.Fit()
	return made, analysis, nil
}

// exactOutputs are the outputs of a graph that is not padded.
func exactOutputs(g *ir.Graph) (out []padded.Output) {
	for _, o := range g.Outputs() {
		if o.State {
			continue
		}
		y := padded.Output{Name: o.Name, DType: o.Value.DType()}
		for _, d := range o.Value.Shape() {
			y.Axes = append(y.Axes, ir.ExtentOf(d))
		}
		out = append(out, y)
	}
	return out
}

func isSymbolic(d ir.Dim) bool { return len(d.Symbols()) > 0 }

// Holder returns a graph that declares all parameters and states of a module.
func Holder(m *ir.Module) (*ir.Graph, error) {
	return ir.Build(m.Name, func(b *ir.Builder) {
		kinds := map[string]ir.PortKind{}
		for _, e := range m.Entries {
			for _, p := range e.Graph.Ports() {
				kinds[p.Name] = max(kinds[p.Name], p.Kind)
				if p.Kind == ir.ParamPort {
					kinds[p.Name] = ir.ParamPort
				}
			}
		}
		for _, e := range m.Entries {
			for _, p := range e.Graph.Ports() {
				if _, declared := b.Declared(p.Name); declared || p.Kind == ir.InputPort {
					continue
				}
				p.Kind = kinds[p.Name]
				b.SetState(p.Name, b.PortLike(p, p.Value.Shape()))
			}
		}
		b.Output("none", b.Constant(ir.TypeOf(ir.I32), make([]byte, 4)))
	})
}
