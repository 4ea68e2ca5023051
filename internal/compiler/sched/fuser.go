package sched

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/elementwise"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/horizontal"
	"github.com/rlx-go/rlx/ir/loop"
)

// Fuser is the second phase of lowering: it makes kernels of the [emit.Part]s that
// [Cache.Schedule] returns, once their tensors are placed. Which parts share a kernel depends on
// the buffers that they bind. It is not safe for concurrent use.
type Fuser struct {
	caps     loop.Caps
	tuned    Tuned
	segments map[string]horizontal.Segmented
	text     []byte // scratch for keys
}

// NewFuser returns the second phase for a target. tuned holds schedules that replace the default,
// nil for none.
func NewFuser(tuned Tuned, caps loop.Caps) *Fuser {
	return &Fuser{caps: caps, tuned: tuned, segments: map[string]horizontal.Segmented{}}
}

// FuseMaps returns the launch of one part, or of up to [horizontal.MaxFused] maps fused
// horizontally, each with its own range of workgroups.
func (f *Fuser) FuseMaps(parts []emit.Part) emit.Launch {
	return elementwise.Fuse(parts, f.caps, func(g *fusion.Group) (s emit.Schedule, ok bool) {
		if len(f.tuned) > 0 {
			s, ok = f.tuned[KeyOf(g, f.caps)]
		}
		return s, ok
	})
}

// Segments returns the kernel for parts of one key in the given number of workgroups. arenas
// holds the arena of each of the part's Args, from 0; the tensors of an arena have elements of
// 4 bytes.
func (f *Fuser) Segments(part *emit.Part, arenas []int, groups int) (s horizontal.Segmented, err error) {
	f.text = strconv.AppendInt(append(f.text[:0], part.Key...), int64(groups), 10)
	for _, n := range arenas {
		f.text = strconv.AppendInt(append(f.text, ' '), int64(n), 10)
	}
	if s, known := f.segments[string(f.text)]; known {
		return s, nil
	}
	if s, err = horizontal.Segments(part, arenas, groups, f.caps); err == nil {
		f.segments[string(f.text)] = s
	}
	return s, err
}
