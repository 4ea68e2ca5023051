// Package sparse computes Jacobians and Hessians of which most elements are zero
// by few derivatives in directions.
//
// Which elements may differ from zero follows from a graph's structure: from where
// each op reads what it computes an element of ([PatternOf]). Columns without a row
// in common get one colour, and one forward derivative gives all columns of a
// colour at once; or rows by reverse mode, where that takes fewer. The pattern of a
// Hessian is symmetric, and fewer colours do for it ([Pattern.ColorStars]).
//
// The method is that of Curtis, Powell and Reid (On the Estimation of Sparse
// Jacobian Matrices) and of Gebremedhin, Manne and Pothen (What Color Is Your
// Jacobian?). Sizes must be constant. Time and memory are those of a host that goes
// through every element of every value on the way.
package sparse
