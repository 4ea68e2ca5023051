package sim_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Faults of roles with barriers, phases and copies are found in any order of the roles.
func TestFaultsOfRolesAreFound(t *testing.T) {
	phase := func(list []loop.Stmt, by int64) {
		await := list[0].(*loop.Await)
		await.Phase = scalar.Add(await.Phase, i32(by))
	}
	first := func(list []loop.Stmt) *loop.CopyTMA { return list[0].(*loop.CopyTMA) }
	for _, c := range []struct {
		name  string
		spoil func(r *kerneltest.Relay)
		want  sim.Kind
		array string
	}{
		{"tiles read before they are there", func(r *kerneltest.Relay) { r.Full = nil }, sim.Uninitialised, "left_tile"},
		{"tiles read that were there a phase ago", func(r *kerneltest.Relay) { phase(r.Full, -1) }, sim.Uninitialised, "left_tile"},
		{"a stage filled that is not empty", func(r *kerneltest.Relay) { r.Empty = nil }, sim.Race, "left_tile"},
		{"a stage given back before it is read", func(r *kerneltest.Relay) { r.Done, r.Freed = r.Freed, r.Done }, sim.Race, "left_tile"},
		{"stages that are never full", func(r *kerneltest.Relay) { r.Filled = nil }, sim.Deadlock, "full"},
		{"stages that are never empty", func(r *kerneltest.Relay) { r.Freed = nil }, sim.Deadlock, "full"},
		{"a wait for a phase that does not come", func(r *kerneltest.Relay) { phase(r.Full, 1) }, sim.Deadlock, "full"},
		{"a wait for a phase long ago", func(r *kerneltest.Relay) { phase(r.Empty, -1) }, sim.Overrun, "empty"},
		{"a warp that arrives twice", func(r *kerneltest.Relay) { r.Freed = slices.Concat(r.Freed, r.Freed) }, sim.Overrun, "empty"},
		{"a barrier that there is not", func(r *kerneltest.Relay) { r.Freed[0].(*loop.Arrive).At = i32(2) }, sim.OutOfBounds, "empty"},
		{"two copies to one place", func(r *kerneltest.Relay) { r.Copies = append(r.Copies[:1:1], r.Copies...) }, sim.Unfinished, "left_tile"},
		{"a copy to an odd place", func(r *kerneltest.Relay) { first(r.Copies).ToAt = i32(64) }, sim.Misaligned, "left_tile"},
		{"a copy beyond the tile", func(r *kerneltest.Relay) { first(r.Copies).ToAt = i32(2 * 64 * 64) }, sim.OutOfBounds, "left_tile"},
		{"sums read before all threads have put theirs", func(r *kerneltest.Relay) { r.Barrier = nil }, sim.Race, "sums"},
		{"sums used while they are added to", func(r *kerneltest.Relay) { r.Done, r.Last = []loop.Stmt{&loop.MmaWait{Pending: 1}}, nil }, sim.Race, "left_tile"},
		{"multiply-adds under way at the end", func(r *kerneltest.Relay) {
			m := *r.Multiply[0].(*loop.Mma)
			m.Terms = slices.Clone(m.Terms[:1])
			m.Terms[0].A.At, m.Terms[0].B.At = i32(0), i32(0)
			r.Last, r.Put, r.Barrier, r.Store = []loop.Stmt{&m}, nil, nil, nil
		}, sim.Unfinished, "sum0"},
		{"a tile written by a role that copies come to", func(r *kerneltest.Relay) {
			r.Full = append([]loop.Stmt{store(kerneltest.RelayLeftTile, loop.LocalID(0, loop.WarpGroup), scalar.ConstF(dtype.BF16, 0))}, r.Full...)
		}, sim.Race, "left_tile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := kerneltest.NewRelay()
			c.spoil(r)
			k := r.Case()
			err := sim.Run(k.Kernel, launch(k), sim.Options{})
			var f *sim.Fault
			if !errors.As(err, &f) {
				t.Fatalf("error %v, want a fault", err)
			}
			if f.Kind != c.want || f.Array != c.array {
				t.Errorf("%v, want %v of %s", f, c.want, c.array)
			}
		})
	}
}

// A copy in a phase that does not end is in flight when the kernel ends.
func TestCopiesOfUnfinishedPhase(t *testing.T) {
	r := kerneltest.NewRelay()
	k := r.Case()
	more := *r.Copies[0].(*loop.CopyTMA)
	more.From, more.ToAt, more.At = []scalar.Expr{i32(0), i32(0)}, i32(64*64), i32(1)
	fetch := &k.Kernel.Body[0].(*loop.Roles).List[1]
	fetch.Body = append(fetch.Body, &loop.Await{Mbarrier: more.Mbarrier + 1, At: i32(1), Phase: i32(0)}, &more)
	err := sim.Run(k.Kernel, launch(k), sim.Options{})
	var f *sim.Fault
	if !errors.As(err, &f) || f.Kind != sim.Unfinished || f.Array != "left_tile" || f.Stmt != "the end" {
		t.Errorf("error %v, want a copy under way at the end", err)
	}
}

// A barrier of a role does not synchronise the others.
func TestRolesThatChangeOneElementRace(t *testing.T) {
	k := kerneltest.NewRelay().Case()
	roles := k.Kernel.Body[0].(*loop.Roles)
	for i, r := range roles.List {
		id := loop.LocalID(0, loop.WarpGroup)
		if i == 1 {
			id = scalar.NewVar("local_x", dtype.I32, loop.WarpGroup, loop.WarpGroup+loop.Warp-1)
		}
		one := scalar.Eq(scalar.Mod(id, i32(32)), i32(0))
		roles.List[i].Body = append(r.Body, barrier, when(one, store(kerneltest.RelaySums, i32(0), f32(1))), barrier)
	}
	err := sim.Run(k.Kernel, launch(k), sim.Options{})
	var f *sim.Fault
	if !errors.As(err, &f) || f.Kind != sim.Race || f.Array != "sums" {
		t.Errorf("error %v, want a race for sums", err)
	}
}
