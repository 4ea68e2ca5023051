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

// places caches the positions of program counters, which are slow to resolve. Its size is limited
// by the number of calls in the program text.
var places = struct {
	sync.RWMutex
	of map[uintptr]place
}{of: map[uintptr]place{}}

type place struct {
	pos Pos
	own bool // in one of ownPackages
}

// placeOf returns the position of a program counter from [runtime.Callers], and whether it is in
// one of ownPackages.
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
