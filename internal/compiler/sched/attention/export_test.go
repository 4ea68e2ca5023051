package attention

import "github.com/rlx-go/rlx/ir"

// ForceMma makes MMA attention use a tile of the given warp groups, columns, stages and
// resident workgroups, until undo is called.
func ForceMma(groups, columns, stages, resident int) (undo func()) {
	pick := pickMmaTile
	pickMmaTile = func(kernelKind, ir.DType, ir.Attend, int) mmaTile {
		return mmaTile{groups, columns, stages, resident}
	}
	return func() { pickMmaTile = pick }
}
