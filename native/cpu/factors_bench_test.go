package cpu_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// factorisations are the jobs of layerJob that factor matrices with a dominant diagonal.
var factorisations = map[string]func(b *ir.Builder, x ir.Value) []ir.Value{
	"cholesky": cholesky, "lu": lu, "solve": solve, "qr": qr, "eigh": eigh, "svd": svd, "inverse": inverse,
	"triangular": func(b *ir.Builder, x ir.Value) []ir.Value {
		return []ir.Value{ops.TriangularSolve(b, x, x, ops.TriangularAttrs{LeftSide: true, Lower: true})}
	},
	"eigenvalues": func(b *ir.Builder, x ir.Value) []ir.Value { return eigh(b, x)[:1] },
}

// factorJobs are factorisations of one matrix of 128 to 4096 rows, and of many small ones, in f32 and f64.
var factorJobs = func() (list []job) {
	for _, op := range []string{"cholesky", "lu", "solve", "triangular", "qr", "eigenvalues", "eigh", "svd"} {
		for _, of := range []string{"1 of 128", "1 of 512", "1 of 1024", "1 of 2048", "1 of 4096", "64 of 32", "4096 of 8"} {
			for _, d := range []string{"", "f64 "} {
				list = append(list, namedLayers(fmt.Sprint(d, op, " ", of))...)
			}
		}
	}
	return list
}()

// BenchmarkFactors runs factorisations, as [BenchmarkLayers].
func BenchmarkFactors(b *testing.B) { benchmarkPairs(b, factorJobs, "peers/layers.py") }
