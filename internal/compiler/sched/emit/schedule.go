package emit

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// Family is a family of algorithms that a group can be lowered by.
type Family uint8

// The families. The comment of each names the sizes of [Schedule] that it uses.
const (
	// Sole is for groups with one possible schedule.
	Sole Family = iota
	// Elements: each thread of a map computes Each contiguous elements.
	Elements
	// Transposed: a map transposes operands through workgroup memory, in tiles of M×N: M along the
	// axis on which the operand is contiguous, N along the last axis of the result.
	Transposed
	// Rows: a reduction in which Lanes threads share a row and a workgroup has Rows rows.
	// Neighbouring threads read neighbouring elements of a row. Each row is split over Split
	// workgroups.
	Rows
	// Columns is Rows with neighbouring threads on neighbouring rows. A thread has Each adjacent
	// rows, if not 0, and those at M positions of another axis, if not 0, N points at a time.
	Columns
	// Tiles: a workgroup computes an M×N tile of a contraction in steps of K, each thread an
	// RM×RN tile of it; Split is the split-K factor.
	Tiles
	// Pipelined is Tiles with asynchronous copies of the operands through Stages pipeline
	// stages. Each thread prefetches the operands of its next multiply-adds into registers.
	Pipelined
	// Fragments is Tiles in which each subgroup computes RM×RN results in matrix fragments.
	Fragments
	// WarpGroups: a contraction by warp-group MMA with tiles of N columns and Stages pipeline
	// stages; Split is the split-K factor.
	WarpGroups
	// Library: a contraction by a routine of the target's library.
	Library
	// BlockScan: Lanes threads share a row, each scans Each contiguous elements
	// at a time in workgroup memory; a row is split into Split chunks.
	BlockScan
	// SerialScan: Lanes threads share a row of many adjacent rows and each prefetches
	// Each elements; a row is split into Split chunks.
	SerialScan
	// RegisterScan is a block scan with the elements in registers: a tile has Each/4 strips,
	// and a thread has a vector of four contiguous elements in each.
	RegisterScan
	// BitonicSort is a bitonic sort of rows that fit a workgroup, or the choice of the first elements of
	// chunks of Each elements, then of these, and so on; RadixSort is a radix sort by four bits at a time.
	BitonicSort
	RadixSort
	// Flash is attention with its scores in plain registers.
	Flash
	// FlashFragments is Flash with matrix fragments of subgroups.
	FlashFragments
	// FlashMma is Flash by warp-group MMA. In every kernel a workgroup has M rows and blocks of N
	// columns, Stages of them at a time, and a multiprocessor holds Resident workgroups. Without
	// sizes each kernel has the tile that was measured for it.
	FlashMma
	// PackedRows: a product of one row with packed weights. Lanes threads share a row of weights, in
	// slices of the shape K, counted from 1, and compute Rows rows; a workgroup has M such teams of threads, 0 for one.
	PackedRows
	// Registers is Tiles without workgroup memory: each thread loads its operands by itself, and
	// no barrier is needed.
	Registers
	// Stationary: a contraction by warp-group MMA with the operand along the columns, whole, in workgroup
	// memory and the rows' operand in registers.
	Stationary
	// PackedTiles: a contraction of few columns by warp-group MMA with packed weights, which threads unpack to
	// registers. A workgroup has M rows of weights, K contracted positions of the columns' operand at a time, and one of
	// Split parts of them all.
	PackedTiles
)

// familyNames are the names in the text form of schedules, which stored tunings hold.
var familyNames = [...]string{
	"sole", "elements", "transposed", "rows", "columns", "tiles", "pipelined", "fragments", "warpgroups", "library", "block_scan", "serial_scan", "register_scan",
	"bitonic_sort", "radix_sort", "flash", "flash_fragments", "flash_mma", "packed_rows", "registers",
	"stationary", "packed_tiles",
}

// Families is the number of families.
const Families = Family(len(familyNames))

// String returns the family's name in lower case.
func (f Family) String() string { return familyNames[f] }

// Schedule is a family with its sizes in elements, threads or workgroups. Sizes that the family
// does not use are 0. Schedules are comparable and have a text form.
type Schedule struct {
	Family                           Family
	M, N, K, RM, RN                  int
	Lanes, Rows, Each, Split, Stages int
	Resident                         int
}

// sizes returns the names of a schedule's sizes and pointers to them, in the order of the text
// form.
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
		{"resident", &s.Resident},
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

// ParseSchedule parses the text form of [Schedule.String]. The error is of kind [ir.ErrName]
// for an unknown family or size, [ir.ErrAttr] for a size that is not a positive number.
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

// maxSize bounds parsed sizes, so that the product of two fits any int.
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

// Ranked is a schedule with its estimated time.
type Ranked struct {
	Schedule
	Cost float64 // nanoseconds
}

// Space is the schedule space of a group, and its lowering by each schedule.
type Space interface {
	// Rule returns the default schedule, used where nothing was measured.
	Rule() Schedule
	// Candidates returns schedules with their costs, the default first.
	Candidates() []Ranked
	// Fits reports whether the group can be lowered by a schedule.
	Fits(s Schedule) bool
	// Emit returns the launches of a schedule that fits.
	Emit(s Schedule) []Launch
}

// Before orders schedules by cost, then by text.
func (r Ranked) Before(o Ranked) bool {
	return cmp.Or(cmp.Compare(r.Cost, o.Cost), cmp.Compare(r.String(), o.String())) < 0
}
