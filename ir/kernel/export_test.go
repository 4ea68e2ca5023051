package kernel

// ForceTile makes every contraction use tile number i, however few workgroups
// that makes, until the returned function is called.
func ForceTile(i int) (undo func()) {
	all := tiles
	tiles = tiles[i : i+1]
	return func() { tiles = all }
}

// Tiles is the number of tiles there are to force.
func Tiles() int { return len(tiles) }
