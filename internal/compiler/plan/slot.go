package plan

import (
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
)

// SlotBytes returns the bytes a slot of this type takes on the device: those of
// its elements, where a bool is a u32, rounded up to [WordBytes]. The error says
// why there is no such size.
func SlotBytes(dt dtype.DType, dims []int) (int, error) {
	if dt == dtype.Bool {
		dt = dtype.U32
	}
	n, empty := 1, false
	for _, d := range dims {
		switch {
		case d < 0:
			return 0, format.Errorf("a dimension is %d", d)
		case d == 0:
			empty = true // the others are bounded all the same, in whatever order
		case n > maxExact/d:
			return 0, format.Errorf("the number of elements overflows")
		default:
			n *= d
		}
	}
	if empty {
		n = 0
	}
	bytes, err := dt.Bytes(n)
	if err != nil {
		return 0, err
	}
	if bytes > maxExact {
		return 0, format.Errorf("%d bytes are too many", bytes)
	}
	return align(bytes, WordBytes), nil
}

// align rounds n up to a multiple of to, a power of two.
func align(n, to int) int { return (n + to - 1) &^ (to - 1) }

// UniformStride returns the distance between the rows of an entry's uniform
// buffer.
func (e *Entry) UniformStride() int { return align(e.UniformBytes, RowBytes) }

// Dispatches returns how many dispatches and calls one run of the entry makes,
// repeats written out, those of rounds of unknown number once.
func (e *Entry) Dispatches() int { return dispatches(e.Steps) }

func dispatches(steps []Step) int {
	n := 0
	for _, s := range steps {
		switch s := s.(type) {
		case *Dispatch, *Call:
			n++
		case *Repeat:
			even := dispatches(s.Steps)
			odd := even
			if len(s.Odd) > 0 {
				odd = dispatches(s.Odd)
			}
			n += (s.Count+1)/2*even + s.Count/2*odd
		case *While:
			n += dispatches(s.Steps)
		}
	}
	return n
}

// Entry returns the entry of that name, nil where there is none.
func (p *Plan) Entry(name string) *Entry {
	for i := range p.Entries {
		if p.Entries[i].Name == name {
			return &p.Entries[i]
		}
	}
	return nil
}

// Lookup returns the persistent slot of that name, nil where there is none.
func (p *Plan) Lookup(name string) *Slot {
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Role.Persistent() && s.Name == name {
			return s
		}
	}
	return nil
}
