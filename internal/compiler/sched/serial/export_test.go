package serial

// ProductArea returns the rows and columns per workgroup of an m × n product for one thread,
// and the columns that it packs at once, at most maxColumns.
func ProductArea(m, n, shares, maxColumns int) (rows, columns, packed int) {
	a := areaOf(m, n, shares, maxColumns)
	return a.m, a.n, a.columns
}
