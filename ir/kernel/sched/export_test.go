package sched

import "github.com/rlx-go/rlx/ir"

// TileSchedules are those of all tiles, with sums cut into so many parts.
func TileSchedules(parts int) []Schedule {
	var out []Schedule
	for _, t := range tiles {
		out = append(out, t.schedule(parts))
	}
	return out
}

// MmaSchedules are those of all tiles of multiply-adds.
func MmaSchedules(parts int) []Schedule {
	var out []Schedule
	for _, t := range mmaTiles {
		out = append(out, Schedule{Family: WarpGroups, N: t.columns, Stages: t.stages, Split: parts})
	}
	return out
}

// ForceAttendMma makes attention by multiply-adds use a tile of so many warp groups,
// columns and stages, of which so many workgroups are resident, until the returned
// function is called.
func ForceAttendMma(groups, columns, stages, resident int) (undo func()) {
	pick := pickAttendMma
	pickAttendMma = func(attendKind, ir.DType, int) attendMmaTile { return attendMmaTile{groups, columns, stages, resident} }
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
