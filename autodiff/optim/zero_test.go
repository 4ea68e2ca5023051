package optim_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// hyperparameters are the structs whose numeric fields have a default in their comment.
var hyperparameters = map[string]any{
	"Adam": optim.Adam{}, "AdamW": optim.AdamW{}, "MARS": optim.MARS{}, "Adagrad": optim.Adagrad{},
	"RMSProp": optim.RMSProp{}, "Adadelta": optim.Adadelta{}, "NAdam": optim.NAdam{}, "Lion": optim.Lion{},
	"Adafactor": optim.Adafactor{}, "Muon": optim.Muon{}, "SGD": optim.SGD{}, "SOAP": optim.SOAP{},
	"LARS": optim.LARS{}, "Adan": optim.Adan{}, "AdEMAMix": optim.AdEMAMix{}, "QHAdamW": optim.QHAdamW{}, "Prodigy": optim.Prodigy{},
	"Kron": optim.Kron{}, "LBFGS": optim.LBFGS{}, "Stiefel": optim.Stiefel{}, "Sophia": optim.Sophia{}, "LossScale": optim.LossScale{},
}

// effective are structs in which a field has an effect that it has not with all others at zero.
var effective = map[string]any{"SGD.Dampening": optim.SGD{Momentum: 0.9}}

// textWith returns the text of a step with a struct of hyperparameters.
func textWith(t *testing.T, h any) string {
	t.Helper()
	if s, ok := h.(optim.LossScale); ok {
		return stepText(t, optim.SGD{}, optim.Options{Scale: &s})
	}
	return stepText(t, h.(optim.Optimizer), optim.Options{})
}

// byDefault finds the default in the comment of a field; "for none" is a default of zero.
var byDefault = regexp.MustCompile(`([-\d.e]+) (by default|for none)`)

// TestZeroFieldsAreTheDefaultsOfTheirComments builds a step with each numeric field of an optimizer
// at zero and at the default that its comment states: the two graphs are equal.
func TestZeroFieldsAreTheDefaultsOfTheirComments(t *testing.T) {
	for name, fields := range documentedFields(t) {
		plain := hyperparameters[name]
		if plain == nil {
			t.Errorf("%s has documented defaults but is not tested", name)
			continue
		}
		zero := textWith(t, plain)
		for field, comment := range fields {
			plain, zero := plain, zero
			if needed := effective[name+"."+field]; needed != nil {
				plain, zero = needed, textWith(t, needed)
			}
			m := byDefault.FindStringSubmatch(comment)
			if m == nil {
				t.Errorf("%s.%s: the comment %q states no default", name, field, comment)
				continue
			}
			value, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatalf("%s.%s: %v", name, field, err)
			}
			if got := textWith(t, with(plain, field, value)); got != zero {
				t.Errorf("%s.%s: 0 and the documented default %v give different steps", name, field, value)
			}
			if got := textWith(t, with(plain, field, other(value))); got == zero {
				t.Errorf("%s.%s: %v changes nothing", name, field, other(value))
			}
		}
	}
}

// other returns a value of the same domain as a default, but not equal to it.
func other(value float64) float64 {
	if value == math.Trunc(value) && value > 1 {
		return 2 * value
	}
	if value == 0 {
		return 0.5
	}
	return value / 2
}

// documentedFields returns the numeric fields of the package's exported structs with their
// comments, for structs in which at least one comment states a default.
func documentedFields(t *testing.T) map[string]map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]string{}
	collect := func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Name.IsExported() {
			return true
		}
		s, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		fields, stated := map[string]string{}, false
		for _, f := range s.Fields.List {
			if kind, ok := f.Type.(*ast.Ident); !ok || kind.Name != "float64" && kind.Name != "int" || len(f.Names) == 0 {
				continue
			}
			comment := strings.TrimSpace(f.Comment.Text())
			stated = stated || byDefault.MatchString(comment)
			fields[f.Names[0].Name] = comment
		}
		if stated {
			out[spec.Name.Name] = fields
		}
		return true
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, collect)
	}
	return out
}

// with returns a copy of a struct with one field set.
func with(of any, field string, value float64) any {
	v := reflect.New(reflect.TypeOf(of)).Elem()
	v.Set(reflect.ValueOf(of))
	f := v.FieldByName(field)
	if f.Kind() == reflect.Int {
		f.SetInt(int64(math.Ceil(value)))
	} else {
		f.SetFloat(value)
	}
	return v.Interface()
}

// stepText returns the text of a training step of a small network. Sophia's h is not updated by a
// step, and its graph of the curvature follows.
func stepText(t *testing.T, opt optim.Optimizer, o optim.Options) string {
	t.Helper()
	g := zeroLoss(t)
	step, err := optim.Step(g, "loss", opt, o)
	if err != nil {
		t.Fatalf("%T %+v: %v", opt, opt, err)
	}
	text := step.String()
	if s, ok := opt.(optim.Sophia); ok {
		c, err := s.Curvature(g, "loss", 1, optim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text += c.String()
	}
	return text
}

// zeroLoss is a loss with a matrix, a vector and a scalar.
func zeroLoss(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("net", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(4), ir.N(3))
		y := ops.MatMul(b, x, b.Param("w", ir.F32, ir.N(3), ir.N(2)))
		y = ops.Mul(b, ops.Add(b, y, b.Param("b", ir.F32, ir.N(2))), b.Param("s", ir.F32))
		b.Output("loss", ops.Mean(b, ops.Mul(b, y, y)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestZeroOptionsAreTheDefaults compares options at zero with the values that their comments state.
func TestZeroOptionsAreTheDefaults(t *testing.T) {
	all := func(string) bool { return true }
	zero := func(o optim.Options) string { return stepText(t, optim.Adam{}, o) }
	plain, group := zero(optim.Options{}), zero(optim.Options{Groups: []optim.Group{{Match: all}}})
	for name, same := range map[string][2]string{
		"Accumulate":      {plain, zero(optim.Options{Accumulate: 1})},
		"Group":           {plain, group},
		"Group.Rate":      {group, zero(optim.Options{Groups: []optim.Group{{Match: all, Rate: 1}}})},
		"Group.Optimizer": {group, zero(optim.Options{Groups: []optim.Group{{Match: all, Optimizer: optim.Adam{}}}})},
		"Scale":           {zero(optim.Options{Scale: &optim.LossScale{}}), zero(optim.Options{Scale: &optim.LossScale{Initial: 65536, Interval: 2000}})},
	} {
		if same[0] != same[1] {
			t.Errorf("%s: 0 and the documented default give different steps", name)
		}
	}
}

// TestHyperparametersOutsideTheirDomain: the error names the owner, the field, the value and the
// domain.
func TestHyperparametersOutsideTheirDomain(t *testing.T) {
	schedule := func(s optim.Schedule) optim.Options { return optim.Options{Schedule: s} }
	for want, of := range map[string]struct {
		opt optim.Optimizer
		o   optim.Options
	}{
		"adam: Beta1 is 2; it must be between 0 and 1":                   {optim.Adam{Beta1: 2}, optim.Options{}},
		"adam: Eps is -1; it must be positive":                           {optim.Adam{Eps: -1}, optim.Options{}},
		"adam: Beta2 is NaN":                                             {optim.Adam{Beta2: math.NaN()}, optim.Options{}},
		"sgd: Momentum is 1; it must be 0 or greater":                    {optim.SGD{Momentum: 1}, optim.Options{}},
		"sgd: Momentum is 0; with Nesterov it must be positive":          {optim.SGD{Nesterov: true}, optim.Options{}},
		"adafactor: Decay is 1; it must be negative":                     {optim.Adafactor{Decay: 1}, optim.Options{}},
		"step: Accumulate is -2; it must be 0 or greater, less than 2³¹": {optim.Adam{}, optim.Options{Accumulate: -2}},
		"step: ClipNorm is -1; it must be positive":                      {optim.Adam{}, optim.Options{ClipNorm: -1}},
		"step: ClipValue is -1; it must be positive":                     {optim.Adam{}, optim.Options{ClipValue: -1}},
		"step: Average is 1; it must be between 0 and 1":                 {optim.Adam{}, optim.Options{Average: 1}},
		"loss scale: Interval is -1; it must be 0 or greater":            {optim.Adam{}, optim.Options{Scale: &optim.LossScale{Interval: -1}}},
		"loss scale: Initial is 3; it must be a power of two":            {optim.Adam{}, optim.Options{Scale: &optim.LossScale{Initial: 3}}},
		"schedule: steps is 0; it must be 1 or greater":                  {optim.Adam{}, schedule(optim.Cosine(1, 0, 0))},
		"schedule: factor is 0; it must be positive":                     {optim.Adam{}, schedule(optim.Exponential(1, 0))},
		"one cycle: warmupFraction is 0":                                 {optim.Adam{}, schedule(optim.OneCycle(1, 10, 0))},
		"cosine with restarts: growth is 0; it must be 1 or":             {optim.Adam{}, schedule(optim.CosineRestarts(1, 0, 10, 0))},
		"no optimizer given":                                             {nil, optim.Options{}},
		"group 0 has no Match":                                           {optim.Adam{}, optim.Options{Groups: []optim.Group{{}}}},
	} {
		if _, err := optim.Step(zeroLoss(t), "loss", of.opt, of.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}

// TestAccumulateBeyondI32: the number of steps is counted in i32.
func TestAccumulateBeyondI32(t *testing.T) {
	if n := math.MaxInt; n > math.MaxInt32 {
		const want = "step: Accumulate is 9.223372036854776e+18; it must be 0 or greater, less than 2³¹"
		if _, err := optim.Step(zeroLoss(t), "loss", optim.Adam{}, optim.Options{Accumulate: n}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}
