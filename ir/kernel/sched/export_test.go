package sched

import (
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
)

// ForceTile makes every contraction that is not empty use tile number i, with
// the contracted space cut into that many parts, until the returned function is
// called.
func ForceTile(i, parts int) (undo func()) {
	pickTile = func(c *group.Contraction, _ loop.Caps) (tile, int, bool) { return tiles[i], parts, tileable(c) }
	return func() { pickTile = chooseTile }
}

// ForceNoTile makes every contraction a reduction, until the returned function is
// called.
func ForceNoTile() (undo func()) {
	pickTile = func(*group.Contraction, loop.Caps) (tile, int, bool) { return tile{}, 0, false }
	return func() { pickTile = chooseTile }
}

// Tiles is the number of tiles there are to force.
func Tiles() int { return len(tiles) }

// ForceMma makes every contraction of a type that the target has multiply-adds for
// use them with tile number i, the contracted space cut into that many parts, until
// the returned function is called.
func ForceMma(i, parts int) (undo func()) {
	pickMma = func(p mmaPlan, c *group.Contraction, caps loop.Caps) (*mmaPlan, bool) {
		p.mmaTile = mmaTiles[i]
		p.split(c, parts)
		return &p, true
	}
	return func() { pickMma = chooseMma }
}

// MmaTiles is the number of tiles there are to force.
func MmaTiles() int { return len(mmaTiles) }

// ForceAttendMma makes attention by multiply-adds use a tile of so many warp groups,
// columns and stages, of which so many workgroups are resident, until the returned
// function is called.
func ForceAttendMma(groups, columns, stages, resident int) (undo func()) {
	pick := pickAttendMma
	pickAttendMma = func(attendKind, int) attendMmaTile { return attendMmaTile{groups, columns, stages, resident} }
	return func() { pickAttendMma = pick }
}
