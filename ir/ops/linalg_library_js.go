package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// libraryFactor returns nil: a page has no library.
func libraryFactor(*ir.Node, loop.Caps) *ir.Algorithm { return nil }
