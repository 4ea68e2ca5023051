package passes

import "github.com/rlx-go/rlx/ir"

// Narrow returns g: no target in the browser has tensor cores, for which values are rounded.
func Narrow(g *ir.Graph) (*ir.Graph, error) { return g, nil }
