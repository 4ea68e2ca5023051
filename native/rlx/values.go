package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// given are the inputs of the command line: by name, or files with several.
type given struct {
	values map[string]json.RawMessage
	files  []string
	read   rlx.Inputs // the tensors of files, once they are read
}

func inputsFlag(f *flag.FlagSet) *given {
	g := &given{values: map[string]json.RawMessage{}}
	f.Var(g, "in", "`NAME=VALUE` is an input: a number, nested lists of numbers in JSON, or @FILE with them; a safetensors or npz file without NAME has several. Inputs that are not given are random")
	return g
}

func (g *given) String() string { return "" }

func (g *given) Set(text string) error {
	name, value, named := strings.Cut(text, "=")
	if !named {
		g.files = append(g.files, text)
		return nil
	}
	if file, is := strings.CutPrefix(value, "@"); is {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		value = string(data)
	}
	if !json.Valid([]byte(value)) {
		return fmt.Errorf("input %q is %.40q: it must be a number or lists of numbers in JSON", name, value)
	}
	g.values[name] = json.RawMessage(value)
	return nil
}

// addSizes adds the sizes that inputs have along axes that are symbols, unless they are set.
func (g *given) addSizes(s sizes, m *ir.Module) error {
	for _, e := range m.Entries {
		for _, p := range e.Graph.Ports() {
			if p.Kind != ir.InputPort {
				continue
			}
			if err := g.addSizesOf(s, p.Name, p.Value.Shape()); err != nil {
				return err
			}
		}
	}
	return nil
}

// addSizesOf is addSizes for an input. One whose lists are nested otherwise than its axes sets none.
func (g *given) addSizesOf(s sizes, input string, shape ir.Shape) error {
	read, err := g.tensors()
	if err != nil {
		return err
	}
	dims := read[input].Dims
	if text, is := g.values[input]; is {
		dims = nesting(text)
	}
	if len(dims) != len(shape) {
		return nil
	}
	for axis, dim := range shape {
		if name := dim.String(); s[name] == 0 && dims[axis] > 0 && slices.Equal(dim.Symbols(), []string{name}) {
			s[name] = dims[axis]
		}
	}
	return nil
}

// tensors returns the tensors of the files.
func (g *given) tensors() (read rlx.Inputs, err error) {
	if g.read == nil {
		g.read, err = readAll(g.files)
	}
	return g.read, err
}

// nesting returns the numbers of elements of lists nested in one another, the outermost first.
func nesting(text json.RawMessage) (dims []int) {
	for {
		var elements []json.RawMessage
		if json.Unmarshal(text, &elements) != nil || len(elements) == 0 {
			return dims
		}
		dims, text = append(dims, len(elements)), elements[0]
	}
}

// inputs returns the inputs of an entry: those given, and random ones for the others.
func (g *given) inputs(slots []native.Slot, seed uint64) (rlx.Inputs, error) {
	read, err := g.tensors()
	if err != nil {
		return nil, err
	}
	known, in := map[string]bool{}, rlx.Inputs{}
	random := rand.New(rand.NewPCG(seed, 0))
	for _, s := range slots {
		if s.Role != native.Input {
			continue
		}
		known[s.Name] = true
		x, ok := read[s.Name]
		if text, is := g.values[s.Name]; is {
			if x, err = tensorOf(s, text); err != nil {
				return nil, err
			}
			ok = true
		}
		if !ok {
			x = randomTensor(s, random)
		}
		in[s.Name] = fitted(x, s.DType)
	}
	for _, name := range slices.Sorted(maps.Keys(g.values)) {
		if !known[name] {
			return nil, usagef("unknown input %q: have %q", name, slices.Sorted(maps.Keys(known)))
		}
	}
	return in, nil
}

// tensorOf reads the elements of a slot from JSON: lists nested as its axes are, or one flat list.
func tensorOf(s native.Slot, text json.RawMessage) (rlx.Tensor, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // f64 does not hold all of i64
	var v any
	if err := decoder.Decode(&v); err != nil {
		return rlx.Tensor{}, fmt.Errorf("input %q: %w", s.Name, err)
	}
	l := list{slot: s, to: ir.NewArray(s.DType, s.Dims...)}
	if err := l.add(v, 0); err != nil {
		return rlx.Tensor{}, err
	}
	if l.count != l.to.Len() {
		return rlx.Tensor{}, ir.Shapef("input %q has %d numbers: it must have %d, those of %s%v", s.Name, l.count, l.to.Len(), s.DType, s.Dims)
	}
	l.to.Round()
	return native.FromArray(l.to), nil
}

// list collects the elements of an input.
type list struct {
	slot  native.Slot
	to    *ir.Array
	count int
}

// add adds a value of JSON in the given number of lists.
func (l *list) add(v any, depth int) error {
	elements, ok := v.([]any)
	if !ok {
		if l.count++; l.count > l.to.Len() {
			return nil // they are counted
		}
		return l.element(l.count-1, v)
	}
	if dims := l.slot.Dims; l.nested(elements, depth) && (depth >= len(dims) || len(elements) != dims[depth]) {
		return ir.Shapef("input %q has a list of %d elements in %d lists: it must have lists of the sizes %v, or one list of all elements", l.slot.Name, len(elements), depth, dims)
	}
	for _, e := range elements {
		if err := l.add(e, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// nested reports whether a list is not the flat list of all elements.
func (l *list) nested(elements []any, depth int) bool {
	for _, e := range elements {
		if _, is := e.([]any); is {
			return true
		}
	}
	return depth > 0
}

// element sets element i to a number or a boolean.
func (l *list) element(i int, v any) error {
	d := l.slot.DType
	switch v := v.(type) {
	case bool:
		if v {
			set(l.to, i, 1)
		}
		return nil
	case json.Number:
		if x, err := strconv.ParseInt(v.String(), 10, 64); err == nil && l.to.I != nil {
			l.to.I[i] = x
			if held := ir.Ints(d, []int64{x}); held.I[0] == x && (x >= 0 || d.IsSigned()) {
				return nil
			}
			break
		}
		if x, err := v.Float64(); err == nil && l.to.I == nil && isFinite(d, x) {
			set(l.to, i, x)
			return nil
		}
	default:
		return fmt.Errorf("input %q has %v: it must have numbers alone", l.slot.Name, v)
	}
	return fmt.Errorf("input %q has %v: it must have numbers of %s", l.slot.Name, v, d)
}

// isFinite reports whether a number, as JSON has it, is one in a type of floats or complex numbers.
func isFinite(d ir.DType, x float64) bool {
	a := ir.NewArray(d, 1)
	set(a, 0, x)
	a.Round()
	if a.C != nil {
		return !cmplx.IsInf(a.C[0])
	}
	return !math.IsInf(a.F[0], 0) && !math.IsNaN(a.F[0])
}

// set sets element i of an array.
func set(a *ir.Array, i int, x float64) {
	switch {
	case a.C != nil:
		a.C[i] = complex(x, 0)
	case a.F != nil:
		a.F[i] = x
	case i < len(a.I):
		a.I[i] = int64(x)
	}
}

// randomTensor draws elements: normal for floats, uniform in the bounds of the slot for integers, 0 or
// 1 without bounds.
func randomTensor(s native.Slot, r *rand.Rand) rlx.Tensor {
	if s.DType.IsPacked() {
		return native.Zeros(s.DType, s.Dims...)
	}
	a := ir.NewArray(s.DType, s.Dims...)
	for i := range a.Len() {
		switch {
		case s.DType.IsFloat() || s.DType.IsComplex():
			set(a, i, r.NormFloat64())
		case s.Checked && s.Hi > s.Lo:
			set(a, i, float64(s.Lo+r.IntN(s.Hi-s.Lo)))
		default:
			set(a, i, float64(r.IntN(2)))
		}
	}
	a.Round()
	return native.FromArray(a)
}

// seed is the value of a flag: the seed of random numbers, of 32 bits.
type seed uint32

// flag declares the flag, 1 by default.
func (s *seed) flag(f *flag.FlagSet, of string) {
	*s = 1
	f.Var(s, "seed", "`SEED` of "+of)
}

func (s *seed) String() string { return strconv.FormatUint(uint64(*s), 10) }

// Set reads the seed.
func (s *seed) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return fmt.Errorf("%q must be a whole number from 0 to %d", text, uint32(math.MaxUint32))
	}
	*s = seed(n)
	return nil
}

// setParams gives the parameters of a program their values: those of a file or, without one, initial
// values drawn on the CPU.
func setParams(ctx context.Context, p *rlx.Program, m *ir.Module, file string, seed uint32) error {
	if file != "" {
		values, err := readTensors(file)
		if err != nil {
			return err
		}
		return p.LoadWith(ctx, values, rlx.LoadOptions{AllowExtra: true})
	}
	for _, e := range m.Entries {
		values, err := rlx.InitialParams(ctx, e.Graph, nil, seed)
		if err != nil {
			return err
		}
		if err := p.SetAll(ctx, values); err != nil {
			return err
		}
	}
	return nil
}

// setPlanParams gives the parameters of plans their values: those of a file or, without one, random
// ones, as a plan has no rules for them.
func setPlanParams(ctx context.Context, p *rlx.Program, of []*plan.Plan, file string, seed uint64) error {
	if file != "" {
		values, err := readTensors(file)
		if err != nil {
			return err
		}
		return p.LoadWith(ctx, values, rlx.LoadOptions{AllowExtra: true})
	}
	values, r := map[string]rlx.Tensor{}, rand.New(rand.NewPCG(seed, 0))
	for _, one := range of {
		for _, e := range one.Entries {
			for _, i := range e.Reads {
				slot := one.Slots[i]
				if _, drawn := values[slot.Name]; !drawn {
					values[slot.Name] = randomTensor(native.Slot{Name: slot.Name, DType: slot.DType, Dims: slot.Dims}, r)
				}
			}
		}
	}
	return p.SetAll(ctx, values)
}

// summary describes a tensor of results.
type summary struct {
	DType string    `json:"dtype"`
	Dims  []int     `json:"dims"`
	Min   *float64  `json:"min,omitempty"` // nil for no elements and for complex numbers
	Max   *float64  `json:"max,omitempty"`
	Mean  *float64  `json:"mean,omitempty"`
	NaN   int       `json:"notFinite,omitempty"` // elements that are NaN or infinite
	Data  []float64 `json:"data,omitempty"`      // row by row; not with elements that are not finite
	array *ir.Array
}

// summarize returns the summary of a tensor, with its elements if data is set.
func summarize(x rlx.Tensor, data bool) (summary, error) {
	s := summary{DType: x.DType.String(), Dims: x.Dims}
	a, err := x.Array()
	if err != nil || x.DType.IsComplex() || a.Len() == 0 {
		return s, err
	}
	s.array = a
	least, most, sum, n := math.Inf(1), math.Inf(-1), 0., 0
	for i := range a.Len() {
		v := a.Float(i)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			s.NaN++
			continue
		}
		least, most, sum, n = min(least, v), max(most, v), sum+v, n+1
		if data {
			s.Data = append(s.Data, v)
		}
	}
	if s.NaN > 0 {
		s.Data = nil
	}
	if n > 0 {
		mean := sum / float64(n)
		s.Min, s.Max, s.Mean = &least, &most, &mean
	}
	return s, nil
}

// String returns "f32[2,3]  min -1  mean 0.5  max 2  [0.1 0.2 …]".
func (s summary) String() string {
	text := s.DType + strings.ReplaceAll(fmt.Sprint(s.Dims), " ", ",")
	if s.array == nil {
		return text
	}
	const shown = 8
	var first []string
	for i := range min(s.array.Len(), shown) {
		first = append(first, fmt.Sprintf("%.6g", s.array.Float(i)))
	}
	if s.array.Len() > shown {
		first = append(first, "…")
	}
	if s.Min != nil && s.array.Len() > 1 {
		text += fmt.Sprintf("  min %.4g  mean %.4g  max %.4g", *s.Min, *s.Mean, *s.Max)
	}
	if s.NaN > 0 {
		text += fmt.Sprintf("  %d not finite", s.NaN)
	}
	return text + "  [" + strings.Join(first, " ") + "]"
}
