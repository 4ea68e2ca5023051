package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// Families is how many families there are.
const Families = Family(len(familyNames))

// TileSchedules are those of all tiles, with sums cut into so many parts.
func TileSchedules(parts int) []Schedule {
	var out []Schedule
	for _, t := range tiles {
		out = append(out, t.schedule(parts))
	}
	return out
}

// MmaSchedules are those of all tiles of multiply-adds on a target.
func MmaSchedules(parts int, caps loop.Caps) []Schedule {
	var out []Schedule
	for _, t := range mmaTilesOf(caps) {
		out = append(out, Schedule{Family: WarpGroups, N: t.columns, Stages: t.stages, Split: parts})
	}
	return out
}

// ForceAttendMma makes attention by multiply-adds use a tile of so many warp groups,
// columns and stages, of which so many workgroups are resident, until the returned
// function is called.
func ForceAttendMma(groups, columns, stages, resident int) (undo func()) {
	pick := pickAttendMma
	pickAttendMma = func(attendKind, ir.DType, ir.Attend, int) attendMmaTile {
		return attendMmaTile{groups, columns, stages, resident}
	}
	return func() { pickAttendMma = pick }
}

// FragmentSchedules are those of all tiles of fragments.
func FragmentSchedules(parts int) []Schedule {
	var out []Schedule
	for _, t := range fragmentTiles {
		out = append(out, t.schedule(parts))
	}
	return out
}

// ProductArea returns how many rows and columns of a product of m × n one of some
// workgroups has where nothing knows of threads, and how many columns of these are
// packed at once, of at most some.
func ProductArea(m, n, shares, most int) (rows, columns, packed int) {
	a := areaOf(m, n, shares, most)
	return a.m, a.n, a.columns
}

// PipelinedSchedules are those of all tiles whose operands are copied.
func PipelinedSchedules(parts int) []Schedule {
	var out []Schedule
	for _, t := range pipelinedTiles {
		out = append(out, t.schedule(parts))
	}
	return out
}
