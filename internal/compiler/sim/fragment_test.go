package sim_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// remove takes the n-th statement of a type, counted from 0, out of a kernel's body.
func remove[S loop.Stmt](k *loop.Kernel, n int) {
	k.Body = slices.DeleteFunc(slices.Clone(k.Body), func(s loop.Stmt) bool {
		_, is := s.(S)
		if is {
			n--
		}
		return is && n == -1
	})
}

func TestFaultsOfFragmentsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(k *loop.Kernel)
		want  sim.Kind
		array string
	}{
		{"no barrier before a load", func(k *loop.Kernel) { remove[*loop.Barrier](k, 0) }, sim.Race, "left"},
		{"no barrier behind a store", func(k *loop.Kernel) { remove[*loop.Barrier](k, 1) }, sim.Race, "sums"},
		{"a result that was not stored", func(k *loop.Kernel) { remove[*loop.FragmentStore](k, 2) }, sim.Uninitialised, "sums"},
		{"threads of a subgroup that mean different places", func(k *loop.Kernel) {
			eachStore(k, func(s *loop.FragmentStore) { s.At = scalar.Add(s.At, loop.LocalID(0, 64)) })
		}, sim.Misaligned, "sums"},
		{"a store beyond the array", func(k *loop.Kernel) {
			eachStore(k, func(s *loop.FragmentStore) { s.Stride = 64 })
		}, sim.OutOfBounds, "sums"},
		{"two subgroups that store to one place", func(k *loop.Kernel) {
			eachStore(k, func(s *loop.FragmentStore) { s.At = i32(0) })
		}, sim.Race, "sums"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := kerneltest.Fragments()[0]
			c.spoil(p.Kernel)
			var f *sim.Fault
			err := sim.Run(p.Kernel, launch(p), sim.Options{})
			if !errors.As(err, &f) || f.Kind != c.want || f.Array != c.array {
				t.Errorf("error %v, want %q of %s", err, c.want, c.array)
			}
		})
	}
}

func eachStore(k *loop.Kernel, f func(s *loop.FragmentStore)) {
	loop.Walk(k.Body, func(s loop.Stmt) {
		if s, ok := s.(*loop.FragmentStore); ok {
			f(s)
		}
	})
}
