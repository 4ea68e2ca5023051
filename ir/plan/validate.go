package plan

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/format"
)

// Validate checks that a plan can be run on a device that meets its own
// requirements: that every index, window and alignment is right, that names are
// unambiguous, that nothing exceeds the stated limits, and that each dispatch
// obeys WebGPU's usage rules. The error is a [*FormatError] of kind
// [ErrInvalid].
func Validate(p *Plan) error {
	if err := validateOne(p); err != nil {
		return err
	}
	for i, v := range p.Variants {
		err := validateOne(v)
		if len(v.Variants) > 0 {
			err = invalid("", "it has variants of its own")
		}
		if err != nil {
			return format.Errorf("variant %d: %w", i, err)
		}
	}
	return nil
}

func validateOne(p *Plan) error {
	v := validator{p: p, limits: p.Requires.Limits}
	for _, check := range []func() error{v.buffers, v.slots, v.constants, v.kernels, v.status, v.entries} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func invalid(where, text string, args ...any) error {
	return &FormatError{Kind: ErrInvalid, Offset: -1, Section: where, Msg: format.Sprintf(text, args...)}
}

type validator struct {
	p      *Plan
	limits Limits
}

func (v *validator) buffers() error {
	for i, b := range v.p.Buffers {
		where := format.Sprintf("buffer %d (%s)", i, b.Kind)
		switch {
		case b.Kind >= bufferKinds:
			return invalid(where, "its kind is unknown")
		case b.Bytes <= 0 || b.Bytes%RowBytes != 0:
			return invalid(where, "its size of %d bytes is not a positive multiple of %d", b.Bytes, RowBytes)
		case b.Bytes > v.limits.BufferBytes:
			return invalid(where, "%d bytes are over the limit of %d", b.Bytes, v.limits.BufferBytes)
		}
	}
	return nil
}

// window checks that [offset, offset+bytes) lies in a buffer and is aligned.
func (v *validator) window(where string, buffer, offset, bytes, alignment int) error {
	if buffer < 0 || buffer >= len(v.p.Buffers) {
		return invalid(where, "there is no buffer %d", buffer)
	}
	size := v.p.Buffers[buffer].Bytes
	switch {
	case offset < 0 || bytes < 0 || offset > size || bytes > size-offset:
		return invalid(where, "bytes %d+%d lie outside buffer %d of %d bytes", offset, bytes, buffer, size)
	case offset%alignment != 0:
		return invalid(where, "offset %d is not a multiple of %d", offset, alignment)
	case bytes%WordBytes != 0:
		return invalid(where, "size %d is not a multiple of %d", bytes, WordBytes)
	}
	return nil
}

// kindsOf says which kinds of buffer a role may live in. An output may also be
// an input or a constant as it is.
var kindsOf = [roles][]BufferKind{
	Input:  {InputBuffer},
	Param:  {StateBuffer},
	State:  {StateBuffer},
	Output: {TempBuffer, StateBuffer, InputBuffer, ConstantBuffer},
}

func (v *validator) slots() error {
	persistent := map[string]bool{}
	var owned []int // slots with a window that nobody else may have
	for i := range v.p.Slots {
		s := &v.p.Slots[i]
		if err := v.slot(i, s); err != nil {
			return err
		}
		if s.Role.Persistent() {
			if persistent[s.Name] {
				return invalid(slotPlace(i, s), "another parameter or state has this name")
			}
			persistent[s.Name] = true
		}
		if s.Role != Scalar && s.Role != Output && s.Bytes > 0 {
			owned = append(owned, i)
		}
	}
	return v.disjoint(owned)
}

func slotPlace(i int, s *Slot) string { return format.Sprintf("slot %d (%s %q)", i, s.Role, s.Name) }

func (v *validator) slot(i int, s *Slot) error {
	where := slotPlace(i, s)
	if s.Role >= roles || s.Name == "" || !s.DType.Valid() {
		return invalid(where, "its role, name or dtype is missing")
	}
	want, err := SlotBytes(s.DType, s.Dims)
	switch {
	case err != nil:
		return invalid(where, "%v", err)
	case s.Bytes != want:
		return invalid(where, "%d bytes do not fit %s%v, which takes %d", s.Bytes, s.DType, s.Dims, want)
	case s.Checked && (s.Role != Input || !s.DType.IsInteger() || s.Lo > s.Hi):
		return invalid(where, "only an integer input has bounds, in order")
	}
	if s.Role == Scalar {
		word := s.DType == dtype.F32 || s.DType == dtype.I32 || s.DType == dtype.U32 || s.DType == dtype.Bool
		if len(s.Dims) != 0 || !word || s.Offset < 0 || s.Offset%WordBytes != 0 {
			return invalid(where, "%s%v at offset %d is not an aligned 32-bit scalar", s.DType, s.Dims, s.Offset)
		}
		return nil
	}
	if err := v.window(where, s.Buffer, s.Offset, s.Bytes, WordBytes); err != nil {
		return err
	}
	if kind := v.p.Buffers[s.Buffer].Kind; !slices.Contains(kindsOf[s.Role], kind) {
		return invalid(where, "it cannot lie in a buffer for %s", kind)
	}
	return nil
}

// disjoint checks that no two of these slots share a byte.
func (v *validator) disjoint(slots []int) error {
	at := func(i int) *Slot { return &v.p.Slots[i] }
	slices.SortFunc(slots, func(a, b int) int {
		return cmp.Or(cmp.Compare(at(a).Buffer, at(b).Buffer), cmp.Compare(at(a).Offset, at(b).Offset))
	})
	for i := 1; i < len(slots); i++ {
		a, b := at(slots[i-1]), at(slots[i])
		if a.Buffer == b.Buffer && a.Offset+a.Bytes > b.Offset {
			return invalid(slotPlace(slots[i], b), "it overlaps %s %q", a.Role, a.Name)
		}
	}
	return nil
}

func (v *validator) constants() error {
	for i, c := range v.p.Constants {
		where := format.Sprintf("constant %d", i)
		if err := v.window(where, c.Buffer, c.Offset, len(c.Data), WordBytes); err != nil {
			return err
		}
		if kind := v.p.Buffers[c.Buffer].Kind; kind != ConstantBuffer && kind != StateBuffer {
			return invalid(where, "it lies in a buffer for %s", kind)
		}
	}
	return nil
}

func (v *validator) kernels() error {
	for i := range v.p.Kernels {
		k := &v.p.Kernels[i]
		where := format.Sprintf("kernel %d (%s)", i, k.Name)
		if !kernelName(k.Name) || k.Source == "" {
			return invalid(where, "its name or its source is missing")
		}
		threads := 1
		for axis, n := range k.Workgroup {
			if n < 1 || n > v.limits.Workgroup[axis] {
				return invalid(where, "the workgroup %v is over the limit of %v", k.Workgroup, v.limits.Workgroup)
			}
			threads *= n
		}
		switch {
		case threads > v.limits.Invocations:
			return invalid(where, "%d threads are over the limit of %d", threads, v.limits.Invocations)
		case k.SharedBytes < 0 || k.SharedBytes > v.limits.SharedBytes:
			return invalid(where, "%d bytes of workgroup memory are over the limit of %d", k.SharedBytes, v.limits.SharedBytes)
		case len(k.Storage) == 0 || len(k.Storage) > v.limits.StorageBuffers:
			return invalid(where, "%d storage arrays, the limit is %d", len(k.Storage), v.limits.StorageBuffers)
		case k.ScalarBytes < 0 || k.ScalarBytes > MaxUniformBytes || k.ScalarBytes%WordBytes != 0:
			return invalid(where, "its uniform block cannot be %d bytes", k.ScalarBytes)
		case k.Counters < 0 || k.Counters > MaxCounters:
			return invalid(where, "%d counters, the limit is %d", k.Counters, MaxCounters)
		}
		for _, a := range k.Storage {
			if int(a) >= accesses {
				return invalid(where, "an access is unknown")
			}
		}
	}
	return nil
}

func kernelName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != ""
}

func (v *validator) status() error {
	s := v.p.Status
	if s == nil {
		return nil
	}
	const where = "status"
	if err := v.window(where, s.Buffer, s.Offset, StatusBytes, RowBytes); err != nil {
		return err
	}
	if v.p.Buffers[s.Buffer].Kind != StatusBuffer {
		return invalid(where, "it lies in a buffer for %s", v.p.Buffers[s.Buffer].Kind)
	}
	seen := map[uint32]bool{0: true}
	for _, c := range s.Codes {
		if seen[c.Code] {
			return invalid(where, "code %d is 0 or there twice", c.Code)
		}
		seen[c.Code] = true
	}
	return nil
}
