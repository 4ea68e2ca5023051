package rlx

import (
	"context"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/compiler/padding"
	"github.com/rlx-go/rlx/internal/compiler/padding/padded"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/sized"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Size lists the sizes that a symbol is compiled for: see [CompileOptions.Sizes]. Calls of other
// sizes are padded to the next larger one. Their results have the elements of a program for the
// true size, up to the order of sums.
type Size struct {
	// Exact compiles for each size that is called, without padding, and excludes Buckets.
	Exact bool
	// Buckets are the sizes to compile for, ascending; nil means the powers of two.
	Buckets []int
	// Max is the maximum size; a larger one is refused. 0 means the last of Buckets, or no bound.
	Max int
}

// defaultBuckets is the default of [CompileOptions.Buckets].
const defaultBuckets = 16

// limit returns the maximum size, or 0 without one.
func (s Size) limit() int {
	if s.Max == 0 && len(s.Buckets) > 0 {
		return s.Buckets[len(s.Buckets)-1]
	}
	return s.Max
}

// bucket returns the size to compile for.
func (s Size) bucket(symbol string, size int) (int, error) {
	most := s.limit()
	if most > 0 && size > most {
		return 0, ir.Shapef("size %s is %d, more than the largest, %d", symbol, size, most)
	}
	if s.Exact || size == 0 {
		return size, nil
	}
	if i, _ := slices.BinarySearch(s.Buckets, size); i < len(s.Buckets) {
		return s.Buckets[i], nil
	}
	next := 1 << bits.Len(uint(size-1))
	if most > 0 {
		next = min(next, most)
	}
	return next, nil
}

// checkSizes returns an error of kind [ir.ErrAttr] for an option about sizes outside its domain, and
// [ir.ErrName] for a symbol that the module lacks.
func checkSizes(m *ir.Module, o CompileOptions) error {
	if o.Buckets < 0 {
		return ir.Attrf("Buckets is %d; it must be 0 or greater", o.Buckets)
	}
	have := symbols(m)
	for symbol, s := range o.Sizes {
		if !slices.Contains(have, symbol) {
			return ir.Errorf(ir.ErrName, "Sizes has symbol %q; the module has %q", symbol, have)
		}
		if s.Max < 0 || slices.ContainsFunc(s.Buckets, func(n int) bool { return n < 1 }) || !slices.IsSorted(s.Buckets) {
			return ir.Attrf("the size of symbol %q has Max %d and Buckets %v; Max must be 0 or greater, and Buckets ascending from 1", symbol, s.Max, s.Buckets)
		}
		if s.Exact && len(s.Buckets) > 0 {
			return ir.Attrf("the size of symbol %q is Exact and has Buckets %v: one of them must be left out", symbol, s.Buckets)
		}
	}
	return nil
}

// symbols returns the symbols of the ports of a module, sorted.
func symbols(m *ir.Module) []string {
	var out []string
	for _, e := range m.Entries {
		out = append(out, e.Graph.Symbols()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func isOpen(m *ir.Module) bool { return len(symbols(m)) > 0 }

// openEntry is an entry with open sizes.
type openEntry struct {
	*plan.OpenEntry
	graph    *ir.Graph         // nil in a plan file
	analysis *padding.Analysis // nil in a plan file, and if all symbols are exact
	sizes    map[string]Size
	file     *plan.Open // which has plans of the entry for some sizes; nil if they are compiled
	index    int        // of the entry in the file
	slots    []native.Slot
	measured []string // inputs with open sizes
	calls    calls
}

// newOpenEntry analyses an entry.
func newOpenEntry(e ir.Entry, sizes map[string]Size) (*openEntry, error) {
	described, analysis, err := sized.Describe(e, func(symbol string) bool { return sizes[symbol].Exact })
	if err != nil {
		return nil, err
	}
	made := &openEntry{OpenEntry: described, graph: e.Graph, analysis: analysis, sizes: sizes}
	made.addSlots()
	return made, nil
}

// addSlots sets the slots of the entry.
func (e *openEntry) addSlots() {
	for _, x := range e.Inputs {
		s := openSlot(x.Name, native.Input, x.DType, x.Shape)
		if e.slots = append(e.slots, s); slices.Contains(s.Dims, native.OpenSize) {
			e.measured = append(e.measured, x.Name)
		}
	}
	for _, y := range e.Outputs {
		e.slots = append(e.slots, openSlot(y.Name, native.Output, y.DType, outputShape(&y)))
	}
}

func outputShape(o *padded.Output) ir.Shape {
	shape := make(ir.Shape, len(o.Axes))
	for axis, parts := range o.Axes {
		shape[axis] = parts.Size()
	}
	return shape
}

// limit returns the maximum size of a symbol, or 0 without one.
func (e *openEntry) limit(symbol string) int {
	if e.file == nil {
		return e.sizes[symbol].limit()
	}
	most := 0
	for i := range e.file.Buckets {
		if b := &e.file.Buckets[i]; b.Entry == e.index {
			most = max(most, e.Bound(b)[symbol])
		}
	}
	return most
}

// bind returns the sizes of the symbols for inputs whose element types and ranks fit. The error is of
// kind [ir.ErrSymbol] if two inputs differ, and of kind [ir.ErrShape] for an axis of another size.
func (e *openEntry) bind(in Inputs) (map[string]int, error) {
	sizes, from := make(map[string]int, len(e.Symbols)), make(map[string]string, len(e.Symbols))
	for _, p := range e.Inputs {
		x, given := in[p.Name]
		if !given || len(x.Dims) != len(p.Shape) {
			continue // reported when the inputs are accepted
		}
		for axis, d := range p.Shape {
			symbol := d.String()
			if _, constant := d.Const(); constant || d != ir.Sym(symbol) {
				continue
			}
			n := x.Dims[axis]
			if first, bound := sizes[symbol]; bound && first != n {
				return nil, ir.Errorf(ir.ErrSymbol, "size %s is %d in input %q and %d in input %q", symbol, first, from[symbol], n, p.Name)
			}
			sizes[symbol], from[symbol] = n, p.Name
		}
	}
	for _, p := range e.Inputs {
		x, given := in[p.Name]
		for axis, d := range p.Shape {
			if !given || len(x.Dims) != len(p.Shape) {
				break
			}
			if n, err := d.Bind(sizes); err != nil || n != x.Dims[axis] {
				return nil, ir.Shapef("input %q is %s; axis %d must be of size %s for %s", p.Name, x, axis, d, formatSizes(sizes))
			}
		}
	}
	return sizes, nil
}

// formatSizes returns "batch=3, seq=7".
func formatSizes(sizes map[string]int) string {
	var parts []string
	for s, n := range sizes {
		parts = append(parts, s+"="+strconv.Itoa(n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// buckets returns the sizes to compile for. In a plan file the error is of kind [ir.ErrShape] for sizes
// that no plan serves.
func (e *openEntry) buckets(sizes map[string]int) (map[string]int, error) {
	if e.file != nil {
		at := e.file.Choose(e.index, sizes)
		if at < 0 {
			return nil, ir.Shapef("the plan file has no plan of entry %q for %s: it has %s", e.Name, formatSizes(sizes), e.formatBuckets())
		}
		return e.Bound(&e.file.Buckets[at]), nil
	}
	bound := make(map[string]int, len(sizes))
	for symbol, n := range sizes {
		to, err := e.sizes[symbol].bucket(symbol, n)
		if err != nil {
			return nil, err
		}
		bound[symbol] = to
	}
	return bound, nil
}

// formatBuckets returns "batch=1, seq=16; batch=1, seq=32", at most 16 of them.
func (e *openEntry) formatBuckets() string {
	var all []string
	for i := range e.file.Buckets {
		if b := &e.file.Buckets[i]; b.Entry == e.index {
			all = append(all, formatSizes(e.Bound(b)))
		}
	}
	if n := len(all); n > 16 {
		all = append(all[:16], strconv.Itoa(n-16)+" more")
	}
	return strings.Join(all, "; ")
}

// Prepare compiles an entry for sizes of its symbols, so that their first call need not. It does
// nothing for an entry without open sizes. The error is of kind [ir.ErrName] for an unknown entry
// and [ir.ErrSymbol] for a symbol without a size.
func (p *Program) Prepare(ctx context.Context, entry string, sizes map[string]int) error {
	if err := p.given(ctx, "prepare"); err != nil {
		return err
	}
	open, ok := p.Program.(*openProgram)
	if !ok {
		if !slices.Contains(p.Entries(), entry) {
			return ir.Errorf(ir.ErrName, "unknown entry %q: have %q", entry, p.Entries())
		}
		return nil
	}
	return open.prepare(ctx, entry, sizes)
}
