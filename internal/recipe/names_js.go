package recipe

import "github.com/rlx-go/rlx/ir"

// unknown does not list the names: the functions of the page check them first.
func unknown(kind, name string) error { return ir.Errorf(ir.ErrName, "unknown %s %q", kind, name) }
