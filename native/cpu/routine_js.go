package cpu

import "github.com/rlx-go/rlx/ir"

// routines are none: a browser's module has no room for the library.
var routines map[ir.Op]routine
