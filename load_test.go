package rlx_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// loadable returns a program with a matrix, a kernel of a convolution, a bias and a head.
func loadable(t *testing.T) *rlx.Program {
	t.Helper()
	g, err := ir.Build("loadable", func(b *ir.Builder) {
		sum := ops.ReduceSum(b, b.Param("h/0/weight", ir.F32, ir.Dims(2, 3)...))
		for _, v := range []ir.Value{b.Param("h/1/weight", ir.F32, ir.Dims(2, 2, 3, 4)...), b.Param("h/1/bias", ir.F32, ir.N(4)), b.Param("head", ir.F32, ir.N(1))} {
			sum = ops.Add(b, sum, ops.ReduceSum(b, v))
		}
		b.Output("y", sum)
	})
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, g)
}

// torchValues are values as PyTorch names and lays them out; the digits of an element are its indices.
func torchValues(t *testing.T) rlx.Inputs {
	t.Helper()
	linear, conv := make([]float32, 0, 6), make([]float32, 0, 48)
	for o := range 3 {
		for i := range 2 {
			linear = append(linear, float32(10*o+i))
		}
	}
	for o := range 4 {
		for i := range 3 {
			for h := range 2 {
				for w := range 2 {
					conv = append(conv, float32(1000*o+100*i+10*h+w))
				}
			}
		}
	}
	half, err := rlx.Of(ir.F16, []uint16{0x3c00, 0x4000, 0x4200, 0x4400})
	if err != nil {
		t.Fatal(err)
	}
	return rlx.Inputs{
		"layers.0.weight": rlx.Float32s(linear, 3, 2), "layers.1.weight": rlx.Float32s(conv, 4, 3, 2, 2),
		"layers.1.bias": half, "rotary.inv_freq": rlx.Float32(1), "layers.2.num_batches_tracked": rlx.Int64(3),
	}
}

// TestLoadWeightsOfPyTorch renames values, moves the axes of weights, casts a bias, keeps a head, and ignores that of the file and an extra value.
func TestLoadWeightsOfPyTorch(t *testing.T) {
	p := loadable(t)
	if err := p.Set(ctx, "head", rlx.Float32s([]float32{7})); err != nil {
		t.Fatal(err)
	}
	values := torchValues(t)
	values["head"] = rlx.Float32s([]float32{1, 2, 3}) // for other classes
	err := p.LoadWith(ctx, values, rlx.LoadOptions{
		Rename: strings.NewReplacer("layers.", "h/", ".", "/").Replace, OutIn: []string{"h/*/weight"},
		Missing: []string{"head"}, Extra: []string{"rotary", "head"}, Cast: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if values, err = p.Save(ctx); err != nil {
		t.Fatal(err)
	}
	linear, _ := values["h/0/weight"].Float32s()
	for at, x := range linear {
		if i, o := at/3, at%3; x != float32(10*o+i) {
			t.Errorf("element %d, %d of the matrix is %v", i, o, x)
		}
	}
	conv, _ := values["h/1/weight"].Float32s()
	for at, x := range conv {
		if h, w, i, o := at/24, at/12%2, at/4%3, at%4; x != float32(1000*o+100*i+10*h+w) {
			t.Errorf("element %d, %d, %d, %d of the kernel is %v", h, w, i, o, x)
		}
	}
	bias, _ := values["h/1/bias"].Float32s()
	head, _ := values["head"].Float32s()
	if !reflect.DeepEqual(bias, []float32{1, 2, 3, 4}) || head[0] != 7 {
		t.Errorf("the bias is %v, the head %v", bias, head)
	}
}

// TestLoadIntoATraining loads all but a head that is trained, which is a state of the step.
func TestLoadIntoATraining(t *testing.T) {
	trainer := must(session(t).Train(ctx, averagesGraph(t, ir.F32), rlx.Training{Seed: 5}))(t)
	before := params(t, trainer)
	err := trainer.Program().LoadWith(ctx, rlx.Inputs{"line.frozen": rlx.Float32s([]float32{2})}, rlx.LoadOptions{
		Rename: strings.NewReplacer("line.", "").Replace, Missing: []string{"w"},
	})
	if after := params(t, trainer); err != nil || after["frozen"][0] != 2 || !reflect.DeepEqual(after["w"], before["w"]) {
		t.Errorf("%v: the values are %v, before %v", err, after, before)
	}
}

func TestLoadReportsTheNearestNames(t *testing.T) {
	values := torchValues(t)
	delete(values, "layers.1.bias")
	for name, o := range map[string]rlx.LoadOptions{"strict": {}, "extra": {AllowExtra: true}} {
		var e *rlx.CheckpointError
		if err := loadable(t).LoadWith(ctx, values, o); !errors.As(err, &e) {
			t.Fatalf("%s: %v", name, err)
		}
		if e.Nearest["h/0/weight"] != "layers.0.weight" || e.Nearest["h/1/weight"] != "layers.1.weight" || !strings.Contains(e.Error(), `nearest to "h/0/weight": "layers.0.weight"`) {
			t.Errorf("%s: %v, nearest %q", name, e, e.Nearest)
		}
	}
}

func TestLoadOptionsRefused(t *testing.T) {
	rename := strings.NewReplacer("layers.", "h/", ".", "/").Replace
	for name, c := range map[string]struct {
		o    rlx.LoadOptions
		kind error
		say  string
	}{
		"one name":        {rlx.LoadOptions{Rename: func(string) string { return "head" }}, ir.ErrName, `"layers.0.weight" and "layers.1.bias"`},
		"missing pattern": {rlx.LoadOptions{Rename: rename, Missing: []string{"heads"}}, ir.ErrName, `Missing has "heads"`},
		"axes pattern":    {rlx.LoadOptions{Rename: rename, OutIn: []string{"g/*"}}, ir.ErrName, `OutIn has "g/*"`},
		"window pattern":  {rlx.LoadOptions{Rename: rename, InOut: []string{"g/*"}}, ir.ErrName, `InOut has "g/*"`},
		"no head":         {rlx.LoadOptions{Rename: rename, OutIn: []string{"h"}, Cast: true, AllowExtra: true}, ir.ErrName, `missing ["head"]`},
		"an extra":        {rlx.LoadOptions{Rename: rename, OutIn: []string{"h"}, Cast: true, AllowMissing: true}, ir.ErrName, `unknown ["rotary/inv_freq"]`},
		"another type":    {rlx.LoadOptions{Rename: rename, OutIn: []string{"h"}, AllowMissing: true, AllowExtra: true}, ir.ErrDType, "h/1/bias"},
		"another shape":   {rlx.LoadOptions{Rename: rename, Cast: true, AllowMissing: true, AllowExtra: true}, ir.ErrShape, "h/0/weight"},
		"a kept shape":    {rlx.LoadOptions{Rename: rename, Cast: true, Missing: []string{"*"}, AllowExtra: true}, ir.ErrShape, "cover it by Extra, too"},
	} {
		if err := loadable(t).LoadWith(ctx, torchValues(t), c.o); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want %v with %s", name, err, c.kind, c.say)
		}
	}
}

// TestLoadTransposedConvolutionsOfPyTorch has a transposed convolution of as many channels in as out, and a matrix: the digits of an
// element are its indices.
func TestLoadTransposedConvolutionsOfPyTorch(t *testing.T) {
	g, err := ir.Build("up", func(b *ir.Builder) {
		up, linear := b.Param("up/weight", ir.F32, ir.Dims(3, 2, 2)...), b.Param("linear/weight", ir.F32, ir.Dims(2, 2)...)
		b.Output("y", ops.Add(b, ops.ReduceSum(b, up), ops.ReduceSum(b, linear)))
	})
	if err != nil {
		t.Fatal(err)
	}
	p := compile(t, g)
	err = p.LoadWith(ctx, rlx.Inputs{
		"up/weight": rlx.Float32s([]float32{0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112}, 2, 2, 3), "linear/weight": rlx.Float32s([]float32{0, 1, 10, 11}, 2, 2),
	}, rlx.LoadOptions{OutIn: []string{"*/weight"}, InOut: []string{"up"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]float32{"up/weight": {0, 10, 100, 110, 1, 11, 101, 111, 2, 12, 102, 112}, "linear/weight": {0, 10, 1, 11}} {
		x, err := p.Get(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Float32s(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %v, %v; want %v", name, got, err, want)
		}
	}
}
