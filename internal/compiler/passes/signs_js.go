package passes

import "github.com/rlx-go/rlx/ir"

// RoundedSigns returns g: no target in the browser has tensor cores.
func RoundedSigns(g *ir.Graph) (*ir.Graph, error) { return g, nil }

// ChannelsLast returns g, for the same reason.
func ChannelsLast(g *ir.Graph) (*ir.Graph, error) { return g, nil }
