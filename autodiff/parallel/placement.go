package parallel

import "github.com/rlx-go/rlx/ir"

// Placement says how a parameter or state lies on the devices of a mesh.
type Placement struct {
	// Type is that of the whole.
	Type ir.Type
	// Axes has, for each dimension, the mesh axis along which it is divided into equal parts, "" for
	// none. Nil stands for none at all.
	Axes []string
	// Flat, if not "", is the mesh axis along which the elements in row-major order are divided, filled
	// up with zeros to equal parts.
	Flat string
}
