package sim

import (
	"iter"

	"github.com/rlx-go/rlx/ir/loop"
)

// part is a set of threads that synchronise with each other: those of the workgroup, or of one
// of its roles.
type part struct {
	all []int32
	// since is the epoch of their last barrier; earlier accesses are visible to all of them.
	since uint32
	// seen is the part's vector clock: up to which epoch it has seen the accesses of each
	// role and, after these, of the copies of each mbarrier. It is nil for the workgroup.
	clock  []uint32
	number int // index of the role
	// batches are multiply-adds in flight, oldest first, and held counts for each variable
	// those that use it until a wait names it; nil without multiply-adds.
	batches []batch
	held    map[string]int
	// yield suspends the role until ready returns true.
	yield func()
	ready func() bool
	// awaited is the mbarrier that the role waits for, at the path of its statement.
	awaited *mbarrier
	at      string
}

// clocks order the accesses of a workgroup in time.
type clocks struct {
	epoch        uint32 // interval between barriers, unique over all workgroups
	whole, part  *part  // the workgroup, and the part of it that is running
	roles        []*part
	roleOfThread []int32
}

// several is the accessor of a cell that several threads have accessed. A role or the copies of
// an mbarrier have accessors of their own.
const several = -1

func severalOf(role int) int32 { return int32(-2 - role) }

// severalHere returns the accessor for several threads of the part.
func (k *clocks) severalHere() int32 {
	if k.part.clock == nil {
		return several
	}
	return severalOf(k.part.number)
}

// firstCopy is the writer id of copies to the first mbarrier; the others count down from it.
const firstCopy = -100

// happenedBefore reports whether an access at a time happened before the next access of thread t.
// It is short, so that it is compiled in line.
func (k *clocks) happenedBefore(time uint32, who, t int32) bool {
	p := k.part
	return p.clock == nil && time < p.since || p.ordered(k, time, who, t)
}

// ordered is [clocks.happenedBefore] for a kernel of several roles, or since the last barrier.
func (p *part) ordered(k *clocks, time uint32, who, t int32) bool {
	if p.clock == nil {
		return time < p.since || who == t
	}
	switch role := k.roleOf(who); {
	case role == p.number:
		return time < p.since || who == t
	case role >= 0:
		return time <= p.clock[role]
	}
	for role, seen := range p.clock[:len(k.roles)] {
		if role == p.number && time >= p.since || role != p.number && time > seen {
			return false
		}
	}
	return true
}

// otherThread converts an accessor to [Fault.Other].
func otherThread(who int32) int { return int(max(who, several)) }

// roleOf returns the component of [part.clock] for an accessor, -1 for threads of any role.
func (k *clocks) roleOf(who int32) int {
	switch {
	case who >= 0:
		return int(k.roleOfThread[who])
	case who <= firstCopy:
		return len(k.roles) + int(firstCopy-who)
	}
	return int(-2 - who) // several is -1
}

// reads records a read by thread t, or by several threads of the part.
func (k *clocks) reads(c *cell, t int32) {
	switch {
	case k.happenedBefore(c.readEpoch, c.reader, t):
		c.reader = t
	case k.part.clock == nil:
		c.reader = several
	case k.roleOf(c.reader) == k.part.number:
		c.reader = severalOf(k.part.number)
	default:
		c.reader = several
	}
	c.readEpoch = k.epoch
}

// converged reports whether all threads of the part are active.
func (m *machine) converged(active []int32) bool {
	for i, t := range m.part.all {
		if i >= len(active) || active[i] != t {
			m.fail(DivergentBarrier, t, "", 0, 0)
			return false
		}
	}
	return true
}

// roles runs the bodies of roles as coroutines, each until it waits for an mbarrier.
func (c asyncCompiler) roles(s *loop.Roles) {
	m := c.m
	bodies := make([]executor, len(s.List))
	for i, r := range s.List {
		bodies[i] = c.block(r.Body)
	}
	c.begin()
	c.add(func(active []int32) {
		if m.converged(active) {
			m.newRoles(s)
			m.runRoles(bodies)
			m.part = m.whole
		}
	})
}

// newRoles creates the roles of the workgroup.
func (m *machine) newRoles(s *loop.Roles) {
	m.roles, m.roleOfThread = m.roles[:0], m.roleOfThread[:0]
	known := m.whole.since - 1 // what all did before the last barrier
	for i, r := range s.List {
		first := len(m.roleOfThread)
		p := &part{all: m.all[first : first+r.Threads], since: m.whole.since, number: i, held: map[string]int{}}
		p.clock = make([]uint32, len(s.List)+barriersOf(m.k))
		for j := range p.clock {
			p.clock[j] = known
		}
		m.roles = append(m.roles, p)
		for range r.Threads {
			m.roleOfThread = append(m.roleOfThread, int32(i))
		}
	}
}

// runRoles runs the roles in rounds until all have ended or none can continue.
func (m *machine) runRoles(bodies []executor) {
	going := make([]func() (struct{}, bool), len(bodies))
	for i, body := range bodies {
		p := m.roles[i]
		next, stop := iter.Pull(func(yield func(struct{}) bool) {
			p.yield = func() { yield(struct{}{}) }
			body(p.all)
		})
		defer stop()
		going[i] = next
	}
	for left := len(bodies); left > 0 && m.fault == nil; {
		moved := false
		for i, p := range m.roles {
			if going[i] == nil || p.ready != nil && !p.ready() {
				continue
			}
			moved, m.part = true, p
			if _, more := going[i](); !more {
				m.checkRoleEnd(p)
				going[i], left = nil, left-1
			}
			if m.fault != nil {
				return
			}
		}
		if !moved {
			m.deadlock(going)
			return
		}
	}
}

// checkRoleEnd fails if an operation is in flight when a role ends.
func (m *machine) checkRoleEnd(p *part) {
	if len(p.batches) > 0 && m.fault == nil {
		m.at = "the end of a role"
		m.fail(Unfinished, p.all[0], p.batches[0].names[0], 0, 0)
	}
}

// deadlock reports the first role that waits forever.
func (m *machine) deadlock(going []func() (struct{}, bool)) {
	for i, p := range m.roles {
		if going[i] != nil {
			m.at = p.at
			m.fail(Deadlock, p.all[0], p.awaited.name, p.awaited.index, 0)
			return
		}
	}
}
