package plan

import (
	"github.com/rlx-go/rlx/ir/format"
	"github.com/rlx-go/rlx/ir/kernel"
)

func (v *validator) entries() error {
	seen := map[string]bool{}
	for i := range v.p.Entries {
		e := &v.p.Entries[i]
		where := format.Sprintf("entry %d (%s)", i, e.Name)
		if e.Name == "" || seen[e.Name] {
			return invalid(where, "its name is missing or there twice")
		}
		seen[e.Name] = true
		if err := v.entrySlots(where, e); err != nil {
			return err
		}
		n, err := v.steps(&scope{where: where, entry: e}, e.Steps)
		if err != nil {
			return err
		}
		if n > MaxDispatches {
			return invalid(where, "more than %d dispatches", MaxDispatches)
		}
	}
	return nil
}

// entrySlots checks what an entry names: roles, unambiguous names, and the row
// of scalars.
func (v *validator) entrySlots(where string, e *Entry) error {
	if e.UniformBytes < 0 || e.UniformBytes > MaxUniformBytes || e.UniformBytes%WordBytes != 0 {
		return invalid(where, "its row of scalars cannot be %d bytes", e.UniformBytes)
	}
	given, taken := map[string]bool{}, map[int]bool{}
	for _, i := range e.Inputs {
		if err := v.named(where, i, given, Input); err != nil {
			return err
		}
	}
	for _, i := range e.Scalars {
		if err := v.named(where, i, given, Scalar); err != nil {
			return err
		}
		s := &v.p.Slots[i]
		if s.Offset > e.UniformBytes-WordBytes || taken[s.Offset] {
			return invalid(where, "scalar %q lies outside the row of %d bytes, or on another", s.Name, e.UniformBytes)
		}
		taken[s.Offset] = true
	}
	results := map[string]bool{}
	for _, i := range e.Outputs {
		if err := v.named(where, i, results, Output, Param, State); err != nil {
			return err
		}
		s := &v.p.Slots[i]
		if s.Role == Output && v.p.Lookup(s.Name) != nil {
			return invalid(where, "output %q has the name of a parameter or state", s.Name)
		}
	}
	return nil
}

// named checks that slot i exists, has one of the roles, and a name not in seen.
func (v *validator) named(where string, i int, seen map[string]bool, allowed ...Role) error {
	if i < 0 || i >= len(v.p.Slots) {
		return invalid(where, "there is no slot %d", i)
	}
	s := &v.p.Slots[i]
	if seen[s.Name] {
		return invalid(where, "the name %q is there twice", s.Name)
	}
	seen[s.Name] = true
	for _, r := range allowed {
		if s.Role == r {
			return nil
		}
	}
	return invalid(where, "%s %q is in the wrong list", s.Role, s.Name)
}

// scope is where a list of steps stands.
type scope struct {
	where string
	entry *Entry
	depth int
}

// steps returns the number of dispatches and iterations of a list of steps;
// a number above MaxDispatches stands for all that are greater.
func (v *validator) steps(sc *scope, steps []Step) (int, error) {
	total := 0
	for i, step := range steps {
		inner := scope{format.Sprintf("%s, step %d", sc.where, i), sc.entry, sc.depth}
		n, err := 1, error(nil)
		switch s := step.(type) {
		case *Dispatch:
			err = v.dispatch(&inner, s)
		case *Copy:
			err = v.copies(inner.where, s)
		case *Repeat:
			n, err = v.repeat(&inner, s)
		default:
			err = invalid(inner.where, "the step is missing")
		}
		if err != nil {
			return 0, err
		}
		total = min(total+n, MaxDispatches+1)
	}
	return total, nil
}

func (v *validator) repeat(sc *scope, s *Repeat) (int, error) {
	if s.Count < 1 || s.Count > MaxRepeat {
		return 0, invalid(sc.where, "a count of %d is not in 1 to %d", s.Count, MaxRepeat)
	}
	if sc.depth++; sc.depth > MaxCounters {
		return 0, invalid(sc.where, "repeats are nested more than %d deep", MaxCounters)
	}
	n, err := v.steps(sc, s.Steps)
	return int(min(int64(max(n, 1))*int64(s.Count), MaxDispatches+1)), err
}

func (v *validator) copies(where string, s *Copy) error {
	if err := v.window(where, s.Src, s.SrcOffset, s.Bytes, WordBytes); err != nil {
		return err
	}
	if err := v.window(where, s.Dst, s.DstOffset, s.Bytes, WordBytes); err != nil {
		return err
	}
	switch {
	case s.Src == s.Dst:
		return invalid(where, "a copy within one buffer")
	case s.Bytes == 0:
		return invalid(where, "a copy of nothing")
	case !v.writable(s.Dst):
		return invalid(where, "a copy into a buffer for %s", v.p.Buffers[s.Dst].Kind)
	}
	return nil
}

// writable reports whether steps may change a buffer.
func (v *validator) writable(buffer int) bool {
	k := v.p.Buffers[buffer].Kind
	return k != ConstantBuffer && k != InputBuffer
}

func (v *validator) dispatch(sc *scope, d *Dispatch) error {
	if d.Kernel < 0 || d.Kernel >= len(v.p.Kernels) {
		return invalid(sc.where, "there is no kernel %d", d.Kernel)
	}
	k := &v.p.Kernels[d.Kernel]
	where := format.Sprintf("%s (%s)", sc.where, k.Name)
	for _, n := range d.Groups {
		if n < 1 || n > v.limits.Groups {
			return invalid(where, "%v workgroups are not in 1 to %d", d.Groups, v.limits.Groups)
		}
	}
	switch {
	case len(d.Bindings) != len(k.Storage):
		return invalid(where, "%d bindings for %d storage arrays", len(d.Bindings), len(k.Storage))
	case k.ScalarBytes > sc.entry.UniformBytes:
		return invalid(where, "the kernel reads %d bytes of scalars, the entry has %d", k.ScalarBytes, sc.entry.UniformBytes)
	case k.Counters > sc.depth:
		return invalid(where, "the kernel reads %d counters inside %d repeats", k.Counters, sc.depth)
	}
	for i, b := range d.Bindings {
		if err := v.binding(format.Sprintf("%s, binding %d", where, i), b, k.Storage[i]); err != nil {
			return err
		}
	}
	return usage(where, k.Storage, d.Bindings)
}

func (v *validator) binding(where string, b Binding, access kernel.Access) error {
	if err := v.window(where, b.Buffer, b.Offset, b.Bytes, RowBytes); err != nil {
		return err
	}
	switch {
	case b.Bytes == 0:
		return invalid(where, "the window is empty")
	case b.Bytes > v.limits.BindingBytes:
		return invalid(where, "%d bytes are over the limit of %d", b.Bytes, v.limits.BindingBytes)
	case access != kernel.Read && !v.writable(b.Buffer):
		return invalid(where, "a write to a buffer for %s", v.p.Buffers[b.Buffer].Kind)
	}
	return nil
}

// usage checks WebGPU's rules for the bindings of one dispatch: a buffer is
// either only read, wherever, or all its windows are bound writable and share
// no byte.
func usage(where string, access []kernel.Access, bindings []Binding) error {
	for i, a := range bindings {
		for j, b := range bindings[:i] {
			if a.Buffer != b.Buffer || (access[i] == kernel.Read && access[j] == kernel.Read) {
				continue
			}
			if access[i] == kernel.Read || access[j] == kernel.Read {
				return invalid(where, "bindings %d and %d use buffer %d both read-only and writable", j, i, a.Buffer)
			}
			if a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes {
				return invalid(where, "the writable bindings %d and %d overlap in buffer %d", j, i, a.Buffer)
			}
		}
	}
	return nil
}
