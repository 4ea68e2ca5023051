package plan

import (
	"math"

	"github.com/rlx-go/rlx/ir/loop"
)

// The version of the format that Encode writes. A reader reads every minor
// version of its major: what a later minor version adds is a new section,
// flagged as required if the plan cannot be run without it, or new fields at
// the end of a record, which a reader steps over. A new kind of step is refused
// by readers that do not know it.
const (
	Major = 1
	Minor = 4
)

const (
	magic       = "RLXP"
	headerBytes = 16
	// flagRequired in a section's flags: a reader that does not know the section
	// must refuse the plan.
	flagRequired = 1
)

// The tags of sections, in file order.
const (
	tagMeta      = "META"
	tagRequires  = "REQS"
	tagSymbols   = "SYMS"
	tagBuffers   = "BUFS"
	tagSlots     = "SLOT"
	tagConstants = "CNST"
	tagKernels   = "KRNL"
	tagCode      = "CODE"
	tagDrafts    = "DRFT"
	tagBoxes     = "BOXS"
	tagRoutines  = "ROUT"
	tagEntries   = "ENTR"
	tagStatus    = "STAT"
	tagVariant   = "VARI"
)

// The numbers of step kinds.
const (
	stepDispatch = iota
	stepCopy
	stepRepeat
	stepRepeatOdd
	stepIndirect
	stepCall
	stepWhile
)

// maxExact bounds the numbers of a file: JavaScript's numbers are exact up
// to it, and sums of a few do not overflow where an int has 32 bits.
const maxExact = min(1<<53-1, math.MaxInt/4)

// accesses is the number of kinds of loop.Access, whose values are those of the file.
const accesses = int(loop.Atomic) + 1
