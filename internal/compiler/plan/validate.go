package plan

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// Validate checks that a plan can be run on a device that meets its
// requirements: that it obeys the rules in the package comment.
// The error is a [*FormatError] of kind [ErrInvalid].
func Validate(p *Plan) error {
	if err := validateOne(p); err != nil {
		return err
	}
	for i, v := range p.Variants {
		err := validateOne(v)
		if err == nil && len(v.Variants) > 0 {
			err = invalid(7, "it has variants of its own")
		}
		if err != nil {
			return err.in("variant %d", i)
		}
	}
	return nil
}

// validateOne checks a plan without its variants. The order of the checks is
// that of js/src/plan/validate.ts, so both report the same first error.
func validateOne(p *Plan) *FormatError {
	v := validator{p: p, limits: p.Requires.Limits, persistent: map[string]bool{}, exported: kernelParams(p.Code)}
	for _, check := range []func() *FormatError{v.buffers, v.slots, v.constants, v.kernels, v.routines, v.status, v.entries} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func invalid(rule int, text string, args ...any) *FormatError {
	return &FormatError{Kind: ErrInvalid, Rule: rule, Offset: -1, Msg: format.Sprintf(text, args...)}
}

type validator struct {
	p          *Plan
	limits     loop.Limits
	persistent map[string]bool // the names of parameters and states
	exported   map[string]int  // see kernelParams
	spans      []span          // scratch for one dispatch
	order      []*span         // scratch of conflict
}

func (v *validator) buffers() *FormatError {
	for i, b := range v.p.Buffers {
		var err *FormatError
		switch {
		case b.Kind >= bufferKinds:
			err = invalid(6, "its kind is unknown")
		case b.Bytes <= 0 || b.Bytes%RowBytes != 0:
			err = invalid(9, "its size of %d bytes is not a positive multiple of %d", b.Bytes, RowBytes)
		case b.Bytes > v.limits.BufferBytes:
			err = invalid(9, "%d bytes are over the limit of %d", b.Bytes, v.limits.BufferBytes)
		}
		if err != nil {
			return err.in("buffer %d (%s)", i, b.Kind)
		}
	}
	return nil
}

// window checks that [offset, offset+bytes) lies in a buffer and is aligned.
func (v *validator) window(buffer, offset, bytes, alignment int) *FormatError {
	if buffer < 0 || buffer >= len(v.p.Buffers) {
		return invalid(14, "there is no buffer %d", buffer)
	}
	size := v.p.Buffers[buffer].Bytes
	switch {
	case offset < 0 || bytes < 0 || offset > size || bytes > size-offset:
		return invalid(14, "bytes %d+%d lie outside buffer %d of %d bytes", offset, bytes, buffer, size)
	case offset%alignment != 0:
		return invalid(14, "offset %d is not a multiple of %d", offset, alignment)
	case bytes%WordBytes != 0:
		return invalid(14, "size %d is not a multiple of %d", bytes, WordBytes)
	}
	return nil
}

// windowIn checks a window that must lie in a buffer of one of the kinds.
func (v *validator) windowIn(buffer, offset, bytes, alignment int, kinds ...BufferKind) *FormatError {
	if err := v.window(buffer, offset, bytes, alignment); err != nil {
		return err
	}
	if kind := v.p.Buffers[buffer].Kind; !slices.Contains(kinds, kind) {
		return invalid(15, "it cannot lie in a buffer for %s", kind)
	}
	return nil
}

// kindsOf lists the kinds of buffer for each role. An output may also be an unchanged
// input or constant.
var kindsOf = [roles][]BufferKind{
	Input:  {InputBuffer},
	Param:  {StateBuffer},
	State:  {StateBuffer},
	Output: {TempBuffer, StateBuffer, InputBuffer, ConstantBuffer},
}

func (v *validator) slots() *FormatError {
	owned := make([]span, 0, len(v.p.Slots)) // windows that must not overlap
	for i := range v.p.Slots {
		s := &v.p.Slots[i]
		if err := v.slot(s); err != nil {
			return err.in("slot %d (%s %q)", i, s.Role, s.Name)
		}
		if s.Role != Scalar && s.Role != Output && s.Bytes > 0 {
			owned = append(owned, span{Binding{s.Buffer, s.Offset, s.Bytes}, true, int32(i)})
		}
	}
	for i := range v.p.Slots {
		s := &v.p.Slots[i]
		if !s.Role.Persistent() {
			continue
		}
		if v.persistent[s.Name] {
			return invalid(16, "another parameter or state has this name").in("slot %d (%s %q)", i, s.Role, s.Name)
		}
		v.persistent[s.Name] = true
	}
	if a, b, found := v.conflict(owned); found {
		s, other := &v.p.Slots[b.index], &v.p.Slots[a.index]
		return invalid(17, "it overlaps %s %q", other.Role, other.Name).in("slot %d (%s %q)", b.index, s.Role, s.Name)
	}
	return nil
}

func (v *validator) slot(s *Slot) *FormatError {
	if s.Role >= roles || !s.DType.Valid() {
		return invalid(6, "its role or dtype is missing")
	}
	if s.Name == "" {
		return invalid(10, "its name is missing")
	}
	want, err := SlotBytes(s.DType, s.Dims)
	switch {
	case err != nil:
		return invalid(11, "%v", err)
	case s.Bytes != want:
		return invalid(11, "%d bytes do not fit %s%v, which takes %d", s.Bytes, s.DType, s.Dims, want)
	case s.Checked && (s.Role != Input || !s.DType.IsInteger() || s.Lo > s.Hi):
		return invalid(12, "only an integer input has bounds, in order")
	}
	if s.Role == Scalar {
		word := s.DType == dtype.F32 || s.DType == dtype.I32 || s.DType == dtype.U32 || s.DType == dtype.Bool
		if len(s.Dims) != 0 || !word || s.Offset < 0 || s.Offset%WordBytes != 0 {
			return invalid(13, "%s%v at offset %d is not an aligned 32-bit scalar", s.DType, s.Dims, s.Offset)
		}
		return nil
	}
	return v.windowIn(s.Buffer, s.Offset, s.Bytes, WordBytes, kindsOf[s.Role]...)
}

// span is a window that is read or written. Overlapping spans must be read-only.
type span struct {
	Binding
	written bool
	index   int32 // the caller's
}

// conflict returns two non-empty spans that conflict, neighbours in memory: they overlap
// and one is written, or one of the same buffer is written and the other only read. If any
// two spans conflict, then two neighbours do.
func (v *validator) conflict(spans []span) (a, b span, found bool) {
	order := slices.Grow(v.order[:0], len(spans)) // sorting pointers takes no code of its own in a page's module
	for i := range spans {
		order = append(order, &spans[i])
	}
	v.order = order
	slices.SortFunc(order, func(a, b *span) int {
		return cmp.Or(cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.Offset, b.Offset))
	})
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if a.Buffer == b.Buffer && (a.written != b.written || a.written && a.Offset+a.Bytes > b.Offset) {
			return *a, *b, true
		}
	}
	return a, b, false
}

func (v *validator) constants() *FormatError {
	for i, c := range v.p.Constants {
		if err := v.windowIn(c.Buffer, c.Offset, len(c.Data), WordBytes, ConstantBuffer, StateBuffer); err != nil {
			return err.in("constant %d", i)
		}
	}
	return nil
}

func (v *validator) kernels() *FormatError {
	for i := range v.p.Kernels {
		k := &v.p.Kernels[i]
		if err := v.kernel(k); err != nil {
			return err.in("kernel %d (%s)", i, k.Name)
		}
	}
	return nil
}

func (v *validator) kernel(k *Kernel) *FormatError {
	if !kernelName(k.Name) || k.Source == "" {
		return invalid(18, "its name or its source is missing")
	}
	threads := 1
	for axis, n := range k.Workgroup {
		if n < 1 || n > v.limits.Workgroup[axis] {
			return invalid(19, "a workgroup of %v threads is not in 1 to %v", k.Workgroup, v.limits.Workgroup)
		}
		if n > v.limits.Invocations/threads {
			return invalid(19, "a workgroup of %v threads is over the limit of %d in all", k.Workgroup, v.limits.Invocations)
		}
		threads *= n
	}
	switch {
	case k.SharedBytes < 0 || k.SharedBytes > v.limits.SharedBytes:
		return invalid(20, "%d bytes of workgroup memory are over the limit of %d", k.SharedBytes, v.limits.SharedBytes)
	case len(k.Storage) == 0 || len(k.Storage) > v.limits.StorageBuffers:
		return invalid(21, "%d storage arrays, the limit is %d", len(k.Storage), v.limits.StorageBuffers)
	case !fitsRow(k.ScalarBytes):
		return invalid(22, "its uniform block cannot be %d bytes", k.ScalarBytes)
	case k.Counters < 0 || k.Counters > MaxCounters:
		return invalid(24, "%d counters, the limit is %d", k.Counters, MaxCounters)
	}
	for _, a := range k.Storage {
		if int(a) >= accesses {
			return invalid(6, "an access is unknown")
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

// fitsRow reports whether a row of scalars, or a kernel's prefix of one, can have that
// size.
func fitsRow(bytes int) bool { return bytes >= 0 && bytes <= MaxUniformBytes && bytes%WordBytes == 0 }

func (v *validator) status() *FormatError {
	s := v.p.Status
	if s == nil {
		return nil
	}
	const where = "status"
	if err := v.windowIn(s.Buffer, s.Offset, StatusBytes, RowBytes, StatusBuffer); err != nil {
		return err.in(where)
	}
	seen := map[uint32]bool{0: true}
	for _, c := range s.Codes {
		if seen[c.Code] {
			return invalid(25, "code %d is 0 or there twice", c.Code).in(where)
		}
		seen[c.Code] = true
	}
	return nil
}
