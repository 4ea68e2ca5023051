package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpDFT, func() []ir.Sample {
		sample := func(name string, inverse bool, in ...*ir.Array) ir.Sample {
			return ir.Sample{Name: name, Attrs: &ops.DFTAttrs{Inverse: inverse}, In: in}
		}
		pair := func(d ir.DType, dims ...int) []*ir.Array {
			return []*ir.Array{draw(1, d, -1, 1, dims...), draw(2, d, -1, 1, dims...)}
		}
		return []ir.Sample{
			sample("one product", false, pair(ir.F32, 2, 7)...), sample("one element", true, pair(ir.F32, 1)...),
			sample("several products", false, pair(ir.F32, 2, 120)...), sample("inverse", true, pair(ir.F32, 72)...),
			sample("a large prime", false, pair(ir.F32, 37)...), sample("twice a large prime", true, pair(ir.F32, 82)...),
			sample("real", false, draw(3, ir.F32, -1, 1, 3, 10)), sample("real, several products", false, draw(3, ir.F32, -1, 1, 48)),
			sample("real, a large prime", true, draw(3, ir.F32, -1, 1, 41)), sample("no rows", false, draw(3, ir.F32, -1, 1, 0, 4)),
			sample("f64", false, pair(ir.F64, 45)...), sample("passes of kernels", false, pair(ir.F32, 2, 128)...),
		}
	})
}
