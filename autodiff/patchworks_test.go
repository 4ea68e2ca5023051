package autodiff_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir/irtest"
)

// FuzzGradientsOfPatchworks compares the derivatives of random patchworks, which together
// hold every op, with differences. What it finds is kept in testdata/fuzz. It makes some 50
// executions a second: each differentiates a graph of several ops and evaluates it, and its
// derivatives, at very many points.
func FuzzGradientsOfPatchworks(f *testing.F) {
	for n := range irtest.Patchworks(nil) {
		f.Add(n)
	}
	for _, n := range irtest.Corpus {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n uint64) {
		p := irtest.RandomPatchwork(n, nil)
		o := gradcheck.Options{Wrt: p.Wrt, Tol: max(1e-6, p.Tol)}
		err := gradcheck.Check(p.Graph, p.Inputs, o)
		if err != nil {
			// Where a derivative has a kink near by, the difference of a smaller step is
			// nearer, if less exact.
			o.Eps, o.Tol = 1e-6, max(1e-5, p.Tol)
			err = gradcheck.Check(p.Graph, p.Inputs, o)
		}
		if err != nil {
			t.Error(err)
		}
	})
}
