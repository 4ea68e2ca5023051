package cpu

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Long returns a backend that counts positions in all arrays in 64 bits.
func Long() native.Backend { return backend{1} }

// LowerComposites returns the graph that the backend compiles for g.
func LowerComposites(g *ir.Graph) (*ir.Graph, error) { return lowerComposites(g) }
