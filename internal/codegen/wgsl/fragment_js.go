package wgsl

import "github.com/rlx-go/rlx/internal/codegen/clike"

// fragments is nil in the browser, where nothing is scheduled in fragments.
var fragments *clike.Fragments
