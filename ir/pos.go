//go:build !js

package ir

import (
	"runtime"
	"strings"
	"sync"
)

// ownPackages are the packages whose frames are skipped to find the user's call.
var ownPackages = [...]string{
	"github.com/rlx-go/rlx/ir.",
	"github.com/rlx-go/rlx/internal/derive.",
	"github.com/rlx-go/rlx/ir/ops.",
	"github.com/rlx-go/rlx/ir/nn.",
	"github.com/rlx-go/rlx/internal/compiler/passes.",
	"github.com/rlx-go/rlx/autodiff.",
	"github.com/rlx-go/rlx/autodiff/optim.",
}

// callerPos returns the position of the first caller outside ownPackages.
func callerPos() Pos {
	var pcs [16]uintptr // usually enough; collecting more takes longer
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

// positions caches the positions of program counters, which are slow to resolve. Its size is limited
// by the number of calls in the program text.
var positions = struct {
	sync.RWMutex
	of map[uintptr]cachedPos
}{of: map[uintptr]cachedPos{}}

type cachedPos struct {
	pos Pos
	own bool // in one of ownPackages
}

// placeOf returns the position of a program counter from [runtime.Callers], and whether it is in
// one of ownPackages.
func placeOf(pc uintptr) (p Pos, own bool) {
	positions.RLock()
	known, ok := positions.of[pc]
	positions.RUnlock()
	if !ok {
		f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		known = cachedPos{Pos{f.File, f.Line}, isOwn(f)}
		positions.Lock()
		positions.of[pc] = known
		positions.Unlock()
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
