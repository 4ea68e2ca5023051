package collective

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
)

// Op is a collective operation.
type Op uint8

// The collective operations. Arrays are contiguous. S is the array that a rank sends, n the size of
// the group.
const (
	// AllReduce returns the reduction of S over all ranks on every rank.
	AllReduce Op = iota
	// AllGather returns the concatenation of S over all ranks, in their order, on every rank.
	AllGather
	// ReduceScatter reduces S over all ranks and returns part i of n equal parts on rank i.
	ReduceScatter
	// AllToAll returns on rank i part i of S of every rank, in the order of ranks.
	AllToAll
	// Permute sends S of each pair's sender to its receiver. A rank that receives nothing gets
	// zeros.
	Permute
	// Broadcast returns S of the root on every rank.
	Broadcast
)

var opNames = [...]string{"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "collective_broadcast"}

// String returns the name of the op in a graph.
func (o Op) String() string {
	if int(o) >= len(opNames) {
		return "invalid"
	}
	return opNames[o]
}

// Reduction combines the elements of ranks.
type Reduction uint8

// The reductions. Sums of 8 and 16-bit floats are computed in f32 and rounded once. Max and Min
// return NaN if an element is NaN.
const (
	Sum Reduction = iota
	Max
	Min
)

var reductionNames = [...]string{"sum", "max", "min"}

// String returns the reduction in lower case.
func (r Reduction) String() string {
	if int(r) >= len(reductionNames) {
		return "invalid"
	}
	return reductionNames[r]
}

// Call is one collective of one rank. All ranks of a group make the same calls in the same order,
// with arrays of the same size.
type Call struct {
	Op        Op
	Reduction Reduction // of AllReduce and ReduceScatter
	DType     ir.DType
	Root      int      // of Broadcast
	Pairs     [][2]int // of Permute: sender and receiver
	// Send and Recv are the array to send and the memory of the result, which do not overlap. They
	// are aligned to the element type. Broadcast reads Send of the root alone.
	Send, Recv []byte
	// Bytes is the size of the array to send where a device has it and Send is nil: see
	// [Group.Enqueue].
	Bytes int64
	// Entry and Step identify the entry of a program and the run that make the call, for errors and
	// records.
	Entry string
	Step  int64
}

// String returns "all_reduce sum f32[1000]", with the entry and the step if set.
func (c *Call) String() string {
	var sb strings.Builder
	sb.WriteString(c.Op.String())
	if c.Op == AllReduce || c.Op == ReduceScatter {
		sb.WriteString(" " + c.Reduction.String())
	}
	fmt.Fprintf(&sb, " %s[%d]", c.DType, c.bytes()/int64(max(c.DType.Size(), 1)))
	switch c.Op {
	case Broadcast:
		fmt.Fprintf(&sb, " of rank %d", c.Root)
	case Permute:
		fmt.Fprintf(&sb, " %v", c.Pairs)
	}
	if c.Entry != "" {
		fmt.Fprintf(&sb, " of entry %q, step %d", c.Entry, c.Step)
	}
	return sb.String()
}

// bytes returns the size of the array to send.
func (c *Call) bytes() int64 {
	if c.Send == nil {
		return c.Bytes
	}
	return int64(len(c.Send))
}

// check returns an error of kind [ir.ErrAttr], [ir.ErrDType] or [ir.ErrShape] for a call that a
// group of a size cannot make.
func (c *Call) check(size int) error {
	if int(c.Op) >= len(opNames) || int(c.Reduction) >= len(reductionNames) {
		return ir.Attrf("op %d with reduction %d; there are %v and %v", c.Op, c.Reduction, opNames, reductionNames)
	}
	if !c.DType.Valid() || c.DType.IsPacked() {
		return ir.DTypef("%s has element type %s; it needs one of whole bytes", c.Op, c.DType)
	}
	if err := c.checkReduction(); err != nil {
		return err
	}
	if err := c.checkRanks(size); err != nil {
		return err
	}
	return c.checkArrays(size)
}

func (c *Call) checkReduction() error {
	switch {
	case c.Op != AllReduce && c.Op != ReduceScatter:
		return nil
	case c.Reduction == Sum && !c.DType.IsNumeric():
		return ir.DTypef("%s sum of %s; sums are of numbers", c.Op, c.DType)
	case c.Reduction != Sum && (c.DType.IsComplex() || c.DType.IsBool()):
		return ir.DTypef("%s %s of %s; extrema are of real numbers", c.Op, c.Reduction, c.DType)
	}
	return nil
}

// checkRanks checks the root and the pairs.
func (c *Call) checkRanks(size int) error {
	if c.Op == Broadcast && (c.Root < 0 || c.Root >= size) {
		return ir.Attrf("the root is %d; it must be a rank from 0 to %d", c.Root, size-1)
	}
	if c.Op != Permute {
		return nil
	}
	var seen [2]map[int]bool
	for i := range seen {
		seen[i] = map[int]bool{}
		for _, p := range c.Pairs {
			if p[i] < 0 || p[i] >= size || seen[i][p[i]] {
				return ir.Attrf("pairs %v: rank %d is there twice, or not from 0 to %d", c.Pairs, p[i], size-1)
			}
			seen[i][p[i]] = true
		}
	}
	return nil
}

// checkArrays checks the sizes and the alignment of the arrays.
func (c *Call) checkArrays(size int) error {
	send, recv := len(c.Send), len(c.Recv)
	want := send
	switch c.Op {
	case AllGather:
		want = send * size
	case ReduceScatter:
		want = send / size
	}
	element := c.DType.Size()
	divided := c.Op == ReduceScatter || c.Op == AllToAll
	switch {
	case send%element != 0 || divided && send/element%size != 0:
		return ir.Shapef("%s sends %d bytes of %s; that is no equal part for each of %d ranks", c.Op, send, c.DType, size)
	case recv != want:
		return ir.Shapef("%s of %d bytes receives %d bytes; the memory has %d", c.Op, send, want, recv)
	case !aligned(c.Send, c.DType) || !aligned(c.Recv, c.DType):
		return ir.Shapef("%s: an array is not aligned to %s", c.Op, c.DType)
	}
	return nil
}

// aligned reports whether memory is aligned to an element type.
func aligned(data []byte, d ir.DType) bool {
	return len(data) == 0 || uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(min(d.Size(), 8)) == 0
}

// Sender returns the rank that sends to a rank in a Permute, -1 if none does.
func (c *Call) Sender(to int) int {
	for _, p := range c.Pairs {
		if p[1] == to {
			return p[0]
		}
	}
	return -1
}

// Receiver returns the rank that a rank sends to in a Permute, -1 if there is none.
func (c *Call) Receiver(from int) int {
	for _, p := range c.Pairs {
		if p[0] == from {
			return p[1]
		}
	}
	return -1
}
