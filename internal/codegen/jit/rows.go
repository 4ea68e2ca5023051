package jit

// Rows is what is done for each row of many: kernels one after the other, each
// over the same number of lanes, all of them long or none. Their arrays are numbered through, those of the
// first kernel first. A kernel whose steps are all after its loop has no loop.
type Rows struct {
	Kernels []*Kernel
	// Steps is by how many bytes the place of each array grows from one row to
	// the next, less than 2 GiB; nil where there is one row only.
	Strides []int
	// Counter is an array whose first element, of 32 bits, grows by 1 from one row
	// to the next; less than 0 for none.
	Counter int
}

// One returns a kernel as one row.
func One(k *Kernel) *Rows { return &Rows{Kernels: []*Kernel{k}, Counter: -1} }

// Width returns how many lanes are computed at once: a row has a multiple of it.
func (r *Rows) Width() int {
	width := 0
	for _, k := range r.Kernels {
		width = max(width, k.Width()*max(1, k.stride))
	}
	return width
}
