package native

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
)

// Accept checks that a tensor is a valid value of the slot. The error is of kind
// [ir.ErrDType], [ir.ErrShape] or [ir.ErrIndex].
func (s Slot) Accept(t Tensor) error {
	if t.DType != s.DType {
		return ir.DTypef("%s is %s; it must be %s", s.Name, t, typeText(s.DType, s.Dims))
	}
	if !slices.EqualFunc(t.Dims, s.Dims, func(given, dim int) bool { return given == dim || dim == OpenSize && given >= 0 }) {
		hint := ""
		if slices.Contains(t.Dims, 0) {
			hint = ": an empty batch has no result"
		}
		return ir.Shapef("%s is %s; it must be %s%s", s.Name, t, typeText(s.DType, s.Dims), hint)
	}
	if err := t.Check(); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	if s.Checked {
		return s.checkIndices(t)
	}
	return nil
}

// AcceptShared returns an error of kind [ir.ErrShape] for a parameter or state of a module whose
// type differs in the program that it shares memory with.
func AcceptShared(m *ir.Module, persistent []Slot) error {
	if m == nil {
		return ir.Attrf("the module is nil: it must be given")
	}
	slots := map[string]Slot{}
	for _, s := range persistent {
		slots[s.Name] = s
	}
	for _, e := range m.Entries {
		for _, port := range e.Graph.Ports() {
			s, shared := slots[port.Name]
			if !shared || port.Kind == ir.InputPort {
				continue
			}
			of := ir.Type{DType: s.DType, Shape: ir.Dims(s.Dims...)}
			if t := port.Value.Type(); !of.Equal(t) {
				return ir.Shapef("%s %q is %s; the program that it is shared with has %s", port.Kind, port.Name, t, of)
			}
		}
	}
	return nil
}

func (s Slot) checkIndices(t Tensor) error {
	switch s.DType {
	case ir.I8:
		return checkRange[int8](s, t)
	case ir.I16:
		return checkRange[int16](s, t)
	case ir.I32:
		return checkRange[int32](s, t)
	case ir.I64:
		return checkRange[int64](s, t)
	case ir.U8:
		return checkRange[uint8](s, t)
	case ir.U16:
		return checkRange[uint16](s, t)
	case ir.U32:
		return checkRange[uint32](s, t)
	}
	return nil
}

func checkRange[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](s Slot, t Tensor) error {
	if len(t.Data) == 0 {
		return nil
	}
	if !t.Aligned() {
		t = t.Clone()
	}
	var zero T
	lo, hi := int64(s.Lo), int64(s.Hi)
	for i, x := range unsafe.Slice((*T)(unsafe.Pointer(&t.Data[0])), len(t.Data)/int(unsafe.Sizeof(zero))) {
		if v := int64(x); v < lo || v >= hi {
			return ir.Errorf(ir.ErrIndex, "element %d of %s is %d; it must be in [%d, %d)", i, s.Name, v, s.Lo, s.Hi)
		}
	}
	return nil
}

// AcceptAll checks the tensors given for the slots of a role: all names are known and
// all tensors fit. If complete is set, none may be missing. The error is an [*Error] of
// the given backend and call.
func AcceptAll(backend, call string, slots []Slot, role Role, given map[string]Tensor, complete bool) error {
	known, missing := 0, (*Slot)(nil)
	for i := range slots {
		s := &slots[i]
		if s.Role != role {
			continue
		}
		t, ok := given[s.Name]
		if !ok {
			missing = cmp.Or(missing, s)
			continue
		}
		known++
		if err := s.Accept(t); err != nil {
			return &Error{Backend: backend, Call: call, Kind: KindOf(err), Name: s.Name, Err: err}
		}
	}
	if known < len(given) {
		name, there := unknown(slots, role, given)
		return &Error{Backend: backend, Call: call, Kind: ir.ErrName, Name: name, Err: fmt.Errorf("unknown %s %q: have %v", role, name, there)}
	}
	if complete && missing != nil {
		return &Error{Backend: backend, Call: call, Kind: ir.ErrName, Name: missing.Name, Err: fmt.Errorf("%s %q is missing", role, missing.Name)}
	}
	return nil
}

// unknown returns the first given name, in sorted order, that no slot of the role has,
// and the names of the slots.
func unknown(slots []Slot, role Role, given map[string]Tensor) (name string, there []string) {
	has := map[string]bool{}
	for _, s := range slots {
		if s.Role == role {
			there, has[s.Name] = append(there, s.Name), true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !has[name] {
			return name, there
		}
	}
	return "", there
}

// AcceptBound checks the tensors that an entry is bound to: they fit, and they do not
// overlap ([CheckOverlap]). Indices are checked when a run starts. The error is an
// [*Error] of the given backend and call.
func AcceptBound(backend, call string, slots []Slot, in, out map[string]Tensor) error {
	unchecked := slices.Clone(slots)
	for i := range unchecked {
		unchecked[i].Checked = false
	}
	if err := AcceptAll(backend, call, unchecked, Input, in, true); err != nil {
		return err
	}
	if err := AcceptAll(backend, call, unchecked, Output, out, false); err != nil {
		return err
	}
	if err := CheckOverlap(in, out); err != nil {
		return &Error{Backend: backend, Call: call, Kind: ErrOverlap, Name: err.Output, Err: err}
	}
	return nil
}

// OverlapError reports an output that shares memory with another tensor. It is of kind
// [ErrOverlap].
type OverlapError struct {
	Output, With string
	Role         Role // of With: Input or Output
	Bytes        int  // the number of shared bytes
}

// Error returns `output "y" and input "x" overlap in 252 bytes: an output needs memory of
// its own`.
func (e *OverlapError) Error() string {
	return fmt.Sprintf("output %q and %s %q overlap in %d bytes: an output needs memory of its own", e.Output, e.Role, e.With, e.Bytes)
}

// Unwrap returns [ErrOverlap].
func (e *OverlapError) Unwrap() error { return ErrOverlap }

// span is the address range of a tensor.
type span struct {
	name     string
	role     Role
	from, to uintptr
}

// CheckOverlap returns an error if an output shares memory with another output, or with
// an input in a different range. Inputs may share memory.
func CheckOverlap(in, out map[string]Tensor) *OverlapError {
	spans := append(spansOf(in, Input), spansOf(out, Output)...)
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	var input, output span // those with the furthest end so far
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

// spansOf returns the address ranges of the non-empty tensors, sorted by name.
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
