// Package permute computes with lists of axes, and reorders the axes of arrays of any element type.
package permute

import "slices"

// Counting returns n numbers: first, first+1, ….
func Counting(first, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = first + i
	}
	return out
}

// Pick returns the elements of a list at some places, such as the sizes of some axes.
func Pick[T any](list []T, at []int) []T {
	out := make([]T, len(at))
	for i, place := range at {
		out[i] = list[place]
	}
	return out
}

// Inverse returns the permutation that undoes order.
func Inverse(order []int) []int {
	out := make([]int, len(order))
	for i, axis := range order {
		out[axis] = i
	}
	return out
}

// Others returns the axes below rank that are in none of the lists, in order.
func Others(rank int, lists ...[]int) []int {
	named := slices.Concat(lists...)
	var out []int
	for axis := range rank {
		if !slices.Contains(named, axis) {
			out = append(out, axis)
		}
	}
	return out
}

// Axes returns a copy of an array of shape dims, size bytes an element, whose axis i is axis order[i] of the array.
func Axes(data []byte, size int, dims, order []int) []byte {
	strides, step := make([]int, len(dims)), size
	for axis := len(dims) - 1; axis >= 0; axis-- {
		strides[axis] = step
		step *= dims[axis]
	}
	out, at, from := make([]byte, len(data)), make([]int, len(order)), 0
	for to := 0; to < len(out); to += size {
		copy(out[to:to+size], data[from:])
		for i := len(order) - 1; i >= 0; i-- {
			axis := order[i]
			from += strides[axis]
			if at[i]++; at[i] < dims[axis] {
				break
			}
			from -= strides[axis] * dims[axis]
			at[i] = 0
		}
	}
	return out
}
