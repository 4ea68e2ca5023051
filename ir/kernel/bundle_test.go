package kernel_test

import (
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel"
	"github.com/rlx-go/rlx/ir/ops"
)

// deepest is how deep statements may nest in a map: browsers refuse 127 levels,
// and drivers may be stricter.
const deepest = 12

// TestManyPartsNestLittle has the update of more states of different sizes than
// one kernel takes.
func TestManyPartsNestLittle(t *testing.T) {
	const states = 300
	p := groups(t, build(t, func(b *ir.Builder) {
		for i := range states {
			name := "s" + strconv.Itoa(i)
			b.SetState(name, ops.Sin(b, b.State(name, ir.F32, ir.N(i+1))))
		}
	}))
	parts := 0
	for _, item := range p.Items {
		g := item.(*kernel.Group)
		parts += max(1, len(g.Parts))
		launches, err := p.Schedule(g, kernel.DefaultDevice)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range launches {
			if n := nesting(l.Kernel.Body); n > deepest {
				t.Errorf("%s: statements nest %d deep", l.Kernel.Name, n)
			}
		}
	}
	if parts != states || len(p.Items) > 10 {
		t.Errorf("%d updates in %d groups, want %d in a few", parts, len(p.Items), states)
	}
}

func nesting(body []kernel.Stmt) int {
	n := 0
	for _, s := range body {
		switch s := s.(type) {
		case *kernel.If:
			n = max(n, 1+nesting(s.Then), 1+nesting(s.Else))
		case *kernel.For:
			n = max(n, 1+nesting(s.Body))
		}
	}
	return n
}

// TestSpansThatCannotBeCountedAreRefused: positions are counted in i32.
func TestSpansThatCannotBeCountedAreRefused(t *testing.T) {
	k := &kernel.Kernel{Name: "k", Arrays: []kernel.Array{
		{Name: "a", DType: ir.F32, Width: 1, Len: 1}, {Name: "b", DType: ir.F32, Width: 1, Len: 1},
	}}
	most := int64(4) * kernel.MaxElements
	if most > math.MaxInt {
		return // no int of this machine is as many bytes
	}
	span := kernel.Span{Windows: []kernel.Window{{Array: 0}, {Array: 1, Offset: 256}}, Bytes: int(most)}
	if _, err := kernel.MergeArrays(k, []kernel.Span{span}); err != nil {
		t.Errorf("the largest span: %v", err)
	}
	span.Bytes += 4
	if _, err := kernel.MergeArrays(k, []kernel.Span{span}); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("a span of %d bytes: error %v, want %v", span.Bytes, err, ir.ErrUnsupported)
	}
}
