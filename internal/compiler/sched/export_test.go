package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// Families is the number of families.
const Families = Family(len(familyNames))

// TileSchedules returns the schedules of all tiles with a split-K factor.
func TileSchedules(parts int) []Schedule {
	var out []Schedule
	for _, t := range tiles {
		out = append(out, t.schedule(parts))
	}
	return out
}

// MmaSchedules returns the schedules of all warp-group MMA tiles of a target.
func MmaSchedules(parts int, caps loop.Caps) []Schedule {
	var out []Schedule
	for _, t := range mmaTilesFor(caps) {
		out = append(out, Schedule{Family: WarpGroups, N: t.columns, Stages: t.stages, Split: parts})
	}
	return out
}

// ForceAttendMma makes MMA attention use a tile of the given warp groups, columns, stages and
// resident workgroups, until undo is called.
func ForceAttendMma(groups, columns, stages, resident int) (undo func()) {
	pick := pickAttendMma
	pickAttendMma = func(attendKind, ir.DType, ir.Attend, int) attendMmaTile {
		return attendMmaTile{groups, columns, stages, resident}
	}
	return func() { pickAttendMma = pick }
}

// FragmentSchedules returns the schedules of all fragment tiles.
func FragmentSchedules(parts int) []Schedule {
	var out []Schedule
	for _, t := range fragmentTiles {
		out = append(out, t.schedule(parts))
	}
	return out
}

// ProductArea returns the rows and columns per workgroup of an m × n product for one thread,
// and the columns that it packs at once, at most most.
func ProductArea(m, n, shares, most int) (rows, columns, packed int) {
	a := areaOf(m, n, shares, most)
	return a.m, a.n, a.columns
}

// PipelinedSchedules returns the schedules of all pipelined tiles.
func PipelinedSchedules(parts int) []Schedule {
	var out []Schedule
	for _, t := range pipelinedTiles {
		out = append(out, t.schedule(parts))
	}
	return out
}
