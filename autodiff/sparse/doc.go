// Package sparse computes sparse Jacobians and Hessians with few directional derivatives.
//
// The input is an ir.Graph of constant sizes, the output a [Derivative]: a graph that computes the
// nonzero elements, and their [Pattern]. [PatternOf] finds the elements that may differ from zero
// by tracing which elements each op reads. Columns without a common row get one color, and one
// forward derivative computes all columns of a color; rows are computed by reverse mode if that
// takes fewer colors. The pattern of a Hessian is symmetric and needs fewer colors
// ([Pattern.ColorStars]). The file to read first is sparse.go.
//
// The method is that of Curtis, Powell and Reid, On the Estimation of Sparse Jacobian Matrices
// (1974), and Gebremedhin, Manne and Pothen, What Color Is Your Jacobian? (2005). The tracing runs
// on the host and visits every element of every intermediate value.
package sparse
