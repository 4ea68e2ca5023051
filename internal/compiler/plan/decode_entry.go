package plan

func (r *reader) entry(e *Entry) {
	e.Name = r.str()
	e.Inputs, e.Scalars, e.Outputs = numbers(r, 4, r.u32), numbers(r, 4, r.u32), numbers(r, 4, r.u32)
	e.UniformBytes = r.u32()
	e.Steps = r.steps(0)
	if r.off < r.end {
		e.Reads, e.Sets = numbers(r, 4, r.u32), numbers(r, 4, r.u32)
	}
}

func (r *reader) steps(depth int) []Step {
	if depth > MaxCounters {
		r.failAt(r.off, ErrInvalid, 39, "repeats are nested more than %d deep", MaxCounters)
		return nil
	}
	return items(r, func(s *Step) {
		switch kind := r.u32(); kind {
		case stepDispatch:
			d := r.dispatch()
			if r.off < r.end {
				d.DraftGroups = r.triple()
			}
			*s = d
		case stepIndirect:
			d := r.dispatch()
			at := r.cell()
			d.Grid = &at
			*s = d
		case stepCopy:
			*s = &Copy{Src: r.u32(), SrcOffset: r.u64(), Dst: r.u32(), DstOffset: r.u64(), Bytes: r.u64()}
		case stepRepeat:
			*s = &Repeat{Count: r.u32(), Steps: r.steps(depth + 1)}
		case stepRepeatOdd:
			*s = &Repeat{Count: r.u32(), Steps: r.steps(depth + 1), Odd: r.steps(depth + 1)}
		case stepWhile:
			*s = &While{Going: r.cell(), Steps: r.steps(depth + 1)}
		default:
			if kind == stepCall && r.calls {
				*s = &Call{Routine: r.u32(), Bindings: r.bindings()}
				return
			}
			r.failAt(r.off-4, ErrVersion, 8, "a step of kind %d is not known to this reader", kind)
		}
	})
}

func (r *reader) cell() Cell { return Cell{Buffer: r.u32(), Offset: r.u64()} }

func (r *reader) dispatch() *Dispatch {
	return &Dispatch{Kernel: r.u32(), Groups: r.triple(), Bindings: r.bindings()}
}

func (r *reader) bindings() []Binding {
	n := r.count(20)
	if n == 0 {
		return nil
	}
	out := make([]Binding, n)
	for i := range out {
		out[i] = Binding{Buffer: r.u32(), Offset: r.u64(), Bytes: r.u64()}
	}
	return out
}
