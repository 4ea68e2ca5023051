package kernel

// ForceTile makes every contraction that is not empty use tile number i, with
// the contracted space cut into that many parts, until the returned function is
// called.
func ForceTile(i, parts int) (undo func()) {
	pickTile = func(c *contraction, _ Device) (tile, int, bool) { return tiles[i], parts, c.tileable() }
	return func() { pickTile = chooseTile }
}

// ForceNoTile makes every contraction a reduction, until the returned function is
// called.
func ForceNoTile() (undo func()) {
	pickTile = func(*contraction, Device) (tile, int, bool) { return tile{}, 0, false }
	return func() { pickTile = chooseTile }
}

// Tiles is the number of tiles there are to force.
func Tiles() int { return len(tiles) }

// Hoist is what every kernel's statements are taken through.
var Hoist = hoist
