//go:build !js

package ir

import (
	"runtime"
	"strings"
	"sync"
)

// ownPackages are the ones whose frames are passed over: the place that counts
// is where the user's code asked for a node.
var ownPackages = [...]string{
	"github.com/rlx-go/rlx/ir.",
	"github.com/rlx-go/rlx/internal/derive.",
	"github.com/rlx-go/rlx/ir/ops.",
	"github.com/rlx-go/rlx/internal/compiler/passes.",
	"github.com/rlx-go/rlx/autodiff.",
	"github.com/rlx-go/rlx/autodiff/optim.",
}

// callerPos returns the place of the first caller outside the packages that
// build graphs on somebody's behalf.
func callerPos() Pos {
	var pcs [16]uintptr // finding more takes longer, and the first are enough as a rule
	for skip := 3; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:n] {
			if p, own := placeOf(pc); !own {
				return p
			}
		}
		if n < len(pcs) {
			return Pos{}
		}
	}
}

// places remembers what program counters stand for, which takes far longer to find than to
// look up. There are no more of them than calls in the program's text.
var places = struct {
	sync.RWMutex
	of map[uintptr]place
}{of: map[uintptr]place{}}

type place struct {
	pos Pos
	own bool // in one of ownPackages
}

// placeOf returns the place of a program counter, as [runtime.Callers] gives it, and
// whether it is in one of ownPackages.
func placeOf(pc uintptr) (p Pos, own bool) {
	places.RLock()
	known, ok := places.of[pc]
	places.RUnlock()
	if !ok {
		f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		known = place{Pos{f.File, f.Line}, isOwn(f)}
		places.Lock()
		places.of[pc] = known
		places.Unlock()
	}
	return known.pos, known.own
}

func isOwn(f runtime.Frame) bool {
	for _, p := range ownPackages {
		if strings.HasPrefix(f.Function, p) {
			return !strings.HasSuffix(f.File, "_test.go")
		}
	}
	return false
}
