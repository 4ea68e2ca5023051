package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpTile, func() []ir.Sample {
		return moved(
			movement{&ops.TileAttrs{Repeats: []int{}}, nil}, movement{&ops.TileAttrs{Repeats: []int{3}}, []int{5}}, movement{&ops.TileAttrs{Repeats: []int{2, 3}}, []int{67, 3}},
			movement{&ops.TileAttrs{Repeats: []int{1, 2}}, []int{2, 3}}, movement{&ops.TileAttrs{Repeats: []int{0, 2}}, []int{2, 3}})
	})
	add(ops.OpRepeat, func() []ir.Sample {
		return moved(movement{&ops.RepeatAttrs{Axis: 0, Repeats: 3}, []int{5}}, movement{&ops.RepeatAttrs{Axis: 1, Repeats: 2}, []int{67, 3}}, movement{&ops.RepeatAttrs{Axis: 0, Repeats: 0}, []int{2, 3}})
	})
	add(ops.OpRoll, func() []ir.Sample {
		return moved(movement{&ops.RollAttrs{Axis: 0, Shift: 2}, []int{5}}, movement{&ops.RollAttrs{Axis: 1, Shift: -1}, []int{67, 3}}, movement{&ops.RollAttrs{Axis: 0, Shift: 12}, []int{7}},
			movement{&ops.RollAttrs{Axis: 0, Shift: 1}, []int{0, 2}})
	})
	add(ops.OpPadMode, padModeSamples)
}

func padModeSamples() []ir.Sample {
	var list []movement
	for _, mode := range []string{ops.PadConstant, ops.PadEdge, ops.PadReflect, ops.PadWrap} {
		list = append(list,
			movement{&ops.PadModeAttrs{Low: []int{1}, High: []int{3}, Mode: mode, Value: 1.5}, []int{5}},
			movement{&ops.PadModeAttrs{Low: []int{2, 0}, High: []int{1, 2}, Mode: mode, Value: 0}, []int{4, 3}})
	}
	list = append(list, movement{&ops.PadModeAttrs{Low: []int{0, 1}, High: []int{0, 0}, Mode: ops.PadEdge, Value: 0}, []int{0, 3}})
	return moved(list...)
}
