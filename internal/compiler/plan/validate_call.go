package plan

// routines checks that there are no holes among the routines: each is what its
// words make, as a reader of a file has it.
func (v *validator) routines() *FormatError {
	for i, r := range v.p.Routines {
		if r == nil {
			return invalid(8, "the routine is missing").in("routine %d", i)
		}
	}
	return nil
}

// call checks how a routine is called. Libraries read and write one buffer at once,
// so that only the windows count.
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
