package ops_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// TestDefsComplete walks all definitions: nothing may be missing in silence.
func TestDefsComplete(t *testing.T) {
	for _, op := range ir.Ops() {
		if op == ir.OpPort || op == ir.OpConstant {
			continue // made by the builder itself
		}
		d, _ := ir.Lookup(op)
		t.Run(string(op), func(t *testing.T) {
			for _, fault := range faults(d) {
				t.Error(fault)
			}
		})
	}
}

// faults lists what a definition lacks or has too much of.
func faults(d *ir.Def) []string {
	var out []string
	check := func(ok bool, fault string) {
		if !ok {
			out = append(out, fault)
		}
	}
	primitive := d.Body == nil
	forms := count(d.Scalar != nil, d.Lower != nil && !d.LowersBody(), d.Body != nil)
	check(forms == 1, "not exactly one of Scalar, Lower and Body")
	check(d.Infer != nil, "no Infer")
	if primitive {
		check(d.Eval != nil, "a primitive without Eval")
		check((d.JVP == nil) != (d.NoGrad == ""), "not exactly one of JVP and NoGrad")
		check((d.Transpose == nil) != (d.NoTranspose == ""), "not exactly one of Transpose and NoTranspose")
		check((d.Batch == nil) != (d.NoBatch == ""), "not exactly one of Batch and NoBatch")
	} else {
		check(d.JVP == nil || d.NoGrad == "", "both JVP and NoGrad")
		check(d.Transpose == nil || d.NoTranspose == "", "both Transpose and NoTranspose")
		check(d.Batch == nil || d.NoBatch == "", "both Batch and NoBatch")
	}
	check(d.Doc != "" && strings.HasSuffix(d.Doc, "."), "Doc is no sentence")
	check(len(d.Constraints) > 0, "no Constraints")
	for i, c := range d.Constraints {
		check(strings.HasPrefix(c, "C"+string(rune('1'+i))+": "), "constraint without its number: "+c)
	}
	for i, name := range d.Operands {
		check(name != "" && (!strings.HasSuffix(name, "...") || i == len(d.Operands)-1), "bad operand name: "+name)
	}
	check(d.Optional >= 0 && d.Optional <= len(d.Operands), "more optional operands than operands")
	check(d.Samples != nil && len(d.Samples()) > 0, "no Samples")
	return out
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

// TestSamplesAreValid infers and evaluates every sample: it has a name, and the
// types of the results are those that Infer returns.
func TestSamplesAreValid(t *testing.T) {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		for _, s := range d.Samples() {
			name := string(op) + "/" + s.Name
			if s.Name == "" {
				t.Errorf("%s has a sample without a name", op)
			}
			g, n, err := irtest.SampleGraph(op, s)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			out, err := ir.Eval(g, irtest.SampleInputs(s), ir.EvalOptions{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for i, want := range n.Types() {
				if got := out[i].Type(); !got.Equal(want) {
					t.Errorf("%s: result %d is %s, inferred %s", name, i, got, want)
				}
			}
		}
	}
}

// TestAttributesSurviveACopy checks that Visit shows every field of every
// attribute struct: a copy made through it prints, and infers, the same.
func TestAttributesSurviveACopy(t *testing.T) {
	forEachSample(t, func(t *testing.T, d *ir.Def, s ir.Sample) {
		if s.Attrs == nil {
			return
		}
		_, n, err := irtest.SampleGraph(d.Op, s)
		if err != nil {
			t.Fatal(err)
		}
		c := s
		c.Attrs = ir.CopyAttrs(n)
		if got, want := ir.FormatAttrs(c.Attrs), ir.FormatAttrs(s.Attrs); got != want {
			t.Errorf("the copy is %s, not %s", got, want)
		}
		_, m, err := irtest.SampleGraph(d.Op, c)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range n.Types() {
			if !m.Types()[i].Equal(want) {
				t.Errorf("the copy has result %s, not %s", m.Types()[i], want)
			}
		}
	})
}
