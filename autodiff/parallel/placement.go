package parallel

import "github.com/rlx-go/rlx/ir"

// Placement is the division of a parameter or state among the devices of a mesh.
type Placement struct {
	// Type is the type of the whole.
	Type ir.Type
	// Axes has, for each dimension, the mesh axis along which it is divided into equal parts, ""
	// for none. Nil means that no dimension is divided.
	Axes []string
	// Flat, if not "", is the mesh axis along which the elements are divided in row-major order,
	// padded with zeros to equal parts.
	Flat string
}
