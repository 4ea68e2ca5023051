package native

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// MemoryVariable is the environment variable that bounds the memory of every program:
// bytes, as [ParseBytes] reads them.
const MemoryVariable = "RLX_MEMORY"

// Budget is how much memory a program may hold.
type Budget struct {
	Bytes int64
	// Source says where the number is from: "the machine's memory", "RLX_MEMORY".
	Source string
}

// Budget returns what a program may hold: Memory, else [MemoryVariable], else what the
// device has. The error is of kind [ir.ErrAttr] for a number that is none of bytes.
func (o Options) Budget(device Budget) (Budget, error) {
	if o.Memory < 0 {
		return Budget{}, ir.Attrf("the option Memory is %d bytes: the number must not be negative", o.Memory)
	}
	if o.Memory > 0 {
		return Budget{o.Memory, "the option Memory"}, nil
	}
	text := os.Getenv(MemoryVariable)
	if text == "" {
		return device, nil
	}
	bytes, err := ParseBytes(text)
	if err != nil {
		return Budget{}, fmt.Errorf("%s: %w", MemoryVariable, err)
	}
	return Budget{bytes, MemoryVariable}, nil
}

// units are the suffixes that [ParseBytes] knows.
var units = map[string]float64{
	"": 1, "B": 1,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
	"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// ParseBytes reads a number of bytes, at least 1: "8GiB", "1.5 GB", "500M" (as in Java and
// Docker: MiB) or "1048576". The error is of kind [ir.ErrAttr].
func ParseBytes(text string) (int64, error) {
	text = strings.TrimSpace(text)
	digits := strings.TrimRight(text, "BKMGTik")
	unit, known := units[text[len(digits):]]
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if bytes := n * unit; err == nil && known && bytes >= 1 && bytes < math.MaxInt64 {
		return int64(bytes), nil
	}
	return 0, ir.Attrf("%q is not a number of bytes such as 8GiB, 500MB or 1048576", text)
}

// FormatBytes writes a number of bytes for people: "1.50 GiB", "12 bytes".
func FormatBytes(bytes int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= u.size {
			return fmt.Sprintf("%.2f %s", float64(bytes)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// Allocation is a part of what a program holds.
type Allocation struct {
	// Name is that of an input, a parameter or a state with its type, or says what else
	// lies there.
	Name  string
	Bytes int64
	// Fixed is set for what every batch needs as it is: parameters, states, constants.
	Fixed bool
}

// MemoryError says that a program would hold more than its budget. It is of kind
// [ErrMemory]; nothing was allocated.
type MemoryError struct {
	// Needed is how many bytes the program would hold.
	Needed int64
	Budget Budget
	// Largest are the largest parts of it, largest first.
	Largest []Allocation
	// Batch is the common first size of the inputs, and Fits about how large it may be; 0
	// where the inputs have none in common, or none fits.
	Batch, Fits int
}

// Error returns "the module takes 12.00 GiB: input x f32[3072,1048576] 12.00 GiB; the
// budget is 8.00 GiB (RLX_MEMORY); a batch of about 2048 in place of 3072 fits".
func (e *MemoryError) Error() string {
	var parts []string
	for _, a := range e.Largest {
		parts = append(parts, a.Name+" "+FormatBytes(a.Bytes))
	}
	text := fmt.Sprintf("the module takes %s: %s; the budget is %s (%s)", FormatBytes(e.Needed), strings.Join(parts, ", "), FormatBytes(e.Budget.Bytes), e.Budget.Source)
	if e.Fits > 0 {
		text += fmt.Sprintf("; a batch of about %d in place of %d fits", e.Fits, e.Batch)
	}
	return text
}

// Unwrap returns [ErrMemory].
func (e *MemoryError) Unwrap() error { return ErrMemory }

// Check returns a [*MemoryError] where what a program with the given slots is to hold is
// more than the budget.
func (b Budget) Check(parts []Allocation, slots []Slot) error {
	var needed, fixed int64
	for _, a := range parts {
		needed = addBytes(needed, a.Bytes)
		if a.Fixed {
			fixed = addBytes(fixed, a.Bytes)
		}
	}
	if needed <= b.Bytes {
		return nil
	}
	const most = 5
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(x, y Allocation) int { return cmp.Compare(y.Bytes, x.Bytes) })
	e := &MemoryError{Needed: needed, Budget: b, Largest: parts[:min(most, len(parts))]}
	if batch := batchOf(slots); batch > 1 && fixed < b.Bytes {
		e.Batch = batch
		e.Fits = int(float64(batch) * float64(b.Bytes-fixed) / float64(needed-fixed))
	}
	return e
}

// addBytes adds without overflow.
func addBytes(x, y int64) int64 {
	if y > math.MaxInt64-x {
		return math.MaxInt64
	}
	return x + y
}

// batchOf returns the first size that all inputs with axes have, 0 where they differ.
func batchOf(slots []Slot) int {
	batch := 0
	for _, s := range slots {
		if s.Role != Input || len(s.Dims) == 0 {
			continue
		}
		if batch != 0 && s.Dims[0] != batch {
			return 0
		}
		batch = s.Dims[0]
	}
	return batch
}

// AllocationOf returns the memory of a slot.
func AllocationOf(s Slot, bytes int64) Allocation {
	return Allocation{Name: fmt.Sprintf("%s %s %s", s.Role, s.Name, typeText(s.DType, s.Dims)), Bytes: bytes, Fixed: s.Role == Param || s.Role == State}
}
