package cpu

import "github.com/rlx-go/rlx/ir"

// routines is empty: they are too large for a browser's module.
var routines map[ir.Op]routine
