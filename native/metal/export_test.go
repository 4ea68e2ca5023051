//go:build cgo && (darwin || linux)

package metal

import (
	"strings"

	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native"
)

// New returns a backend with a device of its own.
func New() native.Backend { return &backend{} }

// Plan returns the plan of a program.
func Plan(p native.Program) *plan.Plan { return p.(*program).plan }

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
