package wgsl

import "github.com/rlx-go/rlx/internal/codegen/clike"

// fragments is nil in the browser, where no schedule uses fragments.
var fragments *clike.Fragments
