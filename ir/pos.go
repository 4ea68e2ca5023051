//go:build !js

package ir

import (
	"runtime"
	"strings"
)

// ownPackages are the ones whose frames are passed over: the place that counts
// is where the user's code asked for a node.
var ownPackages = [...]string{
	"github.com/rlx-go/rlx/ir.",
	"github.com/rlx-go/rlx/ir/derive.",
	"github.com/rlx-go/rlx/ir/ops.",
	"github.com/rlx-go/rlx/ir/passes.",
	"github.com/rlx-go/rlx/autodiff.",
	"github.com/rlx-go/rlx/autodiff/optim.",
}

// callerPos returns the place of the first caller outside the packages that
// build graphs on somebody's behalf.
func callerPos() Pos {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if !isOwn(f) {
			return Pos{f.File, f.Line}
		}
		if !more {
			return Pos{}
		}
	}
}

func isOwn(f runtime.Frame) bool {
	for _, p := range ownPackages {
		if strings.HasPrefix(f.Function, p) {
			return !strings.HasSuffix(f.File, "_test.go")
		}
	}
	return false
}
