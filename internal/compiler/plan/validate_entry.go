package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir/loop"
)

func (v *validator) entries() *FormatError {
	seen := map[string]bool{"": true}
	for i := range v.p.Entries {
		name := v.p.Entries[i].Name
		if seen[name] {
			return invalid(26, "its name is missing or there twice").in("entry %d (%s)", i, name)
		}
		seen[name] = true
	}
	rows := 0
	for i := range v.p.Entries {
		e := &v.p.Entries[i]
		var err *FormatError
		switch rows += e.UniformStride(); {
		case !fitsRow(e.UniformBytes):
			err = invalid(22, "its row of scalars cannot be %d bytes", e.UniformBytes)
		case rows > MaxRowsBytes:
			err = invalid(23, "the rows of scalars of the entries up to this take more than %d bytes", MaxRowsBytes)
		default:
			err = v.entry(e)
		}
		if err != nil {
			return err.in("entry %d (%s)", i, e.Name)
		}
	}
	return nil
}

func (v *validator) entry(e *Entry) *FormatError {
	if err := v.entrySlots(e); err != nil {
		return err
	}
	n, err := v.steps(e, e.Steps, 0)
	if err == nil && n > MaxDispatches {
		err = invalid(40, "more than %d dispatches", MaxDispatches)
	}
	return err
}

// entrySlots checks the slots of an entry: their roles, unique names, and the
// offsets of scalars.
func (v *validator) entrySlots(e *Entry) *FormatError {
	for _, list := range []struct {
		slots   []int
		allowed func(Role) bool
	}{
		{e.Inputs, func(r Role) bool { return r == Input }},
		{e.Scalars, func(r Role) bool { return r == Scalar }},
		{e.Outputs, func(r Role) bool { return r == Output || r.Persistent() }},
		{e.Reads, func(r Role) bool { return r == Param }},
		{e.Sets, func(r Role) bool { return r == Param }},
	} {
		for _, i := range list.slots {
			if i < 0 || i >= len(v.p.Slots) {
				return invalid(27, "there is no slot %d", i)
			}
			if s := &v.p.Slots[i]; !list.allowed(s.Role) {
				return invalid(27, "%s %q is in the wrong list", s.Role, s.Name)
			}
		}
	}
	given, results, taken := map[string]bool{}, map[string]bool{}, map[int]bool{}
	if err := v.uniqueNames(given, e.Inputs); err != nil {
		return err
	}
	if err := v.uniqueNames(given, e.Scalars); err != nil {
		return err
	}
	if err := v.uniqueNames(results, e.Outputs); err != nil {
		return err
	}
	for _, i := range e.Outputs {
		if s := &v.p.Slots[i]; s.Role == Output && v.persistent[s.Name] {
			return invalid(28, "output %q has the name of a parameter or state", s.Name)
		}
	}
	for _, i := range e.Scalars {
		s := &v.p.Slots[i]
		if s.Offset > e.UniformBytes-WordBytes || taken[s.Offset] {
			return invalid(29, "scalar %q lies outside the row of %d bytes, or on another", s.Name, e.UniformBytes)
		}
		taken[s.Offset] = true
	}
	return nil
}

// uniqueNames checks that the names of slots are not in seen, and adds them.
func (v *validator) uniqueNames(seen map[string]bool, slots []int) *FormatError {
	for _, i := range slots {
		name := v.p.Slots[i].Name
		if seen[name] {
			return invalid(28, "the name %q is there twice", name)
		}
		seen[name] = true
	}
	return nil
}

// steps checks a list of steps inside depth repeats and returns the number of its
// dispatches and iterations, at most MaxDispatches+1.
func (v *validator) steps(e *Entry, steps []Step, depth int) (int, *FormatError) {
	total := 0
	for i, step := range steps {
		n, err := 1, (*FormatError)(nil)
		switch s := step.(type) {
		case *Dispatch:
			err = v.dispatch(e, s, depth)
		case *Call:
			err = v.call(s)
		case *Copy:
			err = v.copies(s)
		case *Repeat:
			n, err = v.repeat(e, s, depth+1)
		case *While:
			n, err = v.while(e, s, depth+1)
		default:
			err = invalid(8, "the step is missing")
		}
		if err != nil {
			return 0, err.in("step %d%s", i, v.kernelName(step))
		}
		total = min(total+n, MaxDispatches+1)
	}
	return total, nil
}

// kernelName returns " (name)" for a step that runs a kernel.
func (v *validator) kernelName(s Step) string {
	if d, ok := s.(*Dispatch); ok && d.Kernel >= 0 && d.Kernel < len(v.p.Kernels) {
		return " (" + v.p.Kernels[d.Kernel].Name + ")"
	}
	return ""
}

func (v *validator) repeat(e *Entry, s *Repeat, depth int) (int, *FormatError) {
	if s.Count < 1 || s.Count > MaxRepeat {
		return 0, invalid(38, "a count of %d is not in 1 to %d", s.Count, MaxRepeat)
	}
	if depth > MaxCounters {
		return 0, invalid(39, "repeats are nested more than %d deep", MaxCounters)
	}
	n, err := v.steps(e, s.Steps, depth)
	odd := n
	if err == nil && len(s.Odd) > 0 {
		odd, err = v.steps(e, s.Odd, depth)
	}
	work := int64(max(n, 1))*int64((s.Count+1)/2) + int64(max(odd, 1))*int64(s.Count/2)
	return int(min(work, MaxDispatches+1)), err
}

func (v *validator) while(e *Entry, s *While, depth int) (int, *FormatError) {
	if depth > MaxCounters {
		return 0, invalid(39, "repeats are nested more than %d deep", MaxCounters)
	}
	if err := v.window(s.Condition.Buffer, s.Condition.Offset, gridBytes, WordBytes); err != nil {
		return 0, err
	}
	n, err := v.steps(e, s.Steps, depth)
	return max(n, 1), err
}

func (v *validator) copies(s *Copy) *FormatError {
	if err := v.window(s.Src, s.SrcOffset, s.Bytes, WordBytes); err != nil {
		return err
	}
	if err := v.window(s.Dst, s.DstOffset, s.Bytes, WordBytes); err != nil {
		return err
	}
	switch {
	case s.Src == s.Dst:
		return invalid(37, "a copy within one buffer")
	case s.Bytes == 0:
		return invalid(34, "a copy of nothing")
	case !v.writable(s.Dst):
		return invalid(35, "a copy into a buffer for %s", v.p.Buffers[s.Dst].Kind)
	}
	return nil
}

// writable reports whether steps may write to a buffer.
func (v *validator) writable(buffer int) bool {
	k := v.p.Buffers[buffer].Kind
	return k != ConstantBuffer && k != InputBuffer
}

func (v *validator) dispatch(e *Entry, d *Dispatch, depth int) *FormatError {
	if d.Kernel < 0 || d.Kernel >= len(v.p.Kernels) {
		return invalid(30, "there is no kernel %d", d.Kernel)
	}
	k := &v.p.Kernels[d.Kernel]
	if err := v.launch(e, k, d, depth); err != nil {
		return err
	}
	if err := v.code(k, d); err != nil {
		return err
	}
	for i, b := range d.Bindings {
		if err := v.binding(b, k.Storage[i]); err != nil {
			return err.in("binding %d", i)
		}
	}
	if emit.WithMma {
		if err := tensorMapsFit(k, d.Bindings); err != nil {
			return err
		}
	}
	if err := v.usage(k.Storage, d.Bindings); err != nil || d.Grid == nil {
		return err
	}
	return v.grid(k.Storage, d)
}

// tensorMapsFit checks the tensor maps of a kernel against its bindings.
func tensorMapsFit(k *Kernel, bound []Binding) *FormatError {
	for i := range k.TensorMaps {
		b := &k.TensorMaps[i]
		if b.Array < 0 || b.Array >= len(k.Storage) || k.Storage[b.Array] == loop.Atomic {
			return invalid(43, "tensor map %d is of no storage array, or of an atomic one", i)
		}
		if wrong := b.Check(b.DType, bound[b.Array].Bytes/max(b.DType.Size(), 1)); wrong != "" {
			return invalid(43, "tensor map %d: %s", i, wrong)
		}
	}
	return nil
}

// grid checks the location of the grid of an indirect dispatch.
func (v *validator) grid(access []loop.Access, d *Dispatch) *FormatError {
	if err := v.window(d.Grid.Buffer, d.Grid.Offset, gridBytes, WordBytes); err != nil {
		return err
	}
	for i, b := range d.Bindings {
		if access[i] != loop.Read && b.Buffer == d.Grid.Buffer {
			return invalid(36, "binding %d writes to buffer %d, which the grid is read from", i, b.Buffer)
		}
	}
	return nil
}

// launch checks the grid, counts and scalars of a dispatch.
func (v *validator) launch(e *Entry, k *Kernel, d *Dispatch, depth int) *FormatError {
	if !v.gridFits(d.Groups) {
		return invalid(31, "%v workgroups are not in 1 to %d", d.Groups, v.limits.Groups)
	}
	switch {
	case k.Draft == "" && d.DraftGroups != [3]int{}:
		return invalid(44, "%v workgroups for the draft of a kernel without one", d.DraftGroups)
	case k.Draft != "" && (d.Grid != nil || !v.gridFits(d.DraftGroups)):
		return invalid(44, "a kernel with a draft, and %v workgroups for that are not in 1 to %d, or the grid is in memory", d.DraftGroups, v.limits.Groups)
	}
	switch {
	case len(d.Bindings) != len(k.Storage):
		return invalid(32, "%d bindings for %d storage arrays", len(d.Bindings), len(k.Storage))
	case k.ScalarBytes > e.UniformBytes:
		return invalid(33, "the kernel reads %d bytes of scalars, the entry has %d", k.ScalarBytes, e.UniformBytes)
	case k.Counters > depth:
		return invalid(33, "the kernel reads %d counters inside %d repeats", k.Counters, depth)
	}
	return nil
}

func (v *validator) gridFits(groups [3]int) bool {
	return slices.Min(groups[:]) >= 1 && slices.Max(groups[:]) <= v.limits.Groups
}

func (v *validator) binding(b Binding, access loop.Access) *FormatError {
	if err := v.window(b.Buffer, b.Offset, b.Bytes, RowBytes); err != nil {
		return err
	}
	switch {
	case b.Bytes == 0:
		return invalid(34, "the window is empty")
	case b.Bytes > v.limits.BindingBytes:
		return invalid(34, "%d bytes are over the limit of %d", b.Bytes, v.limits.BindingBytes)
	case access != loop.Read && !v.writable(b.Buffer):
		return invalid(35, "a write to a buffer for %s", v.p.Buffers[b.Buffer].Kind)
	}
	return nil
}

// usage checks WebGPU's rules for the bindings of one dispatch. Elsewhere only a window
// that is written must not overlap another.
func (v *validator) usage(access []loop.Access, bindings []Binding) *FormatError {
	if withArena && v.p.Target != webGPU {
		return windowUsage(access, bindings)
	}
	v.spans = v.spans[:0]
	for i, b := range bindings {
		v.spans = append(v.spans, span{b, access[i] != loop.Read, int32(i)})
	}
	a, b, found := v.conflict(v.spans)
	switch {
	case !found:
		return nil
	case a.written && b.written:
		return invalid(36, "the writable bindings %d and %d overlap in buffer %d", a.index, b.index, a.Buffer)
	}
	return invalid(36, "bindings %d and %d use buffer %d both read-only and writable", a.index, b.index, a.Buffer)
}

// routines checks that no routine is nil. The readers of files check the rest.
func (v *validator) routines() *FormatError {
	for i, r := range v.p.Routines {
		if r == nil {
			return invalid(8, "the routine is missing").in("routine %d", i)
		}
	}
	return nil
}

// call checks a call of a routine. Libraries may read and write one buffer at the same
// time, so only windows must not overlap.
func (v *validator) call(c *Call) *FormatError {
	if c.Routine < 0 || c.Routine >= len(v.p.Routines) {
		return invalid(41, "there is no routine %d", c.Routine)
	}
	arrays := v.p.Routines[c.Routine].Arrays()
	if len(c.Bindings) != len(arrays) {
		return invalid(41, "%d windows for %d arrays", len(c.Bindings), len(arrays))
	}
	for i, b := range c.Bindings {
		err := v.window(b.Buffer, b.Offset, b.Bytes, RowBytes)
		switch {
		case err != nil:
		case b.Bytes < arrays[i].Bytes:
			err = invalid(41, "a window of %d bytes for an array of %d", b.Bytes, arrays[i].Bytes)
		case arrays[i].Written && !v.writable(b.Buffer):
			err = invalid(35, "a write to a buffer for %s", v.p.Buffers[b.Buffer].Kind)
		}
		if err != nil {
			return err.in("window %d", i)
		}
		for j, other := range c.Bindings[:i] {
			if (arrays[i].Written || arrays[j].Written) && overlap(b, other) {
				return invalid(42, "windows %d and %d overlap, and one is written", j, i)
			}
		}
	}
	return nil
}

// overlap reports whether two windows share a byte.
func overlap(a, b Binding) bool {
	return a.Buffer == b.Buffer && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes
}
