package matmul

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir/loop"
)

// TileSchedules returns the schedules of all tiles with a split-K factor.
func TileSchedules(parts int) []emit.Schedule { return schedulesOf(tiles, parts) }

// RegisterSchedules returns the schedules of tiles of registers: with 8×8 results of a thread, and 4×4.
func RegisterSchedules(parts int) []emit.Schedule {
	return schedulesOf([]tile{registerTiles[0], registerTiles[2]}, parts)
}

// FragmentSchedules returns the schedules of all fragment tiles.
func FragmentSchedules(parts int) []emit.Schedule { return schedulesOf(fragmentTiles, parts) }

// PipelinedSchedules returns the schedules of all pipelined tiles.
func PipelinedSchedules(parts int) []emit.Schedule { return schedulesOf(pipelinedTiles, parts) }

func schedulesOf(tiles []tile, parts int) []emit.Schedule {
	var out []emit.Schedule
	for _, t := range tiles {
		out = append(out, t.schedule(parts))
	}
	return out
}

// MmaSchedules returns the schedules of the MMA tiles of a target of which a multiprocessor holds one.
func MmaSchedules(parts int, caps loop.Caps) []emit.Schedule {
	return mmaSchedules(parts, caps, func(t mmaTile) bool { return t.resident == 1 })
}

// ShortMmaSchedules returns the schedules of those of which it holds two, for short products.
func ShortMmaSchedules(caps loop.Caps) []emit.Schedule {
	return mmaSchedules(1, caps, func(t mmaTile) bool { return t.resident == 2 && !t.overlay })
}

// OverlaySchedules returns the schedules of those whose results pass through the memory of the stages.
func OverlaySchedules(caps loop.Caps) []emit.Schedule {
	return mmaSchedules(1, caps, func(t mmaTile) bool { return t.overlay })
}

func mmaSchedules(parts int, caps loop.Caps, of func(t mmaTile) bool) (out []emit.Schedule) {
	for _, t := range mmaTilesFor(caps) {
		if of(t) {
			out = append(out, emit.Schedule{Family: emit.WarpGroups, N: t.columns, Stages: t.stages, Split: parts})
		}
	}
	return out
}

// WithSmallImages lets operands of any size be copied in im2col mode until the test ends.
func WithSmallImages(t *testing.T) {
	before := minIm2col
	minIm2col = 0
	t.Cleanup(func() { minIm2col = before })
}

// WithFewRows lets products of any number of rows keep their columns' operand in shared memory until the test ends.
func WithFewRows(t *testing.T) {
	before := minStationaryTiles
	minStationaryTiles = 0
	t.Cleanup(func() { minStationaryTiles = before })
}
