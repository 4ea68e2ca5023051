package autodiff_test

import (
	"sync"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// TestDerivativesOfEveryOpByTypeAndShape takes variants of the samples of every op, one
// of each element type and edge of shapes that it accepts: derivatives to the second
// order are those of differences, forward and reverse are adjoint, and vmap is a loop.
func TestDerivativesOfEveryOpByTypeAndShape(t *testing.T) {
	var mu sync.Mutex
	checked := map[string]int{}
	t.Run("ops", func(t *testing.T) { // returns when all ops are done
		for _, op := range ir.Ops() {
			d, _ := ir.Lookup(op)
			if d.Samples == nil {
				continue
			}
			t.Run(string(op), func(t *testing.T) {
				t.Parallel()
				for kind := range checkVariants(t, d) {
					mu.Lock()
					checked[kind]++
					mu.Unlock()
				}
			})
		}
	})
	for kind, least := range minChecked {
		if checked[kind] < least {
			t.Errorf("%s: only %d ops were checked", kind, checked[kind])
		}
	}
}

// checkVariants checks one variant of each kind, and returns the kinds that there are.
func checkVariants(t *testing.T, d *ir.Def) map[string]bool {
	t.Helper()
	done := map[string]bool{}
	for _, s := range d.Samples() {
		for _, v := range irtest.Variants(s, func(kind string) bool { return !done[kind] }) {
			if !v.Special && !done[v.Kind] && checkVariant(t, d, v) {
				done[v.Kind] = true
			}
		}
	}
	return done
}

// minChecked is a little less than how many ops have a variant of a kind: fewer mean
// that they are not found.
var minChecked = map[string]int{
	"f16": 235, "bf16": 235, "f32": 275, "f64": 265,
	"empty": 285, "size 1": 285, "size 37": 150, "rank 0": 165, "rank 5": 230,
}

// checkVariant reports whether the op accepts the variant and it is fit to be checked.
func checkVariant(t *testing.T, d *ir.Def, v irtest.Variant) bool {
	t.Helper()
	const most = 60
	if isComplex(v.Sample) || elements(v.Sample) > most {
		return false
	}
	g, _, err := irtest.SampleGraph(d.Op, v.Sample)
	if err != nil {
		return false
	}
	in := irtest.SampleInputs(v.Sample)
	if _, err := ir.Eval(g, in, ir.EvalOptions{Reference: true}); err != nil {
		return false
	}
	if d.NoBatch == "" && len(v.In) > 0 {
		checkVmap(t, g, in, map[string]int{"0": 0})
	}
	if d.NoGrad != "" || v.NoGrad != "" || len(floatPorts(g)) == 0 || !isFinite(t, g, in) {
		return true
	}
	if _, err := autodiff.JVP(g); err != nil {
		return true // with a reason that package ops asks for
	}
	order := 1
	if elements(v.Sample) <= 16 {
		order = 2
	}
	if err := gradcheck.Check(g, in, gradcheck.Options{Order: order, Tol: tolerance(v.Sample)}); err != nil {
		t.Errorf("%s, %s of %s: %v", d.Op, v.Kind, v.Name, err)
	}
	return true
}
