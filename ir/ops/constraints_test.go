package ops_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
)

// TestEveryConstraintIsRefusedWithItsReason breaks what every constraint of every op
// speaks of, operands and attributes by their names: some of the changes must be
// refused, by an error of a kind that names the op, its operands and the place.
func TestEveryConstraintIsRefusedWithItsReason(t *testing.T) {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			refused := map[string]bool{}
			for _, r := range broken(d) {
				refused[r.of] = true
				checkRefusal(t, op, r.err)
			}
			for _, c := range d.Constraints {
				_, c, _ = strings.Cut(c, ": ")
				subjects := subjectsOf(d, c)
				if _, stated := onlyStated[c]; !stated && !slices.ContainsFunc(subjects, func(of string) bool { return refused[of] }) {
					t.Errorf("nothing is refused by %q, which speaks of %q", c, subjects)
				}
			}
		})
	}
}

// checkRefusal checks the error of an invalid node.
func checkRefusal(t *testing.T, op ir.Op, err error) {
	t.Helper()
	var e *ir.OpError
	if !errors.As(err, &e) {
		t.Errorf("no error of an op: %v", err)
		return
	}
	kinds := []error{ir.ErrShape, ir.ErrDType, ir.ErrAttr, ir.ErrGraph, ir.ErrSymbol}
	if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
		t.Errorf("an error of another kind: %v", err)
	}
	text := err.Error()
	if e.Op != op || !strings.Contains(text, string(op)+"(") || !strings.Contains(text, "broken_test.go:") || len(e.Err.Error()) < 10 {
		t.Errorf("the error does not say of which op, operands or place: %v", err)
	}
}

var word = regexp.MustCompile(`[\p{L}\d_]+`)

// subjectsOf returns the attributes that a constraint names, singular or plural, or
// where it names none the operands: all of them where it speaks of operands or types.
func subjectsOf(d *ir.Def, constraint string) []string {
	var names attrNames
	if d.NewAttrs != nil {
		d.NewAttrs().Visit(&names)
	}
	var operands []string
	for _, o := range d.Operands {
		operands = append(operands, strings.TrimSuffix(o, "..."))
	}
	var attrs, out []string
	for _, w := range append(word.FindAllString(constraint, -1), speaksOf[constraint]...) {
		switch w {
		case "operands", "operand", "type", "types", "matrices", "matrix", "vectors", "weights", "carries":
			out = append(append(out, "operands"), operands...)
		case "graph", "graphs":
			out = append(out, "graph")
		case "axes":
			out = append(out, operands...)
		}
		for _, name := range names {
			if w == name || w == name+"s" || w+"s" == name {
				attrs = append(attrs, name)
			}
		}
		if slices.Contains(operands, w) {
			out = append(out, w)
		}
	}
	if len(attrs) > 0 {
		return attrs
	}
	return out
}

// speaksOf are the subjects of constraints that do not name them.
var speaksOf = map[string][]string{
	"padding is smaller than the dilated window, which is no longer than the padded axis":                {"pad_lo"},
	"padding is shorter than the axis for reflect and no longer than it for wrap; edge needs an element": {"low"},
	"along a symbolic axis windows leave no remainder":                                                   {"x"},
	"along a symbolic axis the number of windows must come out as a polynomial.":                         {"strides"},
	"no spatial axis is longer than 2²⁰, before or after":                                                {"sizes"},
	"neither has parameters or states":                                                                   {"graph"},
	"the element type is signed, unsigned or float":                                                      {"dtype"},
	"the element type is signed, unsigned, float or complex":                                             {"dtype"},
	"the last axis has no symbolic size":                                                                 {"operands"},
	"they have no symbolic size":                                                                         {"operands"},
	"a mean is one of floats":                                                                            {"x"},
}

// onlyStated are constraints that are not conditions on operands or attributes.
var onlyStated = map[string]string{
	"with unique, no two in-bounds index tuples are equal":                              "a promise that is not checked",
	"the result has rank 0":                                                             "what comes out",
	"a label is a class or an ignored label; any other is an error when the graph runs": "TestLabelsOutOfRangeAreErrors runs it",
}
