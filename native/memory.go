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

// MemoryVariable is the environment variable that bounds the memory of every program,
// in the syntax of [ParseBytes].
const MemoryVariable = "RLX_MEMORY"

// Budget bounds the memory of a program.
type Budget struct {
	Bytes int64
	// Source names the origin of the bound: "the machine's memory", "RLX_MEMORY".
	Source string
}

// Budget returns the memory budget of a program: Memory, else [MemoryVariable], else
// the device's. The error is of kind [ir.ErrAttr] for an invalid number of bytes.
func (o Options) Budget(device Budget) (Budget, error) {
	if o.Memory < 0 {
		return Budget{}, ir.Attrf("Memory is %d bytes; it must be 0 or greater", o.Memory)
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

// units maps the suffixes that [ParseBytes] accepts to bytes.
var units = map[string]float64{
	"": 1, "B": 1,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
	"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// ParseBytes parses a positive number of bytes: "8GiB", "1.5 GB", "500M" (MiB, as in Java
// and Docker) or "1048576". The error is of kind [ir.ErrAttr].
func ParseBytes(text string) (int64, error) {
	text = strings.TrimSpace(text)
	digits := strings.TrimRight(text, "BKMGTik")
	unit, known := units[text[len(digits):]]
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if bytes := n * unit; err == nil && known && bytes >= 1 && bytes < math.MaxInt64 {
		return int64(bytes), nil
	}
	return 0, ir.Attrf("%q is not a number of bytes; write it as 8GiB, 500MB or 1048576", text)
}

// FormatBytes formats a number of bytes: "1.50 GiB", "12 bytes".
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

// Allocation is a part of a program's memory.
type Allocation struct {
	// Name is the slot with its type, or a description.
	Name  string
	Bytes int64
	// Fixed marks memory that does not grow with the batch: parameters, states, constants.
	Fixed bool
}

// MemoryError reports a program that needs more memory than its budget. It is of kind
// [ErrMemory]; nothing was allocated.
type MemoryError struct {
	// Needed is the number of bytes that the program needs.
	Needed int64
	Budget Budget
	// Largest lists its largest parts, largest first.
	Largest []Allocation
	// Batch is the common first dimension of the inputs, and Fits an estimate of the
	// largest batch that fits. Both are 0 if there is no common dimension or no batch fits.
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

// Check returns a [*MemoryError] if the parts of a program with the given slots exceed
// the budget.
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
	const maxListed = 5
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(x, y Allocation) int { return cmp.Compare(y.Bytes, x.Bytes) })
	e := &MemoryError{Needed: needed, Budget: b, Largest: parts[:min(maxListed, len(parts))]}
	if batch := batchOf(slots); batch > 1 && fixed < b.Bytes {
		e.Batch = batch
		e.Fits = int(float64(batch) * float64(b.Bytes-fixed) / float64(needed-fixed))
	}
	return e
}

// addBytes is a saturating sum.
func addBytes(x, y int64) int64 {
	if y > math.MaxInt64-x {
		return math.MaxInt64
	}
	return x + y
}

// batchOf returns the first dimension that all inputs of rank 1 and more share, or 0.
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
