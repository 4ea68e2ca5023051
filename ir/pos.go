//go:build !js

package ir

import (
	"runtime"
	"slices"
	"strings"
	"sync"
)

// ownFolders are the folders, within the module, whose frames are skipped to find the user's call.
// Frames go by files, as a function literal of an inlined function bears the caller's name.
var ownFolders = [...]string{
	"ir/", "ir/ops/", "ir/nn/", "ir/image/", "ir/signal/", "ir/cmplx/", "ir/stats/", "ir/losses/",
	"internal/argument/", "internal/derive/", "internal/compiler/passes/", "autodiff/", "autodiff/optim/",
}

// moduleFolder is where the files of the module are, as the compiler names them.
var moduleFolder = func() string {
	_, file, _, _ := runtime.Caller(0)
	return strings.TrimSuffix(file, "ir/pos.go")
}()

// callerPos returns the position of the first caller outside ownFolders.
func callerPos() Pos {
	var few [16]uintptr // usually enough; collecting more takes longer
	pcs := few[:]
	for skip := 3; ; {
		n := runtime.Callers(skip, pcs)
		for _, pc := range pcs[:n] {
			if p, own := placeOf(pc); !own {
				return p
			}
		}
		if n < len(pcs) {
			return Pos{}
		}
		skip += len(pcs)
		pcs = make([]uintptr, 4*len(pcs)) // the skipped frames are unwound again: grow, so that depth counts once
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
	own bool // in one of ownFolders
}

// placeOf returns the position of a program counter from [runtime.Callers], and whether it is in
// one of ownFolders.
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
	inside, ok := strings.CutPrefix(f.File, moduleFolder)
	folder := inside[:strings.LastIndexByte(inside, '/')+1]
	return ok && slices.Contains(ownFolders[:], folder) && !strings.HasSuffix(f.File, "_test.go")
}
