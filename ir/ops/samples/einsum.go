package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpEinsum, einsumSamples)
}

func einsumSamples() []ir.Sample {
	sample := func(equation string, shapes ...[]int) ir.Sample {
		s := ir.Sample{Name: equation, Attrs: &ops.EinsumAttrs{Equation: equation}}
		for i, dims := range shapes {
			s.In = append(s.In, draw(uint64(i), ir.F32, -1, 1, dims...))
		}
		return s
	}
	return []ir.Sample{
		sample("ij,jk->ik", []int{5, 3}, []int{3, 4}), sample("bij,bjk", []int{2, 3, 4}, []int{2, 4, 5}),
		sample("...ij,...jk->...ik", []int{2, 1, 3, 4}, []int{5, 4, 2}), sample("i,j->ji", []int{3}, []int{4}),
		sample("ij->", []int{5, 7}), sample("ii->i", []int{4, 4}), sample("ii", []int{3, 3}), sample("iij->j", []int{3, 3, 2}),
		sample("ij->ji", []int{67, 3}), sample("ij,jk,kl->il", []int{2, 3}, []int{3, 4}, []int{4, 2}),
		sample("i,i,i->i", []int{4}, []int{4}, []int{1}), sample("ij,k->i", []int{2, 3}, []int{4}), sample("i,i", []int{0}, []int{0}),
	}
}
