package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	x := func(dims ...int) *ir.Array { return draw(uint64(7+len(dims)), ir.F32, -1, 1, dims...) }
	add(ops.OpSTFT, func() []ir.Sample {
		return []ir.Sample{
			{Name: "centred", Attrs: &ops.FrameAttrs{Hop: 3, Center: true}, In: []*ir.Array{x(2, 20), x(8)}},
			{Name: "whole frames", Attrs: &ops.FrameAttrs{Hop: 5, Center: false}, In: []*ir.Array{x(19), x(7)}},
		}
	})
	add(ops.OpISTFT, func() []ir.Sample {
		positive := func(n int) *ir.Array { return draw(3, ir.F32, 0.5, 1.5, n) }
		return []ir.Sample{
			{Name: "centred", Attrs: &ops.UnframeAttrs{FrameAttrs: ops.FrameAttrs{Hop: 3, Center: true}, Length: 13}, In: []*ir.Array{x(2, 5, 5), x(2, 5, 5), positive(8)}},
			{Name: "whole frames", Attrs: &ops.UnframeAttrs{FrameAttrs: ops.FrameAttrs{Hop: 2, Center: false}, Length: 0}, In: []*ir.Array{x(3, 4), x(3, 4), positive(7)}},
		}
	})
	add(ops.OpLogMel, func() []ir.Sample {
		return []ir.Sample{{
			Name: "two rows", Attrs: &ops.LogMelAttrs{FrameAttrs: ops.FrameAttrs{Hop: 3, Center: true}, Floor: 1e-10}, Tol: 1e-4,
			In: []*ir.Array{x(2, 20), x(8), draw(3, ir.F32, 0.25, 1, 3, 5)},
		}}
	})
	add(ops.OpWelch, func() []ir.Sample {
		return []ir.Sample{{Name: "two rows", Attrs: &ops.WelchAttrs{Hop: 3, Rate: 2}, In: []*ir.Array{x(2, 20), x(8)}}, {Name: "odd", Attrs: &ops.WelchAttrs{Hop: 5, Rate: 1}, In: []*ir.Array{x(12), x(7)}}}
	})
	add(ops.OpWindow, byAttrs(
		&ops.WindowAttrs{Kind: "hann", Length: 9, DType: ir.F32}, &ops.WindowAttrs{Kind: "kaiser", Length: 8, Beta: 8.6, Symmetric: true, DType: ir.F64},
		&ops.WindowAttrs{Kind: "bartlett", Length: 5, DType: ir.F32}, &ops.WindowAttrs{Kind: "nuttall", Length: 1, DType: ir.F32}, &ops.WindowAttrs{Kind: "boxcar", DType: ir.F32}))
	add(ops.OpMelBank, byAttrs(
		&ops.MelBankAttrs{Filters: 4, Length: 64, Rate: 8000, High: 4000, Area: true, DType: ir.F32},
		&ops.MelBankAttrs{Filters: 3, Length: 32, Rate: 16000, Low: 100, High: 7000, HTK: true, DType: ir.F64}))
}
