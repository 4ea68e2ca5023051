package ops_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
)

// TestRefusalsReadWell lists in testdata/refusals.txt what the shape rules of ops say of operands
// of another element type or rank, and of attributes out of their domain: one sample of each op,
// one operand or attribute changed at a time. Each sentence is listed once, for the first op that
// returns it, with any numbers and types in it. The error of an attribute names it.
func TestRefusalsReadWell(t *testing.T) {
	var lines []string
	seen := map[string]bool{}
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		s, ok := usualSample(d)
		if !ok {
			continue
		}
		add := func(what string, err error) {
			if err == nil || seen[sentence(err)] {
				return
			}
			seen[sentence(err)] = true
			lines = append(lines, fmt.Sprintf("%s, %s: %s", op, what, reasonOf(err)))
		}
		types := sampleTypes(s)
		for i := range types {
			for _, wrong := range wrongTypes(types[i]) {
				in := slices.Clone(types)
				in[i] = wrong
				add(fmt.Sprintf("operand %d %s", i, wrong), refused(op, s.Attrs, s.Subs, in))
			}
		}
		for _, c := range wrongAttrsOf(d, s.Attrs) {
			err := refused(op, c.attrs, s.Subs, types)
			add(c.what, err)
			if err != nil && !names(reasonOf(err), c.name) {
				t.Errorf("%s, %s: the error does not name %s: %v", op, c.what, c.name, err)
			}
		}
	}
	const file = "testdata/refusals.txt"
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Split(string(want), "\n")
	for _, line := range lines {
		if !slices.Contains(listed, line) {
			t.Errorf("not in %s (-update writes it): %s", file, line)
		}
	}
	for _, line := range listed {
		if line != "" && !slices.Contains(lines, line) {
			t.Errorf("in %s, and not said any more: %s", file, line)
		}
	}
}

// numbersAndTypes are what a sentence may have in it.
var numbersAndTypes = regexp.MustCompile(`-?\d+(\.\d+)?|NaN|\b(bool|[a-z]+\d+)(\[[^\]]*\])?|\[[^\]]*\]|"[^"]*"`)

func sentence(err error) string { return numbersAndTypes.ReplaceAllString(reasonOf(err), "_") }

// names reports whether a sentence names an attribute: in full, as the first word of a name
// of two, or, of a list of axes, as one of them.
func names(reason, attribute string) bool {
	first, _, _ := strings.Cut(attribute, "_")
	for _, word := range []string{attribute, first, strings.TrimSuffix(attribute, "s"), "axis"} {
		if strings.Contains(reason, word) {
			return true
		}
	}
	return false
}

// usualSample returns the first sample of an op whose operands have axes and elements.
func usualSample(d *ir.Def) (ir.Sample, bool) {
	samples := d.Samples()
	i := slices.IndexFunc(samples, func(s ir.Sample) bool {
		return !slices.ContainsFunc(s.In, func(a *ir.Array) bool { return a.Len() == 0 }) && (len(s.In) == 0 || len(s.In[0].Dims) > 0)
	})
	if i < 0 {
		return ir.Sample{}, false
	}
	return samples[i], true
}

func sampleTypes(s ir.Sample) []ir.Type {
	var types []ir.Type
	for _, a := range s.In {
		types = append(types, a.Type())
	}
	return types
}

// wrongTypes returns types that differ in class, or in rank.
func wrongTypes(t ir.Type) []ir.Type {
	var out []ir.Type
	for _, d := range []ir.DType{ir.Bool, ir.I32, ir.F32, ir.C64} {
		if d != t.DType {
			out = append(out, ir.Type{DType: d, Shape: t.Shape})
		}
	}
	out = append(out, ir.Type{DType: t.DType, Shape: append(slices.Clone(t.Shape), ir.N(2))})
	if len(t.Shape) > 0 {
		out = append(out, ir.Type{DType: t.DType, Shape: t.Shape[1:]})
	}
	return out
}

// refused returns the op's error for operands of some types.
func refused(op ir.Op, attrs ir.Attrs, subs []*ir.Graph, types []ir.Type) error {
	_, err := ir.Build("refused", func(b *ir.Builder) {
		var in []ir.Value
		for i, t := range types {
			in = append(in, b.Port(ir.InputPort, fmt.Sprintf("in%d", i), t))
		}
		for i, v := range b.AddNode(op, attrs, subs, in...) {
			b.Output(fmt.Sprint(i), v)
		}
	})
	return err
}

// wrongAttrs is attributes, one of them out of its domain.
type wrongAttrs struct {
	name, what string
	attrs      ir.Attrs
}

// wrongAttrsOf returns attributes with each of their fields changed.
func wrongAttrsOf(d *ir.Def, given ir.Attrs) []wrongAttrs {
	if given == nil || d.NewAttrs == nil {
		return nil
	}
	var out []wrongAttrs
	for _, wrong := range []wrongValue{{-1, "nonsense", ir.Bool}, {1000, "", ir.C64}, {math.NaN(), "", ir.F32}} {
		all := &reader{}
		given.Visit(all)
		for i, name := range all.names {
			made := d.NewAttrs()
			made.Visit(&writer{values: all.values, change: i, wrong: wrong})
			after := &reader{}
			made.Visit(after)
			out = append(out, wrongAttrs{name, fmt.Sprintf("%s %v", name, after.values[i]), made})
		}
	}
	return out
}

// reader notes the fields it is shown, writer sets them, but for one that gets a wrong value.
type reader struct {
	names  []string
	values []any
}

type wrongValue struct {
	number float64
	text   string
	dtype  ir.DType
}

type writer struct {
	values     []any
	at, change int
	wrong      wrongValue
}

func seeAttr[T any](r *reader, name string, p *T) {
	r.names, r.values = append(r.names, name), append(r.values, *p)
}

func give[T any](w *writer, p *T, wrong func(T) T) {
	*p = w.values[w.at].(T)
	if w.at == w.change {
		*p = wrong(*p)
	}
	w.at++
}

func (r *reader) Int(name string, p *int)        { seeAttr(r, name, p) }
func (r *reader) Ints(name string, p *[]int)     { seeAttr(r, name, p) }
func (r *reader) Float(name string, p *float64)  { seeAttr(r, name, p) }
func (r *reader) Bool(name string, p *bool)      { seeAttr(r, name, p) }
func (r *reader) Text(name string, p *string)    { seeAttr(r, name, p) }
func (r *reader) DType(name string, p *ir.DType) { seeAttr(r, name, p) }
func (r *reader) Dims(name string, p *[]ir.Dim)  { seeAttr(r, name, p) }

func (w *writer) Int(_ string, p *int) {
	give(w, p, func(n int) int {
		if math.IsNaN(w.wrong.number) {
			return n
		}
		return int(w.wrong.number)
	})
}

func (w *writer) Ints(_ string, p *[]int) {
	give(w, p, func(list []int) []int {
		if math.IsNaN(w.wrong.number) || len(list) == 0 {
			return append(slices.Clone(list), 1)
		}
		return append([]int{int(w.wrong.number)}, list[1:]...)
	})
}

func (w *writer) Float(_ string, p *float64) {
	give(w, p, func(float64) float64 { return w.wrong.number })
}
func (w *writer) Bool(_ string, p *bool) { give(w, p, func(v bool) bool { return v }) }
func (w *writer) Text(_ string, p *string) {
	give(w, p, func(string) string { return w.wrong.text })
}

func (w *writer) DType(_ string, p *ir.DType) {
	give(w, p, func(ir.DType) ir.DType { return w.wrong.dtype })
}

func (w *writer) Dims(_ string, p *[]ir.Dim) {
	give(w, p, func(list []ir.Dim) []ir.Dim { return append(slices.Clone(list), ir.N(1)) })
}
