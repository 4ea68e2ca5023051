package sched_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/horizontal"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// deepest is the maximum nesting of statements in a map: browsers refuse 127 levels, and
// drivers may be stricter.
const deepest = 12

// TestManyPartsNestLittle updates more states of different sizes than one kernel takes, as
// different parts that share a kernel and as segments.
func TestManyPartsNestLittle(t *testing.T) {
	const states = 300
	p := groups(t, schedtest.Build(t, func(b *ir.Builder) {
		for i := range states {
			name := "s" + strconv.Itoa(i)
			b.SetState(name, ops.Sin(b, b.State(name, ir.F32, ir.N(i+1))))
		}
	}))
	parts := 0
	for _, item := range p.Items {
		launches, err := sched.NewCache(nil).Schedule(item.(*fusion.Group), loop.DefaultCaps())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range launches {
			parts += len(l.Parts)
			if len(l.Args) != len(l.Parts) {
				t.Errorf("%d tensors of %d parts", len(l.Args), len(l.Parts))
			}
			for few := range slices.Chunk(l.Parts, horizontal.MaxFused) {
				nestsLittle(t, sched.NewFuser(nil, loop.DefaultCaps()).FuseMaps(few).Kernel)
			}
			s, err := sched.NewFuser(nil, loop.DefaultCaps()).Segments(&l.Parts[0], []int{0}, 1000)
			if err != nil {
				t.Fatal(err)
			}
			nestsLittle(t, s.Kernel)
		}
	}
	if parts != states || len(p.Items) > 10 {
		t.Errorf("%d updates in %d groups, want %d in a few", parts, len(p.Items), states)
	}
}

func nestsLittle(t *testing.T, k *loop.Kernel) {
	t.Helper()
	if n := nesting(k.Body); n > deepest {
		t.Errorf("%s: statements nest %d deep", k.Name, n)
	}
	if err := loop.Check(k); err != nil {
		t.Error(err)
	}
}

func nesting(body []loop.Stmt) int {
	n := 0
	for _, s := range body {
		switch s := s.(type) {
		case *loop.If:
			n = max(n, 1+nesting(s.Then), 1+nesting(s.Else))
		case *loop.For:
			n = max(n, 1+nesting(s.Body))
		}
	}
	return n
}

// groups partitions a graph without composites.
func groups(t *testing.T, g *ir.Graph) *fusion.Partition {
	t.Helper()
	p, err := fusion.Build(g, fusion.DefaultOptions)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestScheduleNamesTheGroupItCannotSchedule(t *testing.T) {
	p := groups(t, schedtest.Build(t, func(b *ir.Builder) { b.Output("y", ops.Sin(b, b.Input("x", ir.F32, ir.N(3)))) }))
	g := *p.Items[0].(*fusion.Group)
	g.Kind = fusion.PrefixKind
	if _, err := sched.NewCache(nil).Schedule(&g, loop.DefaultCaps()); err == nil || !strings.Contains(err.Error(), "prefix_sin") {
		t.Errorf("error %v, which should name the group prefix_sin", err)
	}
}
