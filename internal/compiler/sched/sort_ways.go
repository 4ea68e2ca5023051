package sched

import (
	"math/bits"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
)

// sortWays are the ways of a sort.
type sortWays struct{ s *sorting } // nil where there is nothing to sort

func newSortWays(g *fusion.Group, caps loop.Caps) ways { return sortWays{sortingOf(g, caps)} }

func (w sortWays) rule() Schedule {
	if s := (Schedule{Family: Network}); w.fits(s) {
		return s
	}
	return Schedule{Family: Digits}
}

func (w sortWays) candidates() []Ranked {
	if w.s == nil {
		return []Ranked{{w.rule(), 0}}
	}
	list := []Ranked{{w.rule(), w.s.digitsCost()}}
	if list[0].Family == Network {
		list[0].Cost = w.s.networkCost()
		list = append(list, Ranked{Schedule{Family: Digits}, w.s.digitsCost()})
	}
	return list
}

// fits takes networks for rows that a workgroup holds.
func (w sortWays) fits(s Schedule) bool {
	return s == Schedule{Family: Digits} || s == Schedule{Family: Network} && (w.s == nil || w.s.length <= w.s.capacity())
}

func (w sortWays) emit(s Schedule) []Launch {
	switch {
	case w.s == nil:
		return nil
	case s.Family == Network:
		return []Launch{w.s.network()}
	}
	return w.s.radix()
}

// networkCost counts the steps of a bitonic network, in each of which all threads meet.
func (s *sorting) networkCost() float64 {
	d, width := s.caps.Profile(), powerOfTwo(s.length)
	rounds := bits.Len(uint(width)) - 1
	steps := float64(rounds * (rounds + 1) / 2)
	waves := d.Waves(s.rows, width/2)
	return d.Launch + steps*waves*(d.Barrier+float64(ceilDiv(width/2, s.caps.Invocations))*pairTime)
}

// pairTime is how many nanoseconds a workgroup takes for a pair of each of its threads: an
// estimate of two loads, a comparison and two stores in workgroup memory.
const pairTime = 20

// digitsCost counts the passes over memory: counts read the keys once, moves read and
// write keys and places.
func (s *sorting) digitsCost() float64 {
	d, passes := s.caps.Profile(), float64(ceilDiv(s.bits, digitBits))
	elements := float64(s.rows * s.length * (s.keyType.Size() + 4))
	return passes * (3*d.Launch + 2.5*elements/d.Bandwidth())
}
