package sched

import (
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// Family is a way to make kernels of a group.
type Family uint8

// The families. Behind each are the sizes of a [Schedule] that it has.
const (
	// Sole is for groups that become kernels in one way.
	Sole Family = iota
	// Elements: a thread of a map computes Each elements, side by side.
	Elements
	// Turned: a workgroup of a map brings what lies across its results by way of
	// workgroup memory, in tiles of M along the axis on which that has its neighbours
	// by N along the last one.
	Turned
	// Rows: Lanes threads share a row of a reduction, and Rows rows a workgroup;
	// neighbouring threads have neighbours of a row. Each row is cut over Split
	// workgroups.
	Rows
	// Columns is Rows where neighbouring threads have neighbouring rows.
	Columns
	// Tiles: a workgroup computes M×N results of a contraction in steps of K, each of
	// its threads RM×RN of them; sums are cut over Split workgroups.
	Tiles
	// Pipelined is Tiles whose operands come by copies that go on beside the arithmetic,
	// Stages steps of them; each thread reads ahead what it multiplies next.
	Pipelined
	// Fragments is Tiles where each subgroup computes RM×RN of the results, in fragments.
	Fragments
	// WarpGroups: a contraction by multiply-adds of warp groups, of N columns in so
	// many Stages; sums are cut over Split workgroups.
	WarpGroups
	// Library: a contraction by a routine of the target's library.
	Library
	// Stretches: Lanes threads share a row of a running combination, each Each of its
	// neighbours at a time; a row is cut into Split chunks.
	Stretches
	// Lines: a thread has a chunk of a row of a running combination for itself, and
	// reads Each elements ahead; a row is cut into Split chunks.
	Lines
	// Strips is Stretches where the elements stay in registers: of each of Each/4
	// strips of a tile a thread has four neighbours.
	Strips
	// Network sorts rows within a workgroup, Digits by four bits at a time.
	Network
	Digits
)

var familyNames = [...]string{
	"sole", "elements", "turned", "rows", "columns", "tiles", "pipelined", "fragments", "warpgroups", "library", "stretches", "lines", "strips",
	"network", "digits",
}

// String returns the family's name in lower case.
func (f Family) String() string { return familyNames[f] }

// Schedule says how a group becomes kernels: a family, and the sizes that it leaves
// open, in elements, threads or workgroups. Those that the family does not have are 0.
// It is data: schedules are compared, written down and read again.
type Schedule struct {
	Family                           Family
	M, N, K, RM, RN                  int
	Lanes, Rows, Each, Split, Stages int
}

// sizes are the names of a schedule's sizes, and where they are, in the order in which
// they are written.
func (s *Schedule) sizes() []struct {
	name string
	at   *int
} {
	return []struct {
		name string
		at   *int
	}{
		{"m", &s.M},
		{"n", &s.N},
		{"k", &s.K},
		{"rm", &s.RM},
		{"rn", &s.RN},
		{"lanes", &s.Lanes},
		{"rows", &s.Rows},
		{"each", &s.Each},
		{"split", &s.Split},
		{"stages", &s.Stages},
	}
}

// String returns "tiles m=64 n=64 k=16 rm=4 rn=4 split=1", which [ParseSchedule] reads.
func (s Schedule) String() string {
	text := s.Family.String()
	for _, size := range s.sizes() {
		if *size.at != 0 {
			text += " " + size.name + "=" + strconv.Itoa(*size.at)
		}
	}
	return text
}

// ParseSchedule reads what [Schedule.String] writes. The error is of kind [ir.ErrName]
// for a family or a size that there is not, [ir.ErrAttr] for a size that is no positive
// number.
func ParseSchedule(text string) (s Schedule, err error) {
	words := strings.Split(text, " ")
	family := -1
	for i, name := range familyNames {
		if name == words[0] {
			family = i
		}
	}
	if family < 0 {
		return s, ir.Errorf(ir.ErrName, "there is no schedule %q", words[0])
	}
	s.Family = Family(family)
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		n, err := strconv.Atoi(value)
		if err != nil || n <= 0 || n > maxSize {
			return Schedule{}, ir.Errorf(ir.ErrAttr, "%q is no size of a schedule", word)
		}
		if !s.set(name, n) {
			return Schedule{}, ir.Errorf(ir.ErrName, "a schedule has no size %q", name)
		}
	}
	return s, nil
}

// maxSize bounds what is read, so that products of two sizes fit any int.
const maxSize = 1 << 15

func (s *Schedule) set(name string, n int) bool {
	for _, size := range s.sizes() {
		if size.name == name {
			*size.at = n
			return true
		}
	}
	return false
}
