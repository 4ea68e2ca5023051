package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// large are plans with n items of a kind, or n·n pairs of items: checks of all pairs would take
// quadratic time.
var large = map[string]func(n int) *plan.Plan{
	"bindings of one dispatch": func(n int) *plan.Plan {
		p := short()
		p.Requires.Limits.StorageBuffers, p.Requires.Limits.BufferBytes = n, n*plan.RowBytes
		p.Buffers[3].Bytes = n * plan.RowBytes
		k := &p.Kernels[4]
		k.Storage = make([]loop.Access, n)
		d := &plan.Dispatch{Kernel: 4, Groups: [3]int{1, 1, 1}}
		for i := range n {
			k.Storage[i] = loop.ReadWrite
			d.Bindings = append(d.Bindings, plan.Binding{Buffer: 3, Offset: i * 7919 % n * plan.RowBytes, Bytes: 8})
		}
		p.Entries[entryFold].Steps[0] = d
		return p
	},
	"states and outputs of entries": func(n int) *plan.Plan {
		p := short()
		p.Buffers[2].Bytes, p.Buffers[3].Bytes = n*plan.RowBytes, n*plan.RowBytes
		p.Requires.Limits.BufferBytes = n * plan.RowBytes
		e := plan.Entry{Name: "all"}
		for i := range n / 2 {
			at := 1024 + 4*i
			p.Slots = append(p.Slots, plan.Slot{Name: fmt.Sprint("s", i), Role: plan.State, DType: dtype.F32, Buffer: 2, Offset: at, Bytes: 4},
				plan.Slot{Name: fmt.Sprint("o", i), Role: plan.Output, DType: dtype.F32, Buffer: 3, Offset: at, Bytes: 4})
			e.Outputs = append(e.Outputs, len(p.Slots)-2, len(p.Slots)-1)
		}
		p.Entries = append(p.Entries, e)
		return p
	},
	"scalars": func(n int) *plan.Plan {
		p := short()
		for i := range n {
			p.Slots = append(p.Slots, plan.Slot{Name: fmt.Sprint("s", i), Role: plan.Scalar, DType: dtype.F32, Offset: 4 * (i % 4096), Bytes: 4})
		}
		for i := 0; i+4096 <= n; i += 4096 {
			e := plan.Entry{Name: fmt.Sprint("e", i), UniformBytes: plan.MaxUniformBytes}
			for k := range 4096 {
				e.Scalars = append(e.Scalars, len(p.Slots)-n+i+k)
			}
			p.Entries = append(p.Entries, e)
		}
		return p
	},
	"entries": func(n int) *plan.Plan {
		p := short()
		for i := range n {
			p.Entries = append(p.Entries, plan.Entry{Name: fmt.Sprint("e", i), Inputs: []int{0}, Outputs: []int{6}})
		}
		return p
	},
	"steps inside long names": func(n int) *plan.Plan {
		p := short()
		p.Kernels[0].Name, p.Entries[entryInit].Name = strings.Repeat("k", 8*n), strings.Repeat("e", 8*n)
		e := &p.Entries[entryInit]
		for range n {
			e.Steps = append(e.Steps, e.Steps[0])
		}
		return p
	},
	"constants, kernels, codes": func(n int) *plan.Plan {
		p := short()
		for i := range n / 3 {
			p.Constants = append(p.Constants, plan.Constant{Data: make([]byte, 4)})
			p.Kernels = append(p.Kernels, p.Kernels[0])
			p.Status.Codes = append(p.Status.Codes, plan.StatusCode{Code: uint32(100 + i)})
		}
		return p
	},
}

// TestLargePlansDecodeQuickly decodes files whose checks took 8 to 23 seconds when they compared
// all pairs. Now they take a twentieth of the limit here, even when other tests run at the same
// time.
func TestLargePlansDecodeQuickly(t *testing.T) {
	for name, of := range large {
		file := encodedAnyway(of(80_000))
		begun := time.Now()
		if _, err := plan.Decode(file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("%s: %v for %d bytes", name, took, len(file))
		}
	}
}

// BenchmarkValidate reports the time for each of n things at two sizes: it is
// the same where it grows with n, and eight times as large where it grows with
// the square.
func BenchmarkValidate(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(large)) {
		for _, n := range []int{10_000, 80_000} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(name, " ", "_"), n), func(b *testing.B) {
				p := large[name](n)
				for b.Loop() {
					if err := plan.Validate(p); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/thing")
			})
		}
	}
}
