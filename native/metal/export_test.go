//go:build cgo && (darwin || linux)

package metal

import (
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/native"
)

// New returns a backend with a separate device.
func New() native.Backend { return &backend{} }

// Plan returns the plan of a program.
func Plan(p native.Program) *plan.Plan { return p.(*program).plan }

// SetBufferTime sets how long command buffers of programs that are compiled in a test may take.
func SetBufferTime(t testing.TB, d time.Duration) {
	before := bufferTime
	bufferTime = d
	t.Cleanup(func() { bufferTime = before })
}

// Estimate returns how long a run of an entry takes, by estimate.
func Estimate(p native.Program, entry int) time.Duration { return p.(*program).entries[entry].time }

// Parts returns how long the command buffers of a run of an entry take, by estimate.
func Parts(t *testing.T, p native.Program, entry int) (times []time.Duration) {
	s, err := p.(*program).entries[entry].newStage()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range s.commands(nil) {
		times = append(times, part.time)
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	return times
}

// Pieces returns how many kernels run by pieces of their grids.
func Pieces(p native.Program) (n int) {
	for _, cut := range p.(*program).cuts {
		if cut {
			n++
		}
	}
	return n
}

// Cut makes the kernels of a program look for its memory where it ends.
func Cut(p native.Program) {
	c := p.(*program)
	for i, b := range c.plan.Buffers {
		if b.Kind == plan.StateBuffer {
			for j := range c.plan.Entries[0].Steps {
				if d, ok := c.plan.Entries[0].Steps[j].(*plan.Dispatch); ok {
					for k := range d.Bindings {
						if d.Bindings[k].Buffer == i {
							d.Bindings[k].Offset = b.Bytes - plan.RowBytes
						}
					}
				}
			}
		}
	}
}

// UsesFragments reports whether a kernel multiplies matrices of SIMD-groups.
func UsesFragments(k plan.Kernel) bool {
	return strings.Contains(k.Source, "simdgroup_multiply_accumulate")
}

// Attends reports whether a kernel is of attention in blocks.
func Attends(k plan.Kernel) bool { return strings.HasPrefix(k.Name, "attend_") }

// UsesBFloat reports whether a kernel has the type bfloat.
func UsesBFloat(k plan.Kernel) bool { return strings.Contains(k.Source, "bfloat") }

// HasBFloat reports whether the device's compiler has the type bfloat.
func HasBFloat(b native.Backend) bool {
	d, err := b.(*backend).device()
	return err == nil && d.Info().BFloat
}
