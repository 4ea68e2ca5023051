package serial

// ProductArea returns the rows and columns per workgroup of an m × n product for one thread,
// and the columns that it packs at once, at most most.
func ProductArea(m, n, shares, most int) (rows, columns, packed int) {
	a := areaOf(m, n, shares, most)
	return a.m, a.n, a.columns
}
