//go:build cgo && (darwin || linux)

package metal

import (
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/loop"
)

// bufferTime is the estimated time of a command buffer on the slowest GPU. macOS kills
// those that block its windows for some seconds.
var bufferTime = 500 * time.Millisecond // changed by tests

// needsCut reports whether a kernel must be printed to run in pieces of its grid.
func needsCut(k *loop.Kernel, limit time.Duration) bool { return workOf(k).of(k.Groups) > limit }

// piece is a part of a grid: its first workgroup and its size.
type piece struct{ first, groups [3]int }

// cut splits a grid into pieces that take at most the limit or have one workgroup. It
// halves the outermost axis, since neighbours along the inner axes share the most data.
func cut(w work, p piece, limit time.Duration) []piece {
	axis := 2
	for axis > 0 && p.groups[axis] == 1 {
		axis--
	}
	if w.of(p.groups) <= limit || p.groups[axis] == 1 {
		return []piece{p}
	}
	low, high := p, p
	low.groups[axis] /= 2
	high.groups[axis] -= low.groups[axis]
	high.first[axis] += low.groups[axis]
	return append(cut(w, low, limit), cut(w, high, limit)...)
}

// time estimates the time of steps, counting loops of unknown trip count once.
func (p *program) time(steps []plan.Step) (sum time.Duration) {
	for _, s := range steps {
		switch s := s.(type) {
		case *plan.Dispatch:
			sum += p.works[s.Kernel].of(s.Groups)
		case *plan.Copy:
			sum += copyTime(s.Bytes)
		case *plan.Repeat:
			odd := s.Count / 2
			if len(s.Odd) == 0 {
				odd = 0
			}
			sum += time.Duration(s.Count-odd)*p.time(s.Steps) + time.Duration(odd)*p.time(s.Odd)
		case *plan.While:
			sum += p.time(s.Steps)
		}
	}
	return sum
}
