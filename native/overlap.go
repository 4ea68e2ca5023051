package native

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"unsafe"
)

// OverlapError says that an output has bytes in common with another tensor. It is of kind
// [ErrOverlap].
type OverlapError struct {
	// Output is the output, and With the input or the other output.
	Output, With string
	// Role is what With is.
	Role Role
	// Bytes is how many they have in common.
	Bytes int
}

// Error returns `output "y" and input "x" overlap in 252 bytes: an output needs memory of
// its own`.
func (e *OverlapError) Error() string {
	return fmt.Sprintf("output %q and %s %q overlap in %d bytes: an output needs memory of its own", e.Output, e.Role, e.With, e.Bytes)
}

// Unwrap returns [ErrOverlap].
func (e *OverlapError) Unwrap() error { return ErrOverlap }

// span is where a tensor lies in memory.
type span struct {
	name     string
	role     Role
	from, to uintptr
}

// CheckOverlap returns an error where an output has memory in common with another output,
// or with an input whose memory is not exactly the same. Inputs may share memory.
func CheckOverlap(in, out map[string]Tensor) *OverlapError {
	spans := append(spansOf(in, Input), spansOf(out, Output)...)
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	var input, output span // of those so far, the ones that reach furthest
	for _, s := range spans {
		if s.from < output.to && (s.role == Output || !s.same(output)) {
			return overlap(output, s)
		}
		if s.role == Output && s.from < input.to && !s.same(input) {
			return overlap(s, input)
		}
		furthest := &input
		if s.role == Output {
			furthest = &output
		}
		if s.to > furthest.to {
			*furthest = s
		}
	}
	return nil
}

func (s span) same(o span) bool { return s.from == o.from && s.to == o.to }

func overlap(output, with span) *OverlapError {
	return &OverlapError{
		Output: output.name, With: with.name, Role: with.role,
		Bytes: int(min(output.to, with.to) - max(output.from, with.from)),
	}
}

// spansOf returns the memory of tensors in the order of their names, but for those of no
// bytes.
func spansOf(tensors map[string]Tensor, role Role) []span {
	var out []span
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		if data := tensors[name].Data; len(data) > 0 {
			from := uintptr(unsafe.Pointer(&data[0]))
			out = append(out, span{name, role, from, from + uintptr(len(data))})
		}
	}
	return out
}
